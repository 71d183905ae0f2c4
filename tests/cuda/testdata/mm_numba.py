"""Arrays and streams are numba's where the program uses numba: here a stand-in with what of numba is used."""
import contextlib
import gc
import sys
import types
import weakref

from mm_common import *
from tieralloc import _driver, _numba

log = []


class MemoryPointer:
    def __init__(self, context, pointer, size, owner=None, finalizer=None):
        self.context, self.device_pointer, self.size = context, pointer, size
        if finalizer is not None:
            self.finalizer = weakref.finalize(self, finalizer)


class Stream:
    def __init__(self):
        out = ctypes.c_void_p()
        _driver.call("cuStreamCreate", ctypes.byref(out), 0)
        self.handle = out  # numba's is an object of ctypes

    def synchronize(self):
        _driver.call("cuStreamSynchronize", self.handle)


class DeviceNDArray:
    def __init__(self, shape, strides, dtype, stream=0, gpu_data=None):
        self.shape, self.strides, self.dtype, self.gpu_data = shape, strides, np.dtype(dtype), gpu_data
        self.size = int(np.prod(shape))
        self.nbytes = self.size * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self):
        pointer = self.gpu_data.device_pointer.value if self.gpu_data else 0
        return {"shape": self.shape, "strides": None, "typestr": self.dtype.str, "data": (pointer, False), "version": 3}

    def copy_to_device(self, ary, stream=0):
        log.append(("to", stream))

    def copy_to_host(self, ary=None, stream=0):
        log.append(("from", stream))


class Shared(np.ndarray):
    def device_setup(self, gpu_data, stream=0):
        self.gpu_data = gpu_data


class MappedNDArray(Shared):
    pass


class ManagedNDArray(Shared):
    pass


class Context:
    device = types.SimpleNamespace(id=0)


def module(name, **members):
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made
    return made


class Default:
    pass


class Host:
    def __init__(self, context):
        self.context, self.allocations = context, {}

    def reset(self):
        self.allocations.clear()


class Pool:
    """CuPy's, whose blocks live as long as somebody has them."""

    live = weakref.WeakSet()

    def malloc(self, size):
        block = type("Block", (), {"ptr": 4096 * (len(self.live) + 1)})()
        self.live.add(block)
        return block


class AsyncPool(Pool):
    pass


config = types.SimpleNamespace(ENABLE_CUDASIM=False)
_driver.set_current(0)
numba = module("numba")
module("numba.core", config=config)
there = [True]
cuda_of_numba = numba.cuda = module(
    "numba.cuda", MemoryPointer=MemoryPointer, stream=Stream, is_available=lambda: there[0], current_context=Context,
    gpus=[contextlib.nullcontext(), contextlib.nullcontext()], set_memory_manager=lambda c: log.append(("manager", c)),
    close=lambda: log.append(("close",)), GetIpcHandleMixin=type("Mixin", (), {}), HostOnlyCUDAMemoryManager=Host,
    MemoryInfo=types.SimpleNamespace)
module("numba.cuda.cudadrv", driver=module("numba.cuda.cudadrv.driver", USE_NV_BINDING=False, NumbaCUDAMemoryManager=Default),
       devicearray=module("numba.cuda.cudadrv.devicearray", DeviceNDArray=DeviceNDArray, MappedNDArray=MappedNDArray,
                          ManagedNDArray=ManagedNDArray))

# Only numba that has a device, and is no simulator, counts.
assert _numba.cuda() is cuda_of_numba
config.ENABLE_CUDASIM = True
assert _numba.cuda() is None
config.ENABLE_CUDASIM = False
there[0] = False
assert _numba.cuda() is None
there[0] = True

m = MemoryManager()
assert m._allocator is Default
a, b = join(m), join(m)
stream = m.get_stream(a)
assert type(stream) is Stream
kinds = {"device": DeviceNDArray, "mapped": MappedNDArray, "managed": ManagedNDArray, "pinned": np.ndarray}
for kind, expected in kinds.items():
    wanted = {"x": request((100,), memory=kind), "y": request((50, 2), np.float64, memory=kind), "none": request((0, 2), memory=kind)}
    arrays = m.allocate_all(wanted, id(a), stream)
    assert all(type(array) is expected for array in arrays.values()), (kind, arrays)
    addresses = {x.__cuda_array_interface__["data"][0] if kind == "device" else x.ctypes.data for x in (arrays["x"], arrays["y"])}
    assert len(addresses) == 2 and m.statistics(a)["bytes_live"] == 1200, "the memory lives with its array"
    if kind in ("mapped", "managed"):
        assert arrays["x"].gpu_data.device_pointer.value == arrays["x"].ctypes.data and arrays["x"].alloc_size == 400
        part = arrays["y"][10:]
        del arrays
        m.free_all()
        gc.collect()
        assert m.statistics(a)["bytes_live"] == 800, "a view keeps its memory"
        part[:] = 1
        del part
    elif kind == "device":
        m.to_device(a, [np.zeros(100, np.float32)], [arrays["x"]])
        m.from_device(a, [arrays["x"]], [np.zeros(100, np.float32)])
        assert log == [("to", stream), ("from", stream)]
        log.clear()
    arrays = None
    m.free_all()
    gc.collect()
    assert m.statistics(a)["bytes_live"] == 0, kind
    assert type(m.allocate((3,), np.float32, kind)) is expected

# Another allocator for numba's own arrays: everything is void then, and told.
m.allocate_all({"x": request((100,))}, id(a), stream)
refused(ModuleNotFoundError, ["cupy"], m.set_allocator, "cupy")
assert log == [] and a.invalidated == 0 and m._allocator is Default
void = [m.allocate((3,), np.float32, kind) for kind in ("mapped", "managed", "pinned")]
m.set_allocator("tieralloc")
freed = [cuda.fake_calls(name) for name in (b"cuMemFree_v2", b"cuMemFreeHost")]
del void
gc.collect()
assert freed == [cuda.fake_calls(name) for name in (b"cuMemFree_v2", b"cuMemFreeHost")], "it went with its context"
assert [entry[0] for entry in log] == ["manager", "close"] and log[0][1] is m._allocator is not Default
assert (a.invalidated, b.invalidated, m.registry[id(a)].allocations) == (1, 1, {}) and m.get_stream(a) is not stream

# CuPy's pools: a block goes with numba's array over it, or with the context.
module("cupy", cuda=types.SimpleNamespace(MemoryPool=Pool, MemoryAsyncPool=AsyncPool,
                                          runtime=types.SimpleNamespace(memGetInfo=lambda: (1, 2))))
for name, pool in (("cupy", Pool), ("cupy_async", AsyncPool)):
    m.set_allocator(name)
    plugin = m._allocator(Context())
    assert plugin.interface_version == 1 and vars(plugin.get_memory_info()) == {"free": 1, "total": 2}
    one, two = plugin.memalloc(10), plugin.memalloc(20)
    assert type(plugin.pool) is pool and len(Pool.live) == 2 and (one.size, one.device_pointer.value) == (10, 4096)
    del one
    assert len(Pool.live) == 1
    plugin.reset()
    assert len(Pool.live) == 0
    del two
invalidated = a.invalidated
m.set_allocator("default")
assert m._allocator is Default and a.invalidated == invalidated + 1
m.sync_stream(a)
print("ok")

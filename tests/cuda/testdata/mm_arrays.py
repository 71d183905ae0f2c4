"""Arrays in all kinds of memory: what they are, copies, and when their memory goes."""
import gc

from mm_common import *
from tieralloc import ArrayResponse, CUDAError
from tieralloc.manager import get_portioned_request_size, is_request_chunkable, replace_with_chunked_size
from tieralloc._settings import NotRegisteredError

# Requests.
r = ArrayRequest(np.float64)
assert (r.shape, r.memory, r.chunk_axis_index, r.unchunkable, r.total_runs) == ((1, 1, 1), "device", 2, False, 1)
assert r == ArrayRequest(dtype=np.float64) != ArrayRequest(np.float32)
assert ArrayRequest(np.float64, chunk_axis_index=None).chunk_axis_index is None
for error, name, value, words in (
    (ValueError, "dtype", np.float16, "numpy.float32"), (ValueError, "dtype", "f4", "numpy.int32"), (ValueError, "dtype", None, "None"),
    (TypeError, "shape", [1, 2], "tuple"), (TypeError, "shape", (1, 2.0), "2.0"), (TypeError, "shape", (True,), "bool"),
    (ValueError, "shape", (-1,), "must be >= 0"), (ValueError, "shape", (1 << 63,), "must be <= "),
    (ValueError, "memory", "other", "'managed'"), (ValueError, "memory", None, "None"),
    (ValueError, "chunk_axis_index", -1, "must be >= 0"), (TypeError, "chunk_axis_index", 1.0, "float"),
    (TypeError, "unchunkable", 1, "True or False"), (ValueError, "total_runs", 0, "must be >= 1"),
    (ValueError, "total_runs", -100, "must be >= 1"), (TypeError, "total_runs", None, "NoneType"), (TypeError, "total_runs", True, "bool"),
):
    refused(error, [f"'{name}'", words], ArrayRequest, **{"dtype": np.float32, name: value})
    refused(error, [f"'{name}'", words], setattr, r, name, value)
refused(AttributeError, ["runs"], setattr, r, "runs", 5)
r.shape = (2, 3)
assert r.nbytes == 48
assert ArrayResponse() == ArrayResponse({}, 1, 1, {}) and ArrayResponse(chunks=2).chunks == 2
refused(TypeError, ["'arr'", "[]"], ArrayResponse, arr=[])
refused(TypeError, ["'chunked_shapes'", "None"], ArrayResponse, chunked_shapes=None)
assert [is_request_chunkable(request(*a, **k)) for a, k in (
    (((2, 2, 2),), {}), (((2, 2, 2),), {"unchunkable": True}), (((2, 2, 1),), {}), (((2, 2),), {}), (((),), {}),
    (((2, 2),), {"chunk_axis_index": None}), (((2, 2),), {"chunk_axis_index": 1}))] == [True, False, False, False, False, False, True]
assert get_portioned_request_size({1: {"a": request((2, 2, 2)), "b": request((5,))}, 2: {"c": request((1, 1, 3), np.float64)}}) == (56, 20)
assert replace_with_chunked_size((4, 5, 6), 1, 2) == (4, 2, 6)

m = MemoryManager()
a = join(m)
m.free_all()
used = cuda.fake_used(0)

# Each kind of memory, for an instance and for nobody.
for how in ("instance", "nobody"):
    for kind in ("device", "mapped", "pinned", "managed"):
        if how == "instance":
            arrays = m.allocate_all({"x": request((3, 4), np.float64, memory=kind)}, id(a), m.get_stream(a))
            assert m.registry[id(a)].allocations == arrays and m.statistics(a)["bytes_live"] == 96 == m.registry[id(a)].allocated_bytes
        else:
            arrays = {"x": m.allocate((3, 4), np.float64, kind, stream=m.get_stream(a))}
            assert m.statistics(a)["bytes_live"] == 0
        x = arrays["x"]
        assert (x.shape, x.dtype, x.strides, x.nbytes, x.size, x.ndim, len(x)) == ((3, 4), np.float64, (32, 8), 96, 12, 2, 3)
        assert isinstance(x, np.ndarray) == (kind != "device") and (type(x) is np.ndarray) == (kind == "pinned")
        if kind == "pinned":
            x[:] = np.arange(12).reshape(3, 4)
            assert x.sum() == 66 and not hasattr(x, "__cuda_array_interface__")
        else:
            c = x.__cuda_array_interface__
            assert (c["shape"], c["typestr"], c["version"], c["strides"]) == ((3, 4), "<f8", 3, None)
            assert c["stream"] == m.get_stream(a).handle and c["data"][0] and not c["data"][1]
            host = np.arange(12.0).reshape(3, 4)
            x.copy_to_device(host)
            assert (x.copy_to_host() == host).all()
            into = np.zeros((3, 4))
            assert x.copy_to_host(into, stream=m.get_stream(a)) is into and (into == host).all()
            x.copy_to_device(host.T.copy().T)  # not in C order
            y = m.allocate((3, 4), np.float64, "device")
            y.copy_to_device(x)
            assert (y.copy_to_host() == host).all()
            for wrong, words in ((np.zeros((4, 3)), "(4, 3)"), (np.zeros((3, 4), np.float32), "float32"),
                                 (np.zeros((4, 3)).T, "C-contiguous"), (np.zeros(12), "(12,)")):
                refused(ValueError, [words], x.copy_to_host, wrong)
            refused(TypeError, ["ary", "[1]"], x.copy_to_host, [1])
            refused(ValueError, ["(2, 2)"], x.copy_to_device, np.zeros((2, 2)))
            refused(ValueError, ["int64"], x.copy_to_device, np.zeros((3, 4), np.int64))
            del y
        if kind in ("mapped", "managed"):
            assert (np.asarray(x) == host).all()
            part = x[1:, ::2]
            assert (x.device, part.device, (x + 1).device) == (0, 0, 0), "not NumPy's \"cpu\""
            assert part.__cuda_array_interface__["data"][0] == c["data"][0] + 32 and part.__cuda_array_interface__["strides"] == (32, 16)
            refused(ValueError, ["gaps"], part.copy_to_host)
            refused(AttributeError, ["made by NumPy"], getattr, x + 1, "__cuda_array_interface__")
            x, arrays = None, None
            m.free_all()
            assert part[1, 1] == 10 and (how == "nobody") == (m.statistics(a)["bytes_live"] == 0), "a view keeps the memory"
            del part
        x, arrays = None, None
        m.free_all()
        gc.collect()
        assert m.statistics(a)["bytes_live"] == 0

# Arrays without elements, and scalars.
for kind in ("device", "mapped", "pinned", "managed"):
    empty = m.allocate_all({"e": request((0, 3), memory=kind)}, id(a), 0)["e"]
    assert empty.shape == (0, 3) and empty.nbytes == 0 and m.statistics(a)["bytes_live"] == 0
    if kind != "pinned":
        empty.copy_to_device(np.zeros((0, 3), np.float32))
        assert empty.copy_to_host().shape == (0, 3)
one = m.allocate((), np.int32, "device")
one.copy_to_device(np.int32(7))
assert one.copy_to_host() == 7 and one.shape == ()
assert m.allocate(5, "f4", "device").shape == (5,)

# What allocate does not take.
for wrong in ("invalid", "", None, 1):
    refused(ValueError, ["Invalid memory type", repr(wrong), "'managed'"], m.allocate, (1, 1), np.float32, wrong)
refused(ValueError, ["(-1,)"], m.allocate, (-1,), np.float32, "device")
refused(TypeError, ["(1.5,)"], m.allocate, (1.5,), np.float32, "device")
refused(TypeError, ["object"], m.allocate, (1,), object, "device")
refused(ValueError, ["bytes"], m.allocate, (1 << 40, 1 << 40), np.float32, "device")
refused(TypeError, ["stream", "True"], m.allocate, (1,), np.float32, "device", True)
refused(TypeError, ["stream", "'s'"], m.allocate, (1,), np.float32, "device", "s")
refused(ValueError, ["stream", "-1"], m.allocate, (1,), np.float32, "device", -1)
for kind in ("device", "managed"):
    refused(MemoryError, [str(4 << 30), kind, "device 0"], m.allocate, (GIB,), np.float32, kind)
    refused(MemoryError, [str(4 << 30), "Instance", "default"], m.allocate_all, {"x": request((GIB,), memory=kind)}, id(a), 0)
cuda.fake_fail(b"cuMemHostAlloc", 1, 2)
refused(MemoryError, ["pinned", "CUDA_ERROR_OUT_OF_MEMORY"], m.allocate, (1,), np.float32, "pinned")
refused(TypeError, ["dict"], m.allocate_all, [], id(a), 0)
refused(TypeError, ["ArrayRequest", "y"], m.allocate_all, {"x": request((1,)), "y": 3}, id(a), 0)
refused(NotRegisteredError, ["5"], m.allocate_all, {}, 5, 0)

# Streams of others.
class Core:
    def __cuda_stream__(self):
        return 0, m.get_stream(a).handle


class Newer(Core):
    def __cuda_stream__(self):
        return 1, 2


class Torch:
    cuda_stream = m.get_stream(a).handle


class Cupy:
    ptr = m.get_stream(a).handle


class Bound:
    handle = ctypes.c_void_p(m.get_stream(a).handle)


for stream in (Core(), Torch(), Cupy(), Bound(), Bound.handle, None, 0, np.int64(0), m.get_stream(a).handle):
    m.allocate((4,), np.float32, "device", stream).copy_to_host()
refused(TypeError, ["version 0", "1"], m.allocate, (4,), np.float32, "device", Newer())

# All of an instance's arrays, or none; a label that is used again replaces the array.
b = join(m)
first = m.allocate_all({"x": request((10,)), "y": request((10,))}, id(b), 0)
second = m.allocate_all({"x": request((20,))}, id(b), 0)
assert m.registry[id(b)].allocations == {"x": second["x"], "y": first["y"]} and m.registry[id(b)].allocated_bytes == 120
assert m.statistics(b)["bytes_live"] == 160
del first
assert m.statistics(b)["bytes_live"] == 120
refused(MemoryError, ["bytes"], m.allocate_all, {"x": request((5,)), "z": request((GIB,))}, id(b), 0)
assert m.registry[id(b)].allocations == {"x": second["x"], "y": m.registry[id(b)].allocations["y"]} and m.statistics(b)["bytes_live"] == 120

# By label, of all instances; what others keep under a label is accounted as long as it is there.
m.registry[id(a)].add_allocation("y", np.zeros(100))
assert m.statistics(a)["bytes_live"] == 800
m.registry[id(a)].add_allocation("y", np.zeros(10))
assert m.statistics(a)["bytes_live"] == 80
m.free("y")
m.free("no such label")
assert m.statistics(a)["bytes_live"] == 0 and m.statistics(b)["bytes_live"] == 80
del second
m.invalidate_all()
assert (a.invalidated, b.invalidated, m.registry[id(b)].allocations, m.statistics(b)["bytes_live"]) == (1, 1, {}, 0)

# One that goes takes its arrays along; one that the program has still is accounted to the end.
c = join(m)
x = m.allocate_all({"x": request((1000,)), "y": request((1000,))}, id(c), m.get_stream(c))["x"]
del c
gc.collect()
assert len(m.registry) == 2
x.copy_to_device(np.ones(1000, np.float32))
assert x.copy_to_host().sum() == 1000
del x

# Host arrays.
for kind in ("pinned", "host"):
    x = m.create_host_array((2, 3), np.float32, kind)
    assert type(x) is np.ndarray and x.flags["C_CONTIGUOUS"] and (x == 0).all() and x.dtype == np.float32
    like = np.arange(6).reshape(3, 2).T
    x = m.create_host_array((2, 3), np.float64, memory_type=kind, like=like)
    assert x.flags["C_CONTIGUOUS"] and (x == like).all()
    assert m.create_host_array((), np.int32, kind, like=5) == 5 and m.create_host_array((0,), np.int32, kind).shape == (0,)
refused(ValueError, ["memory_type must be 'pinned' or 'host', got 'device'"], m.create_host_array, (2,), np.float32, "device")

# Copies by the instance's stream, after what it has been given.
got = m.allocate_all({"x": request((100,)), "m": request((100,), memory="mapped")}, id(a), m.get_stream(a))
ones, out = np.ones(100, np.float32), np.zeros(100, np.float32)
address = got["x"].__cuda_array_interface__["data"][0]
cuda.fake_launch(ctypes.c_uint64(address), ctypes.c_size_t(400), 0, ctypes.c_void_p(m.get_stream(a).handle))
m.from_device(a, [got["x"]], [out])
assert (out == 0).all()
m.to_device(a, [ones, ones * 2], [got["x"], got["m"]])
m.from_device(a, (got["x"],), (out,))
m.sync_stream(a)
assert (out == 1).all() and (got["m"] == 2).all()


class Foreign:
    __cuda_array_interface__ = got["x"].__cuda_array_interface__


m.to_device(a, [ones * 3], [Foreign()])
m.from_device(a, [Foreign()], [out])
assert (out == 3).all()
refused(ValueError, ["2 from_arrays", "1 to_arrays"], m.to_device, a, [ones, ones], [got["x"]])
refused(ValueError, ["1 from_arrays", "0 to_arrays"], m.from_device, a, [got["x"]], [])
refused(TypeError, ["ndarray"], m.to_device, a, [ones * 4, ones], [got["x"], ones])
assert (got["x"].copy_to_host() == 3).all(), "nothing is copied where one is wrong"
cuda.fake_fail(b"cuMemcpyHtoDAsync_v2", 1, 700)
refused(CUDAError, ["cuMemcpyHtoDAsync", "700"], m.to_device, a, [ones], [got["x"]])

# Copies wait for their own stream's work, and not for another's.
side = join(m, stream_group="side")
elsewhere = m.allocate_all({"s": request((10,))}, id(side), m.get_stream(side))["s"].__cuda_array_interface__["data"][0]
work = ctypes.c_uint64(elsewhere), ctypes.c_size_t(40)
cuda.fake_launch(*work, 1, ctypes.c_void_p(m.get_stream(side).handle))
got["x"].copy_to_host()
got["x"].copy_to_device(ones, stream=m.get_stream(a))
assert cuda.fake_busy(*work, None, 0)
m.registry[id(side)].allocations["s"].copy_to_host()
assert not cuda.fake_busy(*work, None, 0)
del side

# A block that work is pending on is not given to another stream.
stream, pending = m.get_stream(a), m.allocate_all({"p": request((1000,))}, id(a), m.get_stream(a))
address = pending["p"].__cuda_array_interface__["data"][0]
cuda.fake_launch(ctypes.c_uint64(address), ctypes.c_size_t(4000), 1, ctypes.c_void_p(stream.handle))
del pending
m.free("p")
other = join(m, stream_group="other")
again = m.allocate_all({"p": request((1000,))}, id(other), m.get_stream(other))["p"]
assert again.__cuda_array_interface__["data"][0] != address or not cuda.fake_busy(
    ctypes.c_uint64(address), ctypes.c_size_t(4000), ctypes.c_void_p(m.get_stream(other).handle), 1)
refused(ValueError, ["Unknown allocator", "'other'", "'cupy_async'"], m.set_allocator, "other")
refused(RuntimeError, ["numba", "'cupy'"], m.set_allocator, "cupy")

# In the end nothing is left, and the manager goes with its last array.
last = again
address = None
del m, got, again, out, Foreign, stream, a, b, other
gc.collect()
assert last.copy_to_host().shape == (1000,)
assert len(report()) == 1
del last
gc.collect()
assert report() == []
print("ok")

"""Buffers and operations of the package, with a driver that has all of them."""
import ctypes
import enum
import gc
import pickle
import sys
from collections.abc import MutableSet

from managed_common import MIB, fake, of, refused, told
from tieralloc import Buffer, CUDAError, Device, Host, ManagedBuffer, ManagedMemoryResource
from tieralloc import _driver, managed
from tieralloc.utils import (advise, discard, discard_batch, discard_prefetch, discard_prefetch_batch, prefetch, prefetch_batch)

LAST_PREFETCH, PREFERRED, READ_MOSTLY = 4, 2, 1

Device(0).set_current()
mr = ManagedMemoryResource()
stream = Device(0).create_stream()


def last(buffer):
    return managed._get_int_attr(buffer, LAST_PREFETCH)


# Buffers
used = fake.fake_used(0)
buf = mr.allocate(3 * MIB)
assert isinstance(buf, ManagedBuffer) and isinstance(buf, Buffer) and len(buf) == buf.size == 3 * MIB
assert isinstance(buf.handle, int) and buf.memory_resource is mr and buf.owner is None and buf.is_managed
assert buf == buf and hash(buf) == hash(buf) and buf != mr.allocate(100) and f"size={3 * MIB}" in repr(buf)
for wrong in (0, -1, 1 << 63):
    with refused(ValueError, f"size {wrong}"):
        mr.allocate(wrong)
for wrong in (1.5, "1", True, None):
    with refused(TypeError, "size"):
        mr.allocate(wrong)
with refused(TypeError, "stream"):
    mr.allocate(100, stream="none")
try:
    mr.allocate(1 << 50)
    raise AssertionError("more than there is")
except MemoryError as e:
    assert str(1 << 50) in str(e)
mr.allocate(4096, stream=stream).close(stream=stream)
for error, args, kwargs in ((TypeError, ("x", 10), {}), (TypeError, (True, 10), {}), (ValueError, (0, 10), {}),
                            (ValueError, (-1, 10), {}), (ValueError, (1 << 64, 10), {}), (TypeError, (4096, 1.0), {}),
                            (ValueError, (4096, 0), {}), (ValueError, (4096, -1), {}),
                            (ValueError, (buf.handle, 10, mr), {"owner": buf}), (TypeError, (), {})):
    with refused(error):
        ManagedBuffer.from_handle(*args, **kwargs)
with refused(TypeError, "from_handle"):
    ManagedBuffer(buf.handle, 10)
with refused(TypeError, "pickle"):
    pickle.dumps(buf)
queries = fake.fake_calls(b"cuPointerGetAttribute")
outer = ManagedBuffer.from_handle(ctypes.c_uint64(buf.handle).value, MIB, owner=buf)
assert type(outer).__name__ == "ManagedBuffer" and outer.owner is buf and outer.memory_resource is None
outer.read_mostly = True
outer.read_mostly = False
outer.prefetch(Device(0), stream=stream)
assert fake.fake_calls(b"cuPointerGetAttribute") == queries + 1, "the driver is to be asked once"
outer.close()
assert buf.handle != 0, "the memory was not outer's"


class Own:
    """A resource of the program's own."""

    def __init__(self):
        self.given = []

    def deallocate(self, ptr, size, stream=None):
        if size == 77:
            raise OSError("not now")
        self.given.append((ptr, size, stream))


own = Own()
with Buffer.from_handle(buf.handle, 10, mr=own) as b:
    assert type(b).__name__ == "Buffer" and not isinstance(b, ManagedBuffer)
assert own.given == [(buf.handle, 10, None)] and b.handle == 0 and b.memory_resource is None
b.close()
ManagedBuffer.from_handle(buf.handle, 20, own).close(stream)
b = ManagedBuffer.from_handle(buf.handle, 30, own)
del b
gc.collect()
assert own.given[1:] == [(buf.handle, 20, stream), (buf.handle, 30, None)], own.given
b = ManagedBuffer.from_handle(buf.handle, 77, own)
with refused(OSError, "not now"):
    b.close()
assert b.handle == buf.handle, "a buffer whose memory was not taken back is closed"
b._size = 78
b._finalizer.detach()
del b

# The host's view, and the device's
view = memoryview(buf).cast("B")
assert len(view) == 3 * MIB and not view.readonly
view[:5] = b"hello"
assert bytes(buf)[:6] == b"hello\0" and len(bytes(buf)) == 3 * MIB
interface = buf.__cuda_array_interface__
assert interface == {"shape": (3 * MIB,), "strides": None, "typestr": "|u1", "data": (buf.handle, False), "version": 3, "stream": None}
if sys.version_info >= (3, 12):
    with refused(BufferError, "views"):
        buf.close()
    assert buf.handle != 0
view.release()
try:
    import numpy as np
except ImportError:
    pass
else:
    array = np.frombuffer(buf, np.float32)
    array[:] = 1.5
    assert array.size == 3 * MIB // 4 and np.asarray(buf).dtype == np.uint8 and np.asarray(buf)[3] == 0x3f and bytes(buf)[-1] == 0x3f
    kept = np.frombuffer(mr.allocate(MIB), np.uint8)  # the view keeps the memory
    gc.collect()
    kept[:] = 3
    assert kept.sum() == 3 * MIB
    del array, kept
    gc.collect()

# A device's own memory is no managed memory
address = ctypes.c_uint64()
assert fake.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(2 * MIB)) == 0
plain = ManagedBuffer.from_handle(address.value, 2 * MIB)
wrong_everything = {"location": "wrong", "stream": "wrong"}
for call in (lambda: setattr(plain, "read_mostly", "wrong"), lambda: plain.read_mostly,
             lambda: setattr(plain, "preferred_location", "wrong"),
             lambda: plain.preferred_location, lambda: setattr(plain, "accessed_by", 7), lambda: plain.accessed_by.add("wrong"),
             lambda: len(plain.accessed_by), lambda: plain.prefetch(**wrong_everything), lambda: plain.discard(stream="wrong"),
             lambda: plain.discard_prefetch(**wrong_everything), lambda: advise(plain, "wrong", "wrong"),
             lambda: advise([buf, plain], "set_read_mostly"), lambda: prefetch([buf, plain], [Host()] * 3, stream=None),
             lambda: discard([plain, buf], stream=None), lambda: discard_prefetch([buf, plain], [], stream=None),
             lambda: prefetch_batch(None, [plain], []), lambda: discard_batch(None, [plain]),
             lambda: discard_prefetch_batch(None, [plain], []),
             lambda: prefetch(ManagedBuffer.from_handle(ctypes.addressof(address), 8), Host(), stream=stream)):
    with refused(ValueError, "managed-memory allocation"):
        call()
for call in (lambda: bytes(plain), lambda: memoryview(plain)):
    try:
        call()
        raise AssertionError("the host cannot read that")
    except (BufferError, TypeError):
        pass
plain.close()
closed = mr.allocate(100)
closed.close()
for call in (lambda: closed.read_mostly, lambda: closed.prefetch(Host(), stream=stream),
             lambda: prefetch([buf, closed], Host(), stream=stream),
             lambda: closed.__cuda_array_interface__, lambda: bytes(closed), lambda: closed.accessed_by.add(Host())):
    with refused(ValueError, "closed"):
        call()

# Advice
assert buf.read_mostly is False
buf.read_mostly = True
assert buf.read_mostly is True and managed._get_int_attr(buf, READ_MOSTLY) == 1
buf.read_mostly = False
assert buf.read_mostly is False
for wrong in ("yes", None, 1.0, []):
    with refused(TypeError, "read_mostly"):
        buf.read_mostly = wrong
for true in (of("numpy", "bool_", __bool__=lambda self: True), 1, of("numpy", "bool", __bool__=lambda self: True)):  # before 2 and later
    buf.read_mostly = true
    assert buf.read_mostly is True
    buf.read_mostly = False
assert buf.preferred_location is None
for location in (Device(1), Host(), Host(0), Host(3), Device(0)):
    buf.preferred_location = location
    assert buf.preferred_location is location
buf.preferred_location = Host.numa_current()
assert buf.preferred_location is Host.numa_current(), "as it was set"
buf.preferred_location = of("cuda.core._device", "Device", device_id=1)
assert buf.preferred_location is Device(1)
buf.preferred_location = None
assert buf.preferred_location is None and managed._get_int_attr(buf, PREFERRED) == -2
with refused(TypeError, "Device, Host, or None"):
    buf.preferred_location = 0
advise(buf, "set_preferred_location", Device(1))
assert buf.preferred_location is Device(1)
advise([buf], "UNSET_preferred_location")
assert buf.preferred_location is None
second = mr.allocate(MIB)
advise([buf, second], "set_read_mostly")
assert buf.read_mostly and second.read_mostly
advise([buf, second], "set_preferred_location", [Device(1), Host(2)])
assert (buf.preferred_location, second.preferred_location) == (Device(1), Host(2))
advise([buf, second], "unset_preferred_location", (None, Host()))
assert buf.preferred_location is None and second.preferred_location is None
advise(buf, "set_accessed_by", [Host()])
advise([second, buf], "unset_accessed_by", Host())
assert buf.accessed_by == set()
for error, words, name, wrong in ((ValueError, "length as the targets, 2, got length 1", "set_preferred_location", [Host()]),
                                  (ValueError, "length as the targets, 2, got length 3", "set_read_mostly", [None] * 3),
                                  (ValueError, "location is required", "set_preferred_location", [Host(), None]),
                                  (TypeError, "Device, Host, or None", "set_preferred_location", [Host(), 0]),
                                  (ValueError, "does not support location_type='host_numa'", "set_accessed_by", [Host(), Host(0)])):
    with refused(error, words):
        advise([buf, second], name, wrong)
Bindings = enum.IntEnum("CUmem_advise", {"CU_MEM_ADVISE_SET_READ_MOSTLY": 1, "CU_MEM_ADVISE_UNSET_READ_MOSTLY": 2,
                                         "CU_MEM_ADVISE_MADE_UP": 9})
advise((buf, second), Bindings(2), Device(0))
assert not buf.read_mostly and not second.read_mostly
for wrong in ("read_mostly", "", Bindings(9)):
    with refused(ValueError, "set_read_mostly"):
        advise(buf, wrong)
for wrong in (1, None, b"set_read_mostly"):
    with refused(TypeError, "set_read_mostly"):
        advise(buf, wrong)
for name in ("set_preferred_location", "set_accessed_by", "unset_accessed_by"):
    with refused(ValueError, "location is required"):
        advise(buf, name)
    with refused(TypeError, "Device, Host, or None"):
        advise(buf, name, 0)
for name in ("set_accessed_by", "unset_accessed_by"):
    with refused(ValueError, f"{name} does not support location_type='host_numa'"):
        advise(buf, name, Host(0))
    with refused(ValueError, f"{name} does not support location_type='host_numa_current'"):
        advise([buf, second], name, Host.numa_current())
with refused(TypeError, "Device, Host, or None"):
    advise(buf, "set_read_mostly", 0)

# accessed_by
by = buf.accessed_by
assert isinstance(by, MutableSet) and len(by) == 0 and by == set() and list(by) == [] and repr(by) == "AccessedBySetProxy({})"
by.add(Device(0))
by.add(Device(0))
assert by == {Device(0)} == buf.accessed_by and Device(0) in by and Device(1) not in by and len(by) == 1
assert of("cuda.core._device", "Device", device_id=0) in by
by.add(Host())
assert by == {Device(0), Host()} and set(by) == {Host(), Device(0)} and repr(by) == "AccessedBySetProxy({Device(0), Host()})"
for nothing in (Host(0), Host.numa_current(), 0, "x", None, [], Device, of("torch", "device", type="cuda", index=9),
                of("torch", "device", type="meta", index=None), of("cupy.cuda.device", "Device", id=9)):
    assert nothing not in by
    by.discard(nothing)
assert by == {Device(0), Host()}
for operated in (by & {Device(0), Host(1)}, by | {Host(1)}, by - {Host()}, by ^ {Device(0)}, {Device(0)} | by):
    assert type(operated) is set, operated
assert by & {Device(0)} == {Device(0)} and by | {Host(1)} == {Device(0), Host(), Host(1)} and by <= {Device(0), Host(), 7}
for wrong in (0, "host", None, [Host()]):
    with refused(TypeError):
        by.add(wrong)
for wrong in (Host(0), Host.numa_current()):
    with refused(ValueError, "does not support location_type='host_numa"):
        by.add(wrong)
by.remove(Host())
with refused(KeyError):
    by.remove(Host())
by |= {Device(1), Host()}
assert buf.accessed_by == {Device(0), Device(1), Host()} and by is not None and type(by).__name__ == "AccessedBySetProxy"
by ^= {Device(1), Host()}
by &= {Device(0), Host(2)}
by -= {Host()}
assert by == {Device(0)}
assert by.pop() is Device(0) and not by
with refused(KeyError):
    by.pop()
buf.accessed_by = {Device(0), Host()}
for error, wrong in ((ValueError, {Device(1), Host(0)}), (TypeError, [Device(1), 0]), (TypeError, [Device(1), []]), (TypeError, 7),
                     (TypeError, None), (TypeError, "Host"), (TypeError, [None])):
    with refused(error):
        buf.accessed_by = wrong
    if wrong.__class__ is not int and wrong is not None:
        with refused(error):
            by |= wrong
        with refused(error):
            by ^= wrong
    assert by == {Device(0), Host()}, (wrong, by)
before = told()
buf.accessed_by = [Host(), Device(1), Device(1)]
assert by == {Device(1), Host()} and sum(told()) == sum(before) + 2, "only what differs"
before = told()
buf.accessed_by = buf.accessed_by
assert told() == before
fake.fake_fail(b"cuMemAdvise_v2", 2, 101)
try:
    buf.accessed_by = {Device(0)}
    raise AssertionError("the second advice fails")
except CUDAError as e:
    assert e.code == 101 and "accessed_by" in str(e)
assert by == {Device(1), Host()}, "as before"
by.clear()
assert by == set()

# Prefetch and discard
assert last(buf) == -2
prefetch(buf, Device(1), stream=stream)
assert last(buf) == 1
for s in (stream.handle, 0, of("cupy.cuda.stream", "Stream", ptr=stream.handle),
          of("torch.cuda.streams", "Stream", cuda_stream=stream.handle),
          of("cuda.core._stream", "Stream", __cuda_stream__=lambda self: (0, stream.handle))):
    prefetch(buf, Device(0), stream=s)
    assert last(buf) == 0, s
    buf.prefetch(Host(), stream=s)
    assert last(buf) == -1, s
prefetch(buf, of("torch", "device", type="cuda", index=1), stream=stream)
assert last(buf) == 1
calls = fake.fake_calls(b"cuMemPrefetchBatchAsync")
prefetch([buf], [Host()], stream=stream)
assert last(buf) == -1 and fake.fake_calls(b"cuMemPrefetchBatchAsync") == calls
prefetch([buf, second], [Device(0), Host(2)], stream=stream)
assert (last(buf), last(second), fake.fake_calls(b"cuMemPrefetchBatchAsync")) == (0, -1, calls + 1)
assert managed._get_int_attr(second, 7) == 3 and managed._get_int_attr(second, 8) == 2
prefetch((buf, second), Device(1), stream=stream)
prefetch_batch(stream, [second], [Device(0)])
assert (last(buf), last(second)) == (1, 0)
prefetch_batch(stream, [buf, second], Host())
assert (last(buf), last(second)) == (-1, -1)
foreign = of("cuda.core._memory._buffer", "Buffer", handle=second.handle, size=second.size)
prefetch([buf, foreign], [Host(), Device(1)], stream=stream)
assert last(second) == 1
many = [mr.allocate(4096) for _ in range(300)]
prefetch_batch(stream, many, [Device(i % 2) if i % 3 else Host() for i in range(300)])
assert [last(b) for b in many] == [i % 2 if i % 3 else -1 for i in range(300)]
stream.sync()
ctypes.memset(buf.handle, 7, buf.size)
discard(buf, stream=stream)
assert bytes(buf)[:1] == b"\x07", "discarded before the stream came to it"
stream.sync()
assert bytes(buf)[:1] == b"\xdd"
discard_prefetch(buf, Device(1), stream=stream)
assert last(buf) == 1
discard_prefetch_batch(stream, [buf, second], [Host(), Device(0)])
assert (last(buf), last(second)) == (-1, 0)
calls = fake.fake_calls(b"cuMemDiscardBatchAsync")
discard([buf, second], stream=stream)
discard_batch(stream, [buf, second])
buf.discard(stream=stream)
buf.discard_prefetch(Host(), stream=stream)
assert fake.fake_calls(b"cuMemDiscardBatchAsync") == calls + 3

MOVES = {prefetch: prefetch_batch, discard_prefetch: discard_prefetch_batch}
for move, batch in MOVES.items():
    for one in (lambda *a: move(*a, stream=stream), lambda b, *a: batch(stream, b, *a)):
        for locations in ([Host()], [Host()] * 3, []):
            with refused(ValueError, "length 2|targets, 2", f"length {len(locations)}"):
                one([buf, second], locations)
        with refused(ValueError, "location is required"):
            one([buf, second], None)
        with refused(ValueError, "location is required"):
            one([buf, second], [Host(), None])
        with refused(TypeError, "Device, Host, or None"):
            one([buf, second], [Host(), 0])
        for wrong in ([], ()):
            with refused(ValueError, "empty"):
                one(wrong, Host())
        for wrong in ([buf, 7], [buf, None], "buffers", 7, None, {buf}, iter([buf])):
            with refused(TypeError, "sequence of Buffers"):
                one(wrong, Host())
    for single in (buf, foreign):
        with refused(TypeError, "sequence of Buffers"):
            batch(stream, single, Host())
    for wrong in (None, "s", True, 1.0):
        with refused(TypeError, "stream"):
            move(buf, Host(), stream=wrong)
    with refused(ValueError, "stream"):
        move(buf, Host(), stream=-1)
    with refused(TypeError):
        move(buf, Host())
    for legacy in (0, 1, Device(0).default_stream):
        with refused(ValueError, "legacy default stream"):
            move([buf, second], Host(), stream=legacy)
with refused(TypeError, "sequence of Buffers"):
    discard_batch(stream, buf)
with refused(ValueError, "empty"):
    discard([], stream=stream)
with refused(TypeError, "stream"):
    discard(buf, stream=None)
with refused(ValueError, "legacy default stream"):
    discard(buf, stream=0)
with refused(ValueError, "location is required"):
    buf.prefetch(None, stream=stream)
for name, call in ((b"cuMemPrefetchAsync_v2", lambda: buf.prefetch(Host(), stream=stream)),
                   (b"cuMemDiscardBatchAsync", lambda: buf.discard(stream=stream)),
                   (b"cuMemAdvise_v2", lambda: setattr(buf, "read_mostly", True)),
                   (b"cuMemRangeGetAttribute", lambda: buf.read_mostly)):
    fake.fake_fail(name, 1, 999)
    try:
        call()
        raise AssertionError(name)
    except CUDAError as e:
        assert e.code == 999, e

# A thread without a context, and all goes back
assert fake.cuCtxSetCurrent(None) == 0
with mr.allocate(2 * MIB) as b:
    b.read_mostly = True
    b.accessed_by = {Device(1)}
    b.prefetch(Device(0), stream=stream)
    prefetch([b, b], Host(), stream=stream)
assert _driver.current_context() == 0
fake.fake_complete_all()
del b, many, view, outer, second, call
buf.close()
gc.collect()
assert fake.cuMemFree_v2(address) == 0
ctypes.CDLL(None).ta_cuda_trim()
assert fake.fake_used(0) == used == 0, fake.fake_used(0)
assert fake.fake_illegals() == 0
print("ok")

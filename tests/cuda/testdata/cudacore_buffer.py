"""What cuda.core's buffers and devices can do beside managed memory's operations."""
import ctypes
import gc

import numpy as np
from managed_common import MIB, fake, refused
from tieralloc import Buffer, Device, DeviceMemoryResource, Host, ManagedBuffer, ManagedMemoryResource

mr = ManagedMemoryResource()
stream = Device(0).create_stream()  # the thread has no current context, here and below
a, b = mr.allocate(MIB), mr.allocate(MIB)

# Fills
for value, want in ((7, b"\x07"), (0, b"\0"), (255, b"\xff"), (True, b"\x01"), (b"\x09", b"\x09"), (b"\x01\x02", b"\x01\x02"), (b"abcd", b"abcd"),
                    (np.float32(1.5), np.float32(1.5).tobytes()), (bytearray(b"xy"), b"xy"), (np.array([3], np.int16), b"\x03\0")):
    a.fill(value, stream=stream)
    stream.sync()
    assert bytes(a) == want * (MIB // len(want)), value
for value in (-1, 256, 1 << 70):
    with refused(OverflowError, f"value {value}: expected a number from 0 to 255"):
        a.fill(value, stream=stream)
for value in (1.5, None, "a", [1]):
    with refused(TypeError, r"value .*: expected a number from 0 to 255, or 1, 2 or 4 bytes"):
        a.fill(value, stream=stream)
for value in (b"", b"abc", b"abcdefgh", np.int64(1).tobytes()):
    with refused(ValueError, f"value .*: expected 1, 2 or 4 bytes, got {len(value)}"):
        a.fill(value, stream=stream)
odd = mr.allocate(1001)
odd.fill(5, stream=stream)
for value in (b"ab", b"abcd"):
    with refused(ValueError, rf"expected a pattern that fits the 1001 bytes of ManagedBuffer\(.*\), got {len(value)} bytes"):
        odd.fill(value, stream=stream)
with refused(TypeError, "fill: stream is required"):
    a.fill(1, stream=None)

# Copies
a.fill(b"abcd", stream=stream)
assert a.copy_to(b, stream=stream) is b
stream.sync()
assert bytes(b) == b"abcd" * (MIB // 4)
b.fill(8, stream=stream)
a.copy_from(b, stream=stream)
stream.sync()
assert bytes(a) == b"\x08" * MIB
new = a.copy_to(stream=stream)
assert isinstance(new, ManagedBuffer) and new.size == MIB and new.memory_resource is mr and new.handle not in (a.handle, b.handle)
stream.sync()
assert bytes(new) == b"\x08" * MIB
borrowed = Buffer.from_handle(a.handle, a.size)
with refused(ValueError, r"dst: expected a buffer to copy to, since Buffer\(.*\) has no memory_resource to make one"):
    borrowed.copy_to(stream=stream)
with refused(ValueError, r"copy_to: expected buffers of one size, got ManagedBuffer\(.*1048576\) to ManagedBuffer\(.*1001\)"):
    a.copy_to(odd, stream=stream)
with refused(ValueError, "copy_from: expected buffers of one size"):
    a.copy_from(odd, stream=stream)
for wrong in (5, b"x", "x"):
    with refused(TypeError, "dst .*: expected a Buffer or None"):
        a.copy_to(wrong, stream=stream)
    with refused(TypeError, "src .*: expected a Buffer"):
        a.copy_from(wrong, stream=stream)
used = fake.fake_used(0)
with refused(TypeError, "copy_to: stream is required"):
    a.copy_to(stream=None)
assert fake.fake_used(0) == used  # no buffer was made for it
with refused(TypeError, "copy_from: stream is required"):
    a.copy_from(b, stream=None)

# Who can use it
device = DeviceMemoryResource(Device(1))
d = device.allocate(MIB)
plain = (ctypes.c_ubyte * 16)()
host = Buffer.from_handle(ctypes.addressof(plain), 16, owner=plain)
assert (a.device_id, a.is_device_accessible, a.is_host_accessible) == (-1, True, True)  # as of a resource without a preference
assert ManagedMemoryResource({"preferred_location": 1}).allocate(16).device_id == 1
assert (borrowed.device_id, borrowed.is_device_accessible, borrowed.is_host_accessible) == (0, True, True)
assert (d.device_id, d.is_device_accessible, d.is_host_accessible, d.is_managed) == (1, True, False, False)
seen = Buffer.from_handle(d.handle, d.size)
assert (seen.device_id, seen.is_device_accessible, seen.is_host_accessible) == (1, True, False)
assert (host.device_id, host.is_device_accessible, host.is_host_accessible) == (-1, False, True)


class Mine:
    """A resource that says nothing, and one that does."""

    def deallocate(self, ptr, size, stream=None):
        pass


assert Buffer.from_handle(d.handle, d.size, mr=Mine()).device_id == 1
Mine.device_id, Mine.is_device_accessible, Mine.is_host_accessible = 5, False, True
mine = Buffer.from_handle(d.handle, d.size, mr=Mine())
assert (mine.device_id, mine.is_device_accessible, mine.is_host_accessible) == (5, False, True)

# Device memory
assert isinstance(d, Buffer) and d.memory_resource is device and repr(device) == "DeviceMemoryResource(device=1)"
own = Device(1).create_stream()
d.fill(6, stream=own)
back = mr.allocate(MIB)
d.copy_to(back, stream=own)
own.sync()
assert bytes(back) == b"\x06" * MIB
used = fake.fake_used(1)
e = Device(1).allocate(3 * MIB, stream=own)
assert e.size == 3 * MIB and e.device_id == 1
address = e.handle
e.close()
assert Device(1).allocate(3 * MIB, stream=own).handle == address  # of the stream that it was for
f = Device(0).allocate(4096)
assert f.device_id == 0 and f.__cuda_array_interface__["data"] == (f.handle, False)
f.close(stream)
twice = device.allocate(4096)
gone = twice.handle
twice.close()
with refused(ValueError, "expected the address of a block that is in use"):
    device.deallocate(gone, 4096)
for wrong, error in ((0, ValueError), (-1, ValueError), ("x", TypeError)):
    with refused(error, "size .*: expected a whole number from 1"):
        device.allocate(wrong)
with refused(TypeError, r"device Host\(\): expected a Device or an ordinal"):
    DeviceMemoryResource(Host())
try:
    Device(0).allocate(1 << 45)
except MemoryError as error:
    assert "no 35184372088832 bytes on device 0" in str(error)
else:
    raise AssertionError("no MemoryError")

# Devices
assert (Device(0).name, Device(1).name) == ("Fake 0", "Fake 1")
assert Device(1).uuid == "10111213-1415-1617-1819-1a1b1c1d1e1f"
current = ctypes.c_void_p()
assert Device(1).context == Device(1).context != Device(0).context and Device(1).context.device is Device(1)
Device(1).set_current()
assert fake.cuCtxGetCurrent(ctypes.byref(current)) == 0 and Device(1).context.handle == current.value
assert fake.cuCtxSetCurrent(None) == 0

# DLPack
assert a.__dlpack_device__() == (13, 0) and d.__dlpack_device__() == (2, 1) and host.__dlpack_device__() == (1, 0)
view = np.from_dlpack(a)
assert view.dtype == np.int8 and view.shape == (MIB,) and view.ctypes.data == a.handle
ctypes.memset(a.handle, 100, 1)  # NumPy before 2 does not let its own array be written to
assert list(view[:2]) == [100, 8]
try:
    a.close()
except BufferError as error:
    assert "expected no views of it, and there are 1" in str(error)
else:
    raise AssertionError("closed with a view")
part = view[5:10]
del view
gc.collect()
assert a._views == 1
del part
gc.collect()
assert a._views == 0
for kept in (a.__dlpack__(), a.__dlpack__(stream=-1), a.__dlpack__(max_version=(0, 8)), a.__dlpack__(max_version=(1, 0)),
             a.__dlpack__(dl_device=(13, 0), copy=False)):
    assert a._views >= 1 and type(kept).__name__ == "PyCapsule"
    del kept
gc.collect()
assert a._views == 0  # nobody took them
lost = mr.allocate(16)
alone = np.from_dlpack(lost)
address = lost.handle
del lost
gc.collect()
ctypes.memset(address, 3, 16)
assert list(alone) == [3] * 16  # the array has the buffer
assert Buffer.from_handle(address, 16).is_managed
try:
    np.from_dlpack(d)  # NumPy does not take a device's
except (RuntimeError, BufferError, TypeError):
    pass
else:
    raise AssertionError("NumPy takes device memory")
gc.collect()
assert d._views == 0
for arguments, words in (({"copy": True}, "copy True: expected None or False"), ({"dl_device": (1, 0)}, r"dl_device \(1, 0\): expected \(13, 0\)"),
                         ({"max_version": 1}, "max_version 1: expected a pair of numbers")):
    with refused(BufferError, words):
        a.__dlpack__(**arguments)

# Closed
a.close()
for use in (lambda: a.fill(1, stream=stream), lambda: a.copy_to(b, stream=stream), lambda: b.copy_to(a, stream=stream),
            lambda: a.copy_from(b, stream=stream), lambda: a.device_id, lambda: a.is_host_accessible, lambda: a.is_device_accessible,
            a.__dlpack__, a.__dlpack_device__):
    with refused(ValueError, r"ManagedBuffer\(closed, size=1048576\): expected a buffer that is not closed"):
        use()

# Places read as they were set
for place in (Host.numa_current(), Host(1), Host.numa_current(), Host(), Device(0), None, Host.numa_current()):
    b.preferred_location = place
    assert b.preferred_location is place, (b.preferred_location, place)
    Buffer.from_handle(b.handle, b.size)
assert ManagedBuffer.from_handle(b.handle, b.size).preferred_location is Host(1)  # what the driver knows
assert fake.cuMemAdvise(ctypes.c_uint64(b.handle), ctypes.c_size_t(b.size), 3, 1) == 0
assert b.preferred_location is Device(1)  # somebody else has set it since
assert fake.fake_illegals() == 0
print("ok")

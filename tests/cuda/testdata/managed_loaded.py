"""The package in a program that was started without the library, and with it switched off."""
import ctypes
import os
import sys

from managed_common import MIB, fake, refused
from tieralloc import CUDAError, Device, Host, ManagedBuffer, ManagedMemoryResource, load
from tieralloc.utils import advise, prefetch

library = sys.argv[1]
off = len(sys.argv) > 2
address = ctypes.c_uint64()
Device(0).set_current()
assert fake.cuMemAllocManaged(ctypes.byref(address), ctypes.c_size_t(2 * MIB), 1) == 0
mine = ManagedBuffer.from_handle(address.value, 2 * MIB)
mr = ManagedMemoryResource()
stream = Device(0).create_stream()
if not off:
    for call in (lambda: mr.allocate(100), lambda: prefetch(mine, Host(), stream=stream), lambda: advise(mine, "set_read_mostly"),
                 lambda: mine.read_mostly):
        with refused(RuntimeError, "tieralloc is not in this process"):
            call()
    with refused(OSError):
        load("/nonexistent/libtieralloc.so")
    load(library)
    load(library)
else:
    with refused(OSError, "serves no such device"):
        mr.allocate(100)

# Memory of the program's own is told of, whoever serves
advise(mine, "set_preferred_location", Device(1))
prefetch(mine, Device(0), stream=stream)
assert mine.preferred_location is Device(1)
assert bytes(mine) == bytes(2 * MIB)
if not off:
    with mr.allocate(MIB) as theirs:
        theirs.accessed_by = {Device(0)}
        prefetch([mine, theirs], [Host(), Device(0)], stream=stream)
        fake.fake_fail(b"cuMemFree_v2", 1, 700)
        try:
            theirs.close()
            raise AssertionError("the free fails")
        except CUDAError as e:
            assert e.code == 700 and theirs.handle != 0
stream.sync()
mine.close()
assert fake.cuMemFree_v2(address) == 0
assert fake.fake_illegals() == 0
print("ok")

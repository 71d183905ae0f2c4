"""Whose the memory of a buffer is: of threads that close it together, of forked processes; and how much of it there is."""
import ctypes
import gc
import mmap
import os
import resource

from managed_common import fake
from tieralloc import Device, ManagedBuffer, ManagedMemoryResource

Device(0).set_current()
mr = ManagedMemoryResource()
buf = mr.allocate(4096)


class Own:
    """A resource of the program's own."""

    given = []

    def deallocate(self, ptr, size, stream=None):
        self.given.append((ptr, size, stream))


own = Own()
b = ManagedBuffer.from_handle(buf.handle, 40, own)
owed = b._finalizer


class Between:
    """The finalizer, with another close as a second thread may do it, when the first one has it."""

    @staticmethod
    def detach():
        found = owed.detach()
        if found:
            b.close()
        return found


b._finalizer = Between()
b.close()
assert own.given == [(buf.handle, 40, None)] and b.handle == 0 and b.memory_resource is None, own.given

# What a forked child has copies of is the parent's
forked = [mr.allocate(4096), ManagedBuffer.from_handle(buf.handle, 50, own), Device(0).create_stream(), mr.allocate(4096)]
child = os.fork()
if child == 0:
    forked.pop().close()
    assert forked[1].handle == buf.handle
    del forked
    gc.collect()
    os._exit(own.given[1:] != [])
assert os.waitpid(child, 0)[1] == 0
forked[0].close()
del forked
gc.collect()
assert own.given[1:] == [(buf.handle, 50, None)], own.given

# More than an int counts
with mmap.mmap(-1, (1 << 32) + 5, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000) as large:  # MAP_NORESERVE
    start = ctypes.c_char.from_buffer(large)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        resource.setrlimit(resource.RLIMIT_AS, (int(statm.read().split()[0]) * mmap.PAGESIZE + (1 << 30), limits[1]))
    try:
        bytes(ManagedBuffer._make(ctypes.addressof(start), len(large), None, None, True))
        raise AssertionError("bytes of more than 4 GiB, with 1 GiB for them")
    except MemoryError:
        pass
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        del start

del b
buf.close()
ctypes.CDLL(None).ta_cuda_trim()
assert fake.fake_used(0) == 0 and fake.fake_illegals() == 0
print("ok")

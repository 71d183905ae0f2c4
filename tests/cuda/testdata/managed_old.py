"""The package with a driver before CUDA 13: one target at a time, and no NUMA nodes."""
from managed_common import MIB, fake, refused
from tieralloc import Device, Host, ManagedMemoryResource
from tieralloc import managed
from tieralloc.utils import (advise, discard, discard_batch, discard_prefetch, discard_prefetch_batch, prefetch, prefetch_batch)

mr = ManagedMemoryResource()
stream = Device(0).create_stream()
a, b = mr.allocate(MIB), mr.allocate(MIB)


def last(buffer):
    return managed._get_int_attr(buffer, 4)


# What works with every driver
prefetch(a, Device(1), stream=stream)
prefetch([b], [Host()], stream=stream)
assert (last(a), last(b)) == (1, -1)
prefetch_batch(stream, [b], Device(0))
a.prefetch(Host(), stream=stream)
assert (last(a), last(b)) == (-1, 0)
advise([a, b], "set_read_mostly")
assert a.read_mostly and b.read_mostly
for location in (Device(1), Host(), None, Device(0)):
    a.preferred_location = location
    assert a.preferred_location is location
a.accessed_by = {Device(1), Host()}
a.accessed_by.discard(Device(1))
assert a.accessed_by == {Host()} and Host(0) not in a.accessed_by
a.accessed_by.discard(Host(0))

# What does not
for call in (lambda: prefetch([a, b], Host(), stream=stream), lambda: prefetch_batch(stream, [a, b], [Device(0), Host()]),
             lambda: discard(a, stream=stream), lambda: discard([a, b], stream=stream), lambda: discard_batch(stream, [a]),
             lambda: discard_prefetch(a, Host(), stream=stream), lambda: discard_prefetch_batch(stream, [a, b], Host()),
             lambda: a.discard(stream=stream), lambda: a.discard_prefetch(Device(0), stream=stream)):
    with refused(NotImplementedError, "CUDA 13"):
        call()
with refused(ValueError, "length"):  # what is wrong is told before what is lacking
    prefetch([a, b], [Host()], stream=stream)
for node, call in ((node, call) for node in (Host(0), Host.numa_current()) for call in (
        lambda: setattr(a, "preferred_location", node), lambda: a.prefetch(node, stream=stream),
        lambda: prefetch([a, b], node, stream=stream), lambda: advise(a, "set_preferred_location", node),
        lambda: a.accessed_by.add(node), lambda: setattr(a, "accessed_by", {Device(0), node}),
        lambda: a.discard_prefetch(node, stream=stream), lambda: ManagedMemoryResource({"preferred_location": node}),
        lambda: ManagedMemoryResource({"preferred_location": 0, "preferred_location_type": "host_numa"}))):
    with refused(TypeError, "require a CUDA 13 build", r"cuda-bindings 13\.0\+", r"Host\(\)"):
        call()
assert a.accessed_by == {Host()} and a.preferred_location is Device(0) and (last(a), last(b)) == (-1, 0)
assert fake.fake_illegals() == 0
print("ok")

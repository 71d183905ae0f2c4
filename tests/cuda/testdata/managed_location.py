"""Host and Device, and what names the same places in other packages."""
import copy
import pickle
import threading

import tieralloc
from managed_common import fake, of, refused
from tieralloc import Device, Host, ManagedMemoryResource
from tieralloc._location import _coerce_location

assert tieralloc.utils.prefetch.__name__ == "prefetch", "as cuda.core.utils is there with cuda.core"

# Host
assert Host() is Host() and Host().numa_id is None and Host().is_numa_current is False
assert Host(3) is Host(numa_id=3) and Host(3).numa_id == 3 and Host(3).is_numa_current is False
assert Host.numa_current() is Host.numa_current() is Host(is_numa_current=True)
assert Host.numa_current().is_numa_current is True and Host.numa_current().numa_id is None
assert len({Host(), Host(0), Host(1), Host.numa_current(), Host(numa_id=1)}) == 4
assert Host() != Host(0) and Host(1) == Host(1) and hash(Host(1)) == hash(Host(1))
for wrong in (-1, True, False, 1.0, "1", 1 << 31, [0]):
    with refused(ValueError, "numa_id must be a non-negative int, got", repr(wrong).replace("[", r"\[")):
        Host(numa_id=wrong)
assert type(Host(1).numa_id) is int and type(Host(0).numa_id) is int
for wrong in (1, 0, "yes", None, []):
    with refused(ValueError, "is_numa_current must be a bool, got"):
        Host(is_numa_current=wrong)
assert Host.numa_current().is_numa_current is True
with refused(ValueError, "mutually exclusive"):
    Host(0, is_numa_current=True)
with refused(TypeError):
    Host(None, True)
for name in ("numa_id", "_numa_id", "is_numa_current", "other"):
    with refused(AttributeError, name):
        setattr(Host(2), name, 3)
assert [repr(h) for h in (Host(), Host(numa_id=2), Host.numa_current())] == ["Host()", "Host(numa_id=2)", "Host.numa_current()"]
for h in (Host(), Host(4), Host.numa_current()):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(h, protocol)) is h
    assert copy.copy(h) is h and copy.deepcopy(h) is h
made = []
threads = [threading.Thread(target=lambda: made.append(Host(77))) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(made) == 16 and len(set(map(id, made))) == 1

# Device
assert Device(0) is Device(0) is Device() and Device(1) is not Device(0) and Device(1).device_id == 1
assert Device.get_all_devices() == (Device(0), Device(1))
assert repr(Device(1)) == "Device(1)" and pickle.loads(pickle.dumps(Device(1))) is Device(1) and copy.deepcopy(Device(1)) is Device(1)
for wrong in (True, False, 0.0, "0", Host()):
    with refused(TypeError, "device ordinal"):
        Device(wrong)
for wrong in (-1, 2, 1 << 40):
    with refused(ValueError, "device ordinal", str(wrong), "from 0 to 1"):
        Device(wrong)
with refused(AttributeError, "device_id"):
    Device(0).device_id = 1
Device(1).set_current()
assert Device() is Device(1)
s = Device(0).create_stream()
assert s.handle > 2 and Device(0).default_stream.handle == 1
s.sync()
Device(0).sync()
assert Device() is Device(1), "another device is current"



class Near(Host):
    """A class of the program's own has objects of its own."""


class Card(Device):
    """As Near."""


for near, host in ((Near(88), Host(88)), (Near.numa_current(), Host.numa_current())):
    assert type(near) is Near and type(host) is Host and near.numa_id == host.numa_id, (near, host)
    assert near is Near(near.numa_id, is_numa_current=near.is_numa_current) and pickle.loads(pickle.dumps(near)) is near
    assert _coerce_location(near) == _coerce_location(host)
assert type(Card(1)) is Card and type(Device(1)) is Device and pickle.loads(pickle.dumps(Card(1))) is Card(1) is Card()
assert _coerce_location(Card(1)) == _coerce_location(Device(1))

# What names a place
for value, kind, number in ((Device(1), "device", 1), (Host(), "host", 0), (Host(3), "host_numa", 3),
                            (Host.numa_current(), "host_numa_current", 0),
                            (of("cuda.core._device", "Device", device_id=1), "device", 1),
                            (of("cuda.core.experimental._device", "Device", device_id=0), "device", 0),
                            (of("cuda.core._host", "Host", numa_id=2, is_numa_current=False), "host_numa", 2),
                            (of("cuda.core._host", "Host", numa_id=None, is_numa_current=True), "host_numa_current", 0),
                            (of("torch", "device", type="cuda", index=0), "device", 0),
                            (of("torch", "device", type="cuda", index=None), "device", 1),
                            (of("torch", "device", type="cpu", index=None), "host", 0),
                            (of("cupy.cuda.device", "Device", id=1), "device", 1),
                            (of("numba.cuda.cudadrv.driver", "Device", id=1), "device", 1)):
    got = _coerce_location(value)
    assert (got.kind, got.id) == (kind, number), (value, got)
with refused(ValueError, "location is required"):
    _coerce_location(None)
with refused(ValueError, "location is required"):
    _coerce_location(None, allow_none=False)
assert _coerce_location(None, allow_none=True) is None
for wrong in (0, -1, "device", "cuda:0", 1.0, [Device(0)], Device, of("torch", "device", type="meta", index=0),
              of("cuda.core", "Buffer", device_id=0), of("other", "Device", device_id=0)):
    with refused(TypeError, "Device, Host, or None"):
        _coerce_location(wrong)
with refused(ValueError, "device ordinal 7"):
    _coerce_location(of("cupy.cuda.device", "Device", id=7))

# Resources take them as options
for options, device, preferred in (({}, -1, None), ({"preferred_location": 1}, 1, Device(1)), ({"preferred_location": -1}, -1, Host()),
                                   ({"preferred_location": Host(2)}, -1, Host(2)), ({"preferred_location": Device(0)}, 0, Device(0)),
                                   ({"preferred_location": 1, "preferred_location_type": "device"}, 1, Device(1)),
                                   ({"preferred_location_type": "host"}, -1, Host()),
                                   ({"preferred_location": 3, "preferred_location_type": "host_numa"}, -1, Host(3))):
    with ManagedMemoryResource(options).allocate(4096) as b:
        assert (b.memory_resource.device_id, b.memory_resource.preferred_location) == (device, preferred), options
        assert b.preferred_location == preferred, (options, b.preferred_location)
for error, options in ((ValueError, {"preferred_location": -2}), (ValueError, {"preferred_location": 7}),
                       (TypeError, {"preferred_location": True}),
                       (TypeError, {"preferred_location": "host"}), (ValueError, {"preferred_location_type": "pinned"}),
                       (ValueError, {"preferred_location": -1, "preferred_location_type": "device"}),
                       (TypeError, {"preferred_location_type": "device"}), (TypeError, {"other": 1}),
                       (ValueError, {"preferred_location": 0, "preferred_location_type": "host"}),
                       (ValueError, {"preferred_location": -1, "preferred_location_type": "host_numa"}), (TypeError, 7)):
    with refused(error):
        ManagedMemoryResource(options)
for error, device in ((ValueError, 7), (TypeError, True), (TypeError, Host()), (TypeError, "0")):
    with refused(error):
        ManagedMemoryResource(device=device)
for device in (1, Device(1), of("cupy.cuda.device", "Device", id=1)):
    before = fake.fake_used(1)
    with ManagedMemoryResource(device=device).allocate(4 << 20):
        assert fake.fake_used(1) == before + (4 << 20)
assert fake.fake_illegals() == 0
print("ok")

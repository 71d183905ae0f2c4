"""Who takes part, with what part of the memory, in which group."""
import gc
import sys

from mm_common import *
from tieralloc import InstanceMemorySettings, StreamGroups

# What the constructor takes.
m = Fixed(name="parts")
assert (m.totalmem, m.registry, m._mode, m._auto_pool, m._manual_pool) == (8 * GIB, {}, "passive", [], [])
assert Fixed(totalmem=1000).totalmem == 1000
assert Fixed(mode="active")._mode == "active"
groups = StreamGroups()
assert Fixed(stream_groups=groups, registry={}, auto_pool=[], manual_pool=[], queued_allocations={}).stream_groups is groups
refused(ValueError, ["mode", "'other'", "'passive' or 'active'"], Fixed, mode="other")
refused(ValueError, ["mode"], Fixed, mode=None)
refused(TypeError, ["totalmem", "'1'"], Fixed, totalmem="1")
refused(TypeError, ["totalmem", "True"], Fixed, totalmem=True)
for wrong in (0, -1, (1 << 62) + 1, 1 << 63):
    refused(ValueError, ["totalmem", str(wrong)], Fixed, totalmem=wrong)
for name, wrong in (("registry", []), ("auto_pool", {}), ("manual_pool", ()), ("queued_allocations", [])):
    refused(TypeError, [f"'{name}'", repr(wrong)], Fixed, **{name: wrong})
refused(TypeError, ["stream_groups"], Fixed, stream_groups={})
refused(ValueError, ["name", "47 bytes"], Fixed, name="x" * 48)
for wrong in (-1, True, "0"):
    refused(ValueError, ["device", repr(wrong)], Fixed, device=wrong)

# Parts and caps.
a = join(m)
assert (m.proportion(a), m.cap(a), m.manual_pool_proportion, m.auto_pool_proportion) == (1.0, 8 * GIB, 0.0, 1.0)
refused(ValueError, ["already registered"], m.register, a)
refused(ValueError, ["already registered"], m.register, a, 0.1)
b = join(m)
assert m.proportion(a) == m.proportion(b) == 0.5 and m.auto_pool_proportion == 1.0
c = join(m, 0.5)
assert near(m.proportion(a), 0.25) and near(m.manual_pool_proportion, 0.5) and near(m.auto_pool_proportion, 0.5)
d = join(m, 1 / 3)
assert m.cap(d) == int(1 / 3 * 8 * GIB) and m._manual_pool == [id(c), id(d)] and m._auto_pool == [id(a), id(b)]
m.set_auto_limit_mode(c)
assert near(m.proportion(c), 2 / 9) and near(m.manual_pool_proportion, 1 / 3)
refused(ValueError, ["already in the auto allocation pool", "0.222"], m.set_auto_limit_mode, c)
m.set_manual_limit_mode(c, 0.25)
refused(ValueError, ["already in the manual allocation pool", "0.25", "0.125", "set_manual_proportion"], m.set_manual_limit_mode, c, 0.125)
assert m.proportion(c) == 0.25
m.set_manual_proportion(c, 0.125)
assert m.proportion(c) == 0.125 and near(m.proportion(a), (1 - 1 / 3 - 0.125) / 2)
m.set_manual_proportion(b, 0)
assert m.proportion(b) == 0 and m.cap(b) == 0 and id(b) in m._manual_pool
m._rebalance_auto_pool()
assert near(m.auto_pool_proportion, 1 - 1 / 3 - 0.125)
assert join(m, 0).invalidated == 0 and len(m._auto_pool) == 1  # 0 is automatic; and it was garbage at once
gc.collect()
state = [(i, s.proportion, s.cap) for i, s in m.registry.items()]

# What the parts do not allow changes nothing.
for wrong in (-0.1, 1.1, float("nan"), float("inf"), 10**400):
    for call in (lambda p: join(m, p), lambda p: m.set_manual_proportion(c, p), lambda p: m.set_manual_limit_mode(a, p)):
        refused(ValueError, ["between 0 and 1", repr(wrong)], call, wrong)
for wrong in ("0.5", True, [0.5], 1j):
    refused(TypeError, ["between 0 and 1", repr(wrong)], join, m, wrong)
    refused(TypeError, ["between 0 and 1", repr(wrong)], m.set_manual_proportion, c, wrong)
refused(ValueError, ["exceed total", "0.6", "0.458"], join, m, 0.6)
refused(ValueError, ["exceed total"], m.set_manual_proportion, c, 0.7)
refused(ValueError, ["less than 5%", "0.5"], join, m, 0.5)  # 0.958, and a is automatic
refused(ValueError, ["less than 5%"], m.set_manual_proportion, c, 0.62)
refused(TypeError, ["stream_group", "3"], join, m, stream_group=3)
refused(ValueError, ["stream_group", "47 bytes"], join, m, stream_group="x" * 48)
refused(TypeError, ["invalidate_hook", "None"], m.register, Instance(), invalidate_cache_hook=None)
refused(TypeError, ["allocation_ready_hook", "7"], m.register, Instance(), allocation_ready_hook=7)
assert state == [(i, s.proportion, s.cap) for i, s in m.registry.items()], "a refusal changed something"
assert m.stream_groups.groups == {"default": list(m.registry)}

# Nearly all is given away: a warning where there is nobody without a part, and then nobody may join.
n = Fixed()
e = join(n, 0.75)
with warned("less than 5%"):
    f = join(n, 0.21)
with warned():
    n.set_manual_proportion(f, 0.2)  # 0.95 is not above 0.95
with warned("less than 5%"):
    n.set_manual_proportion(f, 0.25)
assert near(n.manual_pool_proportion, 1) and n.auto_pool_proportion == 0
refused(ValueError, ["auto-allocation pool", "5%"], join, n)
with warned("less than 5%"):
    n.set_manual_proportion(f, 0.01)
    n.set_manual_proportion(e, 0.96)
refused(ValueError, ["auto-allocation pool", "5%", "0.97"], n.set_auto_limit_mode, f)
assert n.proportion(f) == 0.01 and id(f) in n._manual_pool
n.set_auto_limit_mode(e)
assert near(n.proportion(e), 0.99)

# Whoever is not registered is named.
stranger = Instance()
for call in (m.proportion, m.cap, m.set_auto_limit_mode, lambda i: m.set_manual_proportion(i, 0.1), m.statistics,
             lambda i: m.set_manual_limit_mode(i, 0.1), lambda i: m.queue_request(i, {})):
    try:
        call(stranger)
    except (KeyError, ValueError) as error:  # the original raises one or the other
        assert isinstance(error, KeyError) and isinstance(error, ValueError) and "not registered" in str(error), error
    else:
        raise AssertionError("a stranger was accepted")
for call in (m.get_stream, m.get_stream_group, m.is_grouped, m.sync_stream, m.allocate_queue,
             lambda i: m.change_stream_group(i, "x")):
    refused(ValueError, ["not in any stream groups"], call, stranger)

# Groups and streams.
assert m.get_stream_group(a) == "default" and not m.is_grouped(a)
h, k = join(m, stream_group="pair"), join(m, stream_group="pair")
assert m.is_grouped(h) and m.is_grouped(k) and m.get_stream(h) is m.get_stream(k) is not m.get_stream(a)
m.change_stream_group(k, "other")
assert not m.is_grouped(h) and m.get_stream(k) is not m.get_stream(h) and m.statistics(k)["group"] == "other"
m.change_stream_group(k, "other")
assert m.stream_groups.groups["other"] == [id(k)]
refused(ValueError, ["new_group", "47 bytes"], m.change_stream_group, k, "x" * 48)
assert m.get_stream_group(k) == "other" == m.statistics(k)["group"]
old = {name: stream.handle for name, stream in m.stream_groups.streams.items()}
m.reinit_streams()
assert all(m.stream_groups.streams[name].handle != handle for name, handle in old.items())
m.sync_stream(k)

groups = StreamGroups()
assert groups.get_instances_in_group("default") == []
groups.add_instance(42, "g")
refused(ValueError, ["already in a stream group", "'g'"], groups.add_instance, 42, "h")
assert groups.get_group(42) == "g" and groups.get_instances_in_group("g") == [42] and "h" not in groups.groups
refused(TypeError, ["groups", "[]"], StreamGroups, groups=[])
refused(TypeError, ["streams", "3"], StreamGroups, streams=3)
cuda.fake_fail(b"cuStreamCreate", 1, 2)
refused(sys.modules["tieralloc"].CUDAError, ["cuStreamCreate", "CUDA_ERROR_OUT_OF_MEMORY", "2"], groups.change_group, 42, "new")
assert groups.groups == {"g": [42]}
cuda.fake_fail(b"cuStreamCreate", 1, 2)
before = list(m.registry)
refused(sys.modules["tieralloc"].CUDAError, ["cuStreamCreate"], join, m, stream_group="new")
assert len(m.registry) == next(x["instance_count"] for x in report() if x["name"] == "parts")
assert list(m.registry) == before and near(m.auto_pool_proportion + m.manual_pool_proportion, 1)

# Modes.
m.set_limit_mode("active")
for wrong in ("invalid", "", None, 1, []):
    refused(ValueError, ["Unknown mode", repr(wrong)], m.set_limit_mode, wrong)
assert m._mode == "active"

# The manager keeps no instance; what is garbage leaves, and its part is shared anew. Hooks that
# are its methods do not keep it either.
n = Fixed()
first, second = join(n), join(n)
account = n.registry[id(second)].account
del second
gc.collect()
assert n._auto_pool == [id(first)] and n.proportion(first) == 1.0 and n.stream_groups.groups["default"] == [id(first)]
third = join(n)
assert n.registry[id(third)].account != account


class Plain:
    """Without weak references, so it is kept."""

    __slots__ = ()


n.register(Plain())
gc.collect()
assert len(n.registry) == 3

# Settings by themselves.
s = InstanceMemorySettings(proportion=0.5, cap=7)
assert (s.proportion, s.cap, s.allocations, s.allocated_bytes) == (0.5, 7, {}, 0)
s.add_allocation("x", np.zeros(10))
s.add_allocation("x", np.zeros(20))
assert s.allocated_bytes == 160
with warned("Attempted to free allocation for y"):
    s.free("y")
s.free_all()
assert s.allocations == {}
for wrong in ({"proportion": "1"}, {"allocations": []}, {"invalidate_hook": 1}, {"allocation_ready_hook": None}, {"cap": 1.5}):
    refused(TypeError, [str(*wrong.values())] if "proportion" not in wrong else ["'1'"], InstanceMemorySettings, **wrong)
print("ok")

"""What cubie's document names: the constructor's arguments, the pools, default_memmgr; and what the errors say."""
import gc
import threading

import tieralloc
from mm_common import *
from tieralloc import InstanceMemorySettings, StreamGroups
from tieralloc._settings import NotRegisteredError

MIB = 1 << 20

# The pools.
m = Fixed()
a, b = join(m), join(m, 0.25)
m._add_manual_proportion(a, 0.5)
assert m._manual_pool == [id(a), id(b)] and m.proportion(a) == 0.5 and m.cap(a) == 4 * GIB
m._add_manual_proportion(a, 0.125)
assert m.proportion(a) == 0.125 and near(m.manual_pool_proportion, 0.375)
assert near(m._add_auto_proportion(b), 0.875) and m._auto_pool == [id(b)] and near(m._add_auto_proportion(b), 0.875)
refused(ValueError, ["between 0 and 1"], m._add_manual_proportion, a, 1.01)
refused(ValueError, ["less than 5%", "0.96"], m._add_manual_proportion, a, 0.96)
c = join(m, 0.5)
refused(ValueError, ["exceed total", "0.6"], m._add_manual_proportion, a, 0.6)
m.set_auto_limit_mode(a)
m.set_manual_proportion(c, 0.9)
refused(ValueError, ["exceed total"], m._add_manual_proportion, a, 0.2)
n = Fixed()
d = join(n)
with warned("less than 5%"):
    n._add_manual_proportion(d, 0.97)
e = Instance()
refused(ValueError, ["auto-allocation pool", "5%", "0.97"], n.register, e)
for call in (m._add_auto_proportion, lambda i: m._add_manual_proportion(i, 0.1)):
    refused(NotRegisteredError, ["not registered"], call, e)

# The constructor's state.
ready, gone = [], []
settings = {7: InstanceMemorySettings(0.25, invalidate_hook=lambda: gone.append(7), allocation_ready_hook=ready.append),
            8: InstanceMemorySettings(0.5), 9: InstanceMemorySettings(allocations={"h": np.zeros(100)})}
groups = StreamGroups({"g": [7]})
wanted = {"g": {7: {"x": request((10,))}}, "h": {8: {"y": request((1, 1, 5))}}}
f = Fixed(registry=settings, stream_groups=groups, auto_pool=[9], manual_pool=[7], queued_allocations=wanted)
assert f.registry == settings and f.registry is not settings and f._manual_pool == [7] and f._auto_pool == [8, 9]
assert [settings[i].proportion for i in (7, 8, 9)] == [0.25, 0.375, 0.375] and settings[7].cap == 2 * GIB
assert {i: f.stream_groups.get_group(i) for i in (7, 8, 9)} == {7: "g", 8: "h", 9: "default"}
assert f._budget.get(settings[9].account).bytes_live == 800 and f._budget.get(settings[7].account).name == b"7"
member = join(f, stream_group="g")
f.allocate_queue(member)
assert ready[0].arr["x"].shape == (10,) and member.responses[0].arr == {} and list(f._queued_allocations) == ["h"]
f.invalidate_all()
assert gone == [7] and f._budget.get(settings[9].account).bytes_live == 0
fresh = InstanceMemorySettings
for error, words, arguments in (
    (ValueError, ["7", "another manager's"], {"registry": {7: settings[7]}}),
    (TypeError, ["'registry'", "'7'"], {"registry": {"7": fresh()}}), (TypeError, ["'registry'", "1: 2"], {"registry": {1: 2}}),
    (NotRegisteredError, ["'auto_pool'", "5", "not in 'registry'"], {"registry": {7: fresh()}, "auto_pool": [5]}),
    (NotRegisteredError, ["'manual_pool'", "5"], {"manual_pool": [5]}),
    (ValueError, ["'auto_pool'", "'manual_pool'", "[7]"], {"registry": {7: fresh()}, "auto_pool": [7], "manual_pool": [7]}),
    (NotRegisteredError, ["'queued_allocations['g']'", "3"], {"queued_allocations": {"g": {3: {}}}}),
    (TypeError, ["'queued_allocations['g']'", "[]"], {"queued_allocations": {"g": []}}),
    (TypeError, ["Expected ArrayRequest for x"], {"registry": {7: fresh()}, "queued_allocations": {"g": {7: {"x": 1}}}}),
    (ValueError, ["7", "['g', 'h']"], {"registry": {7: fresh()}, "queued_allocations": {"g": {7: {}}, "h": {7: {}}}}),
):
    refused(error, words, Fixed, **arguments)
one, two = fresh(0.7), fresh(0.6)
refused(ValueError, ["exceed total", "0.6"], Fixed, registry={1: one, 2: two}, manual_pool=[1, 2])
assert not one.is_open and not two.is_open and one.proportion == 0.7
Fixed(registry={1: one, 2: two}, manual_pool=[1])

# The process's own manager, one of it.
made = []
threads = [threading.Thread(target=lambda: made.append(tieralloc.default_memmgr)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
from tieralloc import default_memmgr
assert len(made) == 8 and all(found is default_memmgr for found in made) and type(default_memmgr) is MemoryManager
refused(AttributeError, ["'tieralloc'", "'no_such_name'"], getattr, tieralloc, "no_such_name")

# NumPy copies an array of the device to the host, or says how to.
x = m.allocate((3, 4), np.float32, "device")
x.copy_to_device(np.arange(12, dtype=np.float32).reshape(3, 4))
for taken in (np.asarray(x), np.array(x), np.asarray(x, np.float32)):
    assert taken.shape == (3, 4) and taken.dtype == np.float32 and taken[2, 3] == 11
assert np.asarray(x, np.float64).dtype == np.float64 and np.add(x, 1)[0, 0] == 1
refused(ValueError, ["copy_to_host"], x.__array__, copy=False)

# What is asked for, and what is free.
q = MemoryManager(totalmem=100 * MIB, mode="active")
g = join(q, 0.5, stream_group="g")
free = lambda: q.get_memory_info()[0]
give = lambda label, n, **settings: q.allocate_all({label: request((n // 4,), **settings)}, id(g), q.get_stream(g))
kept = give("kept", 20 * MIB)
for kind in ("device", "pinned"):
    refused(MemoryError, [f"no {40 * MIB} bytes of {kind}", f"{20 * MIB} of {50 * MIB} bytes", f"group g, to which {30 * MIB} are available",
                          f"which has {free()} free"], give, "x", 40 * MIB, memory=kind)
refused(MemoryError, [f"no {4 * GIB} bytes of device memory on device 0, which has {free()} free"], q.allocate, (GIB,), np.float32, "device")
queue = lambda **settings: q.queue_request(g, {"y": request((1, 1, 100 * MIB // 4), total_runs=100 * MIB // 4, **settings)})
queue(unchunkable=True)
refused(ValueError, ["unchunkable", f"request size ({100 * MIB})", f"({30 * MIB}) of group g"], q.allocate_queue, g)
q.queue_request(g, {"y": request((1, 60 * MIB // 4, 2), total_runs=2), "z": request((60 * MIB // 4,))})
refused(ValueError, [f"require {60 * MIB}", f"only {30 * MIB}", "group g", f"of {180 * MIB}"], q.allocate_queue, g)
q.queue_request(g, {"y": request((1, 60 * MIB // 4, 2), total_runs=2)})
refused(ValueError, ["single run", f"Available memory: {30 * MIB}", f"Request size: {120 * MIB}", "2 runs"], q.allocate_queue, g)
for name in ("_add_auto_proportion", "_add_manual_proportion", "_check_requests", "_rebalance_auto_pool", "allocate", "allocate_all",
             "allocate_queue", "auto_pool_proportion", "cap", "change_stream_group", "compute_chunked_shapes", "create_host_array",
             "free", "from_device", "get_available_memory", "get_chunk_parameters", "get_stream", "get_stream_group", "invalidate_all",
             "is_grouped", "manual_pool_proportion", "proportion", "queue_request", "register", "reinit_streams", "set_allocator",
             "set_auto_limit_mode", "set_limit_mode", "set_manual_limit_mode", "set_manual_proportion", "stream_groups", "sync_stream",
             "to_device", "totalmem", "registry", "_mode", "_allocator", "_auto_pool", "_manual_pool", "_queued_allocations"):
    assert hasattr(q, name), name
assert g.invalidated == 0 and q.registry[id(g)].allocations == kept, "nobody gives way to what cannot be had"
print("ok")

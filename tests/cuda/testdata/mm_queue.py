"""Requests that are queued, cut alike, allocated together, and told of."""
import fractions
import gc
import math
import random

from mm_common import *
from tieralloc import ArrayResponse


def reference(chunkable, unchunkable, available, runs):
    """How the documentation has it, in whole numbers: the length of a chunk and how many there are."""
    if chunkable + unchunkable < available:
        return runs, 1
    if chunkable == 0 or unchunkable >= available:
        return None
    length = min(runs, math.floor(runs / fractions.Fraction(chunkable, available - unchunkable)))
    return (length, -(-runs // length)) if length else None


# The arithmetic, in both modes.
random.seed(5)
m = Fixed()
i = join(m, 0.5, stream_group="g")
outcomes = {}
for mode in ("passive", "active"):
    m.set_limit_mode(mode)
    for _ in range(1500):
        runs = random.choice((1, 2, 7, 1000, random.randrange(1, 10**6)))
        rows, fixed = random.randrange(1, 5000), random.choice((0, 0, random.randrange(1, 10**8)))
        m.free = random.choice((random.randrange(1, 10**4), random.randrange(1, 2**33), rows * runs * 4 + fixed * 4, 8 * GIB))
        wanted = {id(i): {"x": request((rows, runs), chunk_axis_index=1)}, 5: {"u": request((fixed,))}}
        available = min(m.free, m.cap(i)) if mode == "active" else m.free
        cut = 0 if runs == 1 else rows * runs * 4
        expected = reference(cut, fixed * 4 + rows * runs * 4 - cut, available, runs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = m.get_chunk_parameters(wanted, runs, "g")
            except ValueError:
                found = None
        assert found == expected, (mode, rows, fixed, runs, m.free, found, expected)
        outcomes[mode, "fits" if found == (runs, 1) else "cut" if found else "refused"] = found
assert len(outcomes) == 6, outcomes  # all of them were seen
m.set_limit_mode("passive")

# The errors and warnings, with their figures.
m.free = 1000
wanted = {0: {"x": request((1, 1, 250))}}
assert m.get_chunk_parameters(wanted, 250, "g") == (250, 1)  # 1000 is not below 1000, and cut into one
assert m.get_chunk_parameters({0: {"x": request((1, 1, 251))}}, 251, "g") == (250, 2)
assert m.get_chunk_parameters({}, 1, "g") == (1, 1)
refused(ValueError, ["unchunkable", "1004", "(1000)"], m.get_chunk_parameters, {0: {"x": request((1, 1, 251), unchunkable=True)}}, 251, "g")
refused(ValueError, ["unchunkable", "require 1000", "only 1000"], m.get_chunk_parameters,
        {0: {"x": request((1, 1, 2)), "u": request((250,))}}, 2, "g")
refused(ValueError, ["single run", "1000", "2008"], m.get_chunk_parameters, {0: {"x": request((1, 251, 2))}}, 2, "g")
with warned():
    assert m.get_chunk_parameters({0: {"x": request((1, 1, 5000))}}, 5000, "g") == (250, 20)  # just 20 times
with warned("more than 20x. Available VRAM = 1000, request size = 20004"):
    assert m.get_chunk_parameters({0: {"x": request((1, 1, 5001))}}, 5001, "g") == (250, 21)
for wrong in (0, -1, True, 1.5, None, 1 << 63):
    refused(ValueError, ["axis_length", repr(wrong)], m.get_chunk_parameters, wanted, wrong, "g")
refused(TypeError, ["group", "3"], m.get_chunk_parameters, wanted, 1, 3)
refused(TypeError, ["ArrayRequest"], m.get_chunk_parameters, {0: {"x": 1}}, 1, "g")

# What is available to a group.
assert m.get_available_memory("g") == m.get_available_memory("nobody") == 1000
m.set_limit_mode("active")
m.free = 8 * GIB
assert m.get_available_memory("g") == 4 * GIB and m.get_available_memory("nobody") == 0
m.registry[id(i)].add_allocation("x", np.broadcast_to(np.float32(0), (GIB * 19 // 20,)))
with warned():
    left = m.get_available_memory("g")
assert 0 <= left - 4 * GIB // 20 < 8
m.registry[id(i)].add_allocation("y", np.zeros(2))
with warned("Stream group g has used more than 95%"):
    assert m.get_available_memory("g") == left - 16
with warned("Stream group g has used more than 95%"):
    m.get_chunk_parameters(wanted, 250, "g")
m.registry[id(i)].add_allocation("y", np.broadcast_to(np.float32(0), (GIB,)))
with warned("95%"):
    assert m.get_available_memory("g") == 0  # not below
m.free_all()
m.set_limit_mode("passive")

# Shapes of chunks.
shapes = m.compute_chunked_shapes({"x": request((2, 3, 100)), "u": request((2, 3, 100), unchunkable=True), "s": request((7,)),
                                   "a": request((50, 2), chunk_axis_index=0), "short": request((1, 1, 10))}, 40)
assert shapes == {"x": (2, 3, 40), "u": (2, 3, 100), "s": (7,), "a": (40, 2), "short": (1, 1, 10)}

# The queue: a second request replaces the first; each member is told once, those without requests, too.
m.free = 1000
j, k, far = join(m, stream_group="g"), join(m, stream_group="g"), join(m, stream_group="far")
refused(TypeError, ["Expected dict", "list"], m.queue_request, i, [])
refused(TypeError, ["Expected ArrayRequest for x", "int"], m.queue_request, i, {"x": 1})
m.queue_request(i, {"old": request((1, 1, 9), total_runs=9)})
first, second = {"x": request((1, 2, 100), total_runs=100)}, {"once": request((3,)), "y": request((1, 100), np.float64, chunk_axis_index=1, total_runs=100)}
m.queue_request(i, first)
m.queue_request(far, {"z": request((5,))})
m.queue_request(j, second)
assert m._queued_allocations == {"g": {id(i): first, id(j): second}, "far": {id(far): {"z": request((5,))}}}
m.allocate_queue(k)  # 988 bytes are for 1600 that can be cut: 61 runs
assert [len(x.responses) for x in (i, j, k, far)] == [1, 1, 1, 0]
a, b, c = (x.responses[0] for x in (i, j, k))
assert (a.chunks, a.chunk_length, a.chunked_shapes) == (2, 61, {"x": (1, 2, 61)})
assert (b.chunks, b.chunk_length, b.chunked_shapes) == (2, 61, {"once": (3,), "y": (1, 61)})
assert c == ArrayResponse({}, 2, 61, {})
assert a.arr["x"].shape == (1, 2, 61) and b.arr["y"].shape == (1, 61) and b.arr["y"].dtype == np.float64 and b.arr["once"].shape == (3,)
assert m.registry[id(j)].allocations == b.arr and m.registry[id(i)].allocations == a.arr
assert first["x"].shape == (1, 2, 100), "the program's own request is as it was"
assert sum(x.nbytes for x in (*a.arr.values(), *b.arr.values())) <= 1000
m.allocate_queue(k)  # nothing is left, so nobody is told
assert [len(x.responses) for x in (i, j, k, far)] == [1, 1, 1, 0]
assert m._queued_allocations == {"far": {id(far): {"z": request((5,))}}}

# Without chunks arrays are as they were asked for, whichever runs are the most.
m.free = GIB
m.queue_request(i, {"once": request((2, 2), total_runs=1), "x": request((2, 2, 2), total_runs=2)})
m.queue_request(j, {"y": request((3, 3, 3), total_runs=3)})
m.allocate_queue(i)
assert (i.responses[1].arr["x"].shape, j.responses[1].arr["y"].shape) == ((2, 2, 2), (3, 3, 3))
assert (i.responses[1].chunks, i.responses[1].chunk_length) == (1, 3)
assert set(m.registry[id(i)].allocations) == {"x", "once"} and set(m.registry[id(j)].allocations) == {"once", "y"}

# A failure: everything is as it was. (Nobody gives way, since the group's stream is at work.)
before = {x: (dict(m.registry[id(x)].allocations), m.statistics(x)["bytes_live"]) for x in (i, j)}
wanted = {"one": request((1000, 10), total_runs=10), "two": request((2000, 5), memory="pinned", total_runs=10)}
m.queue_request(i, {"ok": request((5000,))})
m.queue_request(j, wanted)
busy = i.responses[1].arr["x"].__cuda_array_interface__
cuda.fake_launch(ctypes.c_uint64(busy["data"][0]), ctypes.c_size_t(32), 1, ctypes.c_void_p(busy["stream"]))
cuda.fake_fail(b"cuMemHostAlloc", 1, 2)
try:
    m.allocate_queue(i)
except MemoryError as error:  # while it is here, so is its traceback
    assert all(word in str(error) for word in ("pinned", "40000", "group g")), error
    assert before == {x: (dict(m.registry[id(x)].allocations), m.statistics(x)["bytes_live"]) for x in (i, j)}
else:
    raise AssertionError("there was no room")
assert before == {x: (dict(m.registry[id(x)].allocations), m.statistics(x)["bytes_live"]) for x in (i, j)}
assert list(m._queued_allocations["g"]) == [id(i), id(j)] and len(i.responses) == 2
m.free = 100
with warned("request size = 100000"):
    refused(ValueError, ["unchunkable"], m.allocate_queue, i)
assert list(m._queued_allocations["g"]) == [id(i), id(j)] and len(i.responses) == 2
m.free = GIB
m.allocate_queue(j)
assert len(i.responses) == len(j.responses) == 3 and j.responses[2].arr["two"].shape == (2000, 5)

# An error in a hook: the others are told all the same, and it is raised.
def fails(response):
    calls.append(response.chunks)
    raise KeyError("hook")


calls = []
bad = Instance()
m.register(bad, allocation_ready_hook=fails, stream_group="g")
m.queue_request(bad, {"x": request((1,))})
refused(KeyError, ["hook"], m.allocate_queue, bad)
assert calls == [1] and [len(x.responses) for x in (i, j, k)] == [4, 4, 4] and "x" in m.registry[id(bad)].allocations

# What moves to another group takes its requests along; what is garbage takes them away.
m.queue_request(k, {"x": request((4,))})
m.change_stream_group(k, "far")
m.allocate_queue(i)
assert len(k.responses) == 4
m.allocate_queue(far)
assert k.responses[4].arr["x"].shape == (4,) and far.responses[0].arr["z"].shape == (5,)
m.queue_request(k, {"x": request((4,))})
del before, k
gc.collect()
assert m._queued_allocations.get("far", {}) == {}

# A computation that is cut gives what it gives whole.
m.free = 4096
data = np.arange(3 * 1000, dtype=np.float32).reshape(3, 1000)
m.queue_request(far, {"in": request((3, 1000), chunk_axis_index=1, total_runs=1000)})
m.allocate_queue(far)
response, out = far.responses[-1], np.zeros_like(data)
assert response.chunks == 3 and response.chunk_length == 341
for chunk in range(response.chunks):
    runs = slice(chunk * response.chunk_length, (chunk + 1) * response.chunk_length)
    part = np.zeros(response.chunked_shapes["in"], np.float32)
    part[:, :data[:, runs].shape[1]] = data[:, runs]
    m.to_device(far, [part], [response.arr["in"]])
    m.from_device(far, [response.arr["in"]], [part])
    m.sync_stream(far)
    out[:, runs] = part[:, :data[:, runs].shape[1]] * 2
assert (out == data * 2).all()
print("ok")

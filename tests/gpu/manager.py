"""The memory manager on a device. Usage: manager.py chunks|limit|eviction cupy|numba [CAP in MiB]

    chunks    runs whose arrays take five times a component's cap, cut into chunks, have the
              same results as all at once
    limit     what is beyond the cap is refused, and nothing else
    eviction  a component that has nothing to do gives way, one that works does not

The library must be preloaded, and python/ be on PYTHONPATH. Prints a summary; status 1 and
what was wrong, when something was."""

import gc
import sys

import numpy as np
from tieralloc import ArrayRequest, MemoryManager

import kernels

what, launcher = sys.argv[1:3]
CAP = int(sys.argv[3] if len(sys.argv) > 3 else 256) << 20
STEPS = 64


def check(held, what):
    if not held:
        sys.exit(f"wrong: {what}")


class Component:
    """A solver of runs: it has what its hook was given last."""

    def __init__(self, manager, cap, group="default"):
        self.manager, self.response, self.invalidated = manager, None, 0
        manager.register(self, proportion=cap / manager.totalmem, stream_group=group,
                         invalidate_cache_hook=self.invalidate, allocation_ready_hook=self.ready)

    def invalidate(self):
        self.invalidated += 1

    def ready(self, response):
        self.response = response

    def ask(self, **shapes):
        """Arrays by label, of so many rows and runs."""
        runs = max(shape[1] for shape in shapes.values())
        self.manager.queue_request(self, {label: ArrayRequest(dtype=np.float32, shape=shape, chunk_axis_index=1, total_runs=runs)
                                          for label, shape in shapes.items()})
        self.manager.allocate_queue(self)
        return self.response


def new_manager(mode):
    manager = MemoryManager(mode="passive")
    manager.set_limit_mode(mode)
    return manager


def address(array):
    return array.__cuda_array_interface__["data"][0]


def handle(stream):
    found = getattr(stream, "handle", stream)
    return int(getattr(found, "value", found) or 0)


def solve(manager, component, inputs):
    """The results of all runs, chunk by chunk, and how many chunks there were."""
    runs = inputs.shape[1]
    got = component.ask(x=(STEPS, runs), y=(STEPS, runs))
    length, out = got.chunk_length, np.empty_like(inputs)
    shape = tuple(got.arr["x"].shape)
    check(got.chunks == -(-runs // length) and shape == (STEPS, min(length, runs)), f"{got.chunks} chunks of {length} runs, {shape}")
    to, back = (manager.create_host_array(shape, np.float32) for _ in range(2))
    for start in range(0, runs, length):
        n = min(length, runs - start)
        to[:, :n] = inputs[:, start:start + n]
        manager.to_device(component, [to], [got.arr["x"]])
        steps(handle(manager.get_stream(component)), n, address(got.arr["y"]), address(got.arr["x"]), STEPS, shape[1], n)
        manager.from_device(component, [got.arr["y"]], [back])
        manager.sync_stream(component)
        out[:, start:start + n] = back[:, :n]
    return out, got.chunks


def chunks():
    runs = 5 * CAP // (2 * STEPS * 4)
    inputs = np.random.default_rng(1).random((STEPS, runs), dtype=np.float32)
    check(2 * inputs.nbytes == 5 * CAP, "the size")
    manager = new_manager("active")
    cut, n = solve(manager, Component(manager, CAP), inputs)
    check(n >= 5, f"{n} chunks for five times the cap")
    passive = new_manager("passive")
    whole, one = solve(passive, Component(passive, CAP), inputs)
    check(one == 1, f"{one} chunks without a cap")
    check(np.array_equal(cut, whole), "the chunks have other results")
    expected = np.zeros(runs, dtype=np.float32)
    for k in range(STEPS):
        expected = np.float32(0.5) * expected + inputs[k]
        check(np.allclose(whole[k], expected, rtol=1e-6, atol=0), f"step {k} has other results than the host")
    return f"{n} chunks, {cut.size} values"


def limit():
    manager = new_manager("active")
    component = Component(manager, CAP)
    cap = manager.cap(component)
    check(CAP - 1 <= cap <= CAP, f"cap {cap}")
    stream, had, refused, size = manager.get_stream(component), 0, 0, CAP // 16
    request = ArrayRequest(dtype=np.float32, shape=(size // 4,), chunk_axis_index=None)
    for label in (f"a{i}" for i in range(40)):
        try:
            arrays = manager.allocate_all({label: request}, id(component), stream)
        except MemoryError:
            refused += 1
            break
        had += size
        arrays[label].copy_to_device(np.full(size // 4, len(component_arrays(manager, component)), dtype=np.float32))
        del arrays
    check(refused and cap - size < had <= cap, f"{had} bytes were had under a cap of {cap}")
    for i, array in enumerate(component_arrays(manager, component)):
        values = array.copy_to_host()
        check(values[0] == i + 1 and values[-1] == i + 1, f"array {i} has other values")
    del array
    manager.free("a0")
    gc.collect()
    manager.allocate_all({"again": request}, id(component), stream)
    return f"{had >> 20} MiB had under a cap of {cap >> 20} MiB, the rest refused:"


def component_arrays(manager, component):
    return list(manager.registry[id(component)].allocations.values())


def eviction():
    manager = new_manager("active")
    idle, other = Component(manager, CAP, "shared"), Component(manager, CAP, "shared")
    rows = 4
    most = (2 * CAP - CAP // 8) // (4 * rows)
    idle.ask(a=(rows, most))
    manager.sync_stream(idle)
    check(idle.invalidated == 0, "evicted before there was need")
    idle.response = None
    gc.collect()
    n = (CAP - CAP // 64) // 4
    request = {"b": ArrayRequest(dtype=np.float32, shape=(n,), chunk_axis_index=None)}
    arrays = manager.allocate_all(request, id(other), manager.get_stream(other))
    check(idle.invalidated == 1 and not component_arrays(manager, idle), f"the idle one was invalidated {idle.invalidated} times")
    values = np.arange(n, dtype=np.float32)
    arrays["b"].copy_to_device(values)
    check(np.array_equal(arrays["b"].copy_to_host(), values), "other values")
    return f"{idle.invalidated} eviction, {values.size} values"


_, steps = kernels.load(launcher)
print({"chunks": chunks, "limit": limit, "eviction": eviction}[what](), "right")

"""Random rounds of MemoryManagers that share a device of the fake driver: rounds.py SEED ROUNDS.

A round is a few instances in groups, some with arrays, some at work; one group queues, and queues the
same again. What must hold is computed here from what the driver and the accounts say:

  - chunks cover the runs, and are the same for all of the group, and when the same is queued again
  - MemoryError and ValueError come only where a single run does not fit what is free
  - whoever gave way was idle, and nobody did where there was room
  - where something is cut, nobody is left who is idle and has what is short
  - an account has what its arrays take, and in the end nobody has anything
"""
import ctypes
import gc
import random
import sys
import warnings
import weakref

import numpy as np

from tieralloc import ArrayRequest, MemoryManager

MIB = 1 << 20
UNIT = 2 * MIB  # what the driver maps at once

cuda = ctypes.CDLL("libcuda.so.1")
cuda.fake_used.restype = ctypes.c_size_t
cuda.fake_illegals.restype = ctypes.c_ulong
warnings.simplefilter("ignore")


class Instance:
    """Keeps its last response; or, if it holds, the arrays themselves until it is told that they are void."""

    def __init__(self, holds, manager):
        self.manager, self.at_work = weakref.ref(manager), 0  # how often it was told while its stream worked
        self.holds, self.told, self.heard, self.response, self.held = holds, 0, 0, None, {}

    def ready(self, response):
        self.heard += 1
        self.chunks, self.length, self.shapes = response.chunks, response.chunk_length, response.chunked_shapes
        if self.holds:
            self.held.update(response.arr)
        else:
            self.response = response

    def invalidate(self):
        self.told += 1
        stream = self.manager().stream_groups.get_stream(self)
        self.at_work += cuda.cuStreamQuery(ctypes.c_void_p(stream.handle)) != 0
        self.held.clear()


def up(n, unit):
    return -(-n // unit) * unit


def footprint(sizes):
    """What the device heap takes for arrays at most: whole units from 1 MiB on; smaller ones may fill units by halves."""
    return sum(up(n, UNIT) for n in sizes if n >= MIB) + up(2 * sum(up(n, 512) for n in sizes if n < MIB), UNIT)


def is_cut(request):
    axis = request.chunk_axis_index
    return not request.unchunkable and axis is not None and axis < len(request.shape) and request.shape[axis] != 1


def sizes_of(requests, length, kinds=("device",)):
    """Bytes of the arrays of such kinds in chunks of so many runs."""
    sizes = []
    for request in requests:
        shape = list(request.shape)
        if is_cut(request):
            shape[request.chunk_axis_index] = min(length, shape[request.chunk_axis_index])
        if request.memory in kinds:
            sizes.append(int(np.prod(shape, dtype=object)) * request.itemsize)
    return sizes


class Round:
    def __init__(self, draw, total):
        self.draw, self.total, self.trims = draw, total, draw.random() < 0.5
        self.managers = [MemoryManager(mode=draw.choice(("passive", "active"))) for _ in range(draw.choice((1, 1, 2)))]
        self.instances = []  # (manager, instance)
        for _ in range(draw.randint(1, 5)):
            manager, holds = draw.choice(self.managers), draw.random() < 0.25
            instance = Instance(holds, manager)
            part = draw.choice((None, None, 0.1, 0.15))
            manager.register(instance, part, instance.invalidate, instance.ready, draw.choice(("default", "g", "h")))
            self.instances.append((manager, instance))

    def requests(self, most):
        """What an instance wants, of so many bytes about."""
        draw, wanted = self.draw, {}
        runs = draw.choice((1, 2, 10, 1000, draw.randint(1, 1 << 20)))
        for n in range(draw.choice((1, 1, 2, 3, 8, 40))):
            bytes_ = int(most * 2 ** -draw.uniform(0, 10))
            dtype = draw.choice((np.float32, np.float64))
            kind = draw.choice(("device",) * 8 + ("mapped", "pinned"))
            fixed = draw.random() < 0.1
            rows = max(1, bytes_ // runs // np.dtype(dtype).itemsize // (50 if fixed else 1))
            wanted[f"a{n}"] = ArrayRequest(dtype, (1, rows, runs), memory=kind, unchunkable=fixed, total_runs=runs)
        return wanted

    def fill(self):
        """Give some instances arrays."""
        for manager, instance in self.instances:
            if self.draw.random() < 0.6:
                n = int(self.total * 2 ** -self.draw.uniform(0, 8)) // 4
                try:
                    if self.draw.random() < 0.5:
                        manager.queue_request(instance, self.requests(n))
                        manager.allocate_queue(instance)
                    else:
                        manager.allocate_all({"b": ArrayRequest(np.float32, (n,))}, id(instance), manager.get_stream(instance))
                except (MemoryError, ValueError):
                    manager.queue_request(instance, {})

    def live(self, manager, instance):
        return manager.statistics(instance)["bytes_live"]

    def balanced(self):
        """Every account has what its arrays take: the manager's, and those that the instance holds."""
        for manager, instance in self.instances:
            arrays = {id(a): a.nbytes for a in manager.registry[id(instance)].allocations.values()}
            response = instance.response.arr.values() if instance.response else ()
            arrays.update((id(a), a.nbytes) for a in (*instance.held.values(), *response))
            assert self.live(manager, instance) == sum(arrays.values()), (self.live(manager, instance), arrays)

    def work(self, groups):
        """Have the streams of some groups work, and all others done."""
        cuda.fake_complete_all()
        for manager, instance in self.instances:
            if (manager, manager.get_stream_group(instance)) in groups:
                groups.discard((manager, manager.get_stream_group(instance)))
                stream = manager.stream_groups.get_stream(instance)
                address = ctypes.c_uint64(scratch.ctypes.data)
                assert cuda.fake_launch(address, ctypes.c_size_t(4), 1, ctypes.c_void_p(stream.handle)) == 0

    def queue(self, manager, takers, wanted, busy):
        """Queue, and hold what comes to what must hold. The chunks, or None."""
        group = manager.get_stream_group(takers[0])
        self.work(set(busy))
        requests = [request for its in wanted for request in its.values()]
        others = [(m, i) for m, i in self.instances if m is not manager or i not in takers]
        told = {id(i): i.told for _, i in self.instances}
        heard = {id(i): i.heard for _, i in self.instances}
        for instance, its in zip(takers, wanted):
            manager.queue_request(instance, its)
        if self.trims:
            ctypes.CDLL(None).ta_cuda_trim()
        room, free = manager.get_available_memory(group), self.total - cuda.fake_used(0)
        runs = max([request.total_runs for request in requests])
        plain = sum(sizes_of(requests, runs, ("device", "mapped", "pinned")))
        failed = None
        try:
            manager.allocate_queue(takers[0])
        except (MemoryError, ValueError) as error:
            failed = type(error), str(error)
        assert not any(i.at_work for _, i in others), "one that is at work gave way"
        if plain < room and self.trims and footprint(sizes_of(requests, runs)) <= free:
            assert all(i.told == told[id(i)] for _, i in others), ("somebody gave way though there was room", plain, room, free, failed)
        self.balanced()
        if failed:
            for instance in takers:
                manager.queue_request(instance, {})
            left = manager.get_available_memory(group)
            shortest = 1 if any(map(is_cut, requests)) else runs
            least = sum(sizes_of(requests, shortest, ("device", "mapped", "pinned")))
            ctypes.CDLL(None).ta_cuda_trim()  # what then is free has no pieces of others' segments
            if failed[0] is ValueError:
                assert least >= left, (failed, least, left)
            else:
                assert footprint(sizes_of(requests, shortest)) > self.total - cuda.fake_used(0), (failed, least, left)
            return None
        first = takers[0]
        for instance, its in zip(takers, wanted):
            assert instance.heard == heard[id(instance)] + 1
            assert (instance.chunks, instance.length) == (first.chunks, first.length)
            for key, request in its.items():
                shape = list(request.shape)
                if is_cut(request) and first.chunks > 1:
                    shape[2] = min(first.length, shape[2])
                assert instance.shapes[key] == tuple(shape) == manager.registry[id(instance)].allocations[key].shape
        assert 1 <= first.length <= runs and first.chunks == -(-runs // first.length)
        if first.chunks > 1:
            short_of_group = manager._mode == "active" and manager._budget.available(group, 1 << 62)[0] < manager.get_memory_info()[0]
            for m, i in others:
                mine = m is manager and m.get_stream_group(i) == group
                if (m, m.get_stream_group(i)) in busy or short_of_group and not mine:
                    continue
                assert self.live(m, i) == 0 or i.told > told[id(i)] or not self.on_device(m, i), "one that is idle was not asked"
        return first.chunks, first.length

    def on_device(self, manager, instance):
        return any(type(a).__name__ == "DeviceArray" for a in manager.registry[id(instance)].allocations.values())

    def run(self):
        """How often something was cut, whole or refused."""
        self.fill()
        self.balanced()
        manager, first = self.draw.choice(self.instances)
        group = manager.get_stream_group(first)
        members = [i for m, i in self.instances if m is manager and m.get_stream_group(i) == group]
        takers = [i for i in members if i is first or self.draw.random() < 0.5]
        most = self.total * 2 ** self.draw.uniform(-6, 4)
        wanted = [self.requests(most / len(takers)) for _ in takers]
        groups = dict.fromkeys((m, m.get_stream_group(i)) for m, i in self.instances)
        busy = [its for its in groups if self.draw.random() < 0.3]
        if any(i.holds for i in takers):  # those are told only when they are idle
            busy = [its for its in busy if its != (manager, group)]
        seen = self.queue(manager, takers, wanted, busy)
        for _ in range(self.draw.randint(1, 3) if seen else 0):
            told = sum(i.told for _, i in self.instances if i not in takers)
            again = self.queue(manager, takers, wanted, busy)
            # The driver waits for all work when it takes memory back: who was at work may have given way since.
            assert again == seen or told != sum(i.told for _, i in self.instances if i not in takers), (seen, again)
            seen = again
        return "refused" if seen is None else "cut" if seen[0] > 1 else "whole"


def main(seed, rounds):
    global scratch
    probe = MemoryManager()
    scratch = probe.allocate((1,), np.int32, "mapped")  # what work writes to
    total = probe.get_memory_info()[1]
    outcomes = {}
    for number in range(rounds):
        draw = random.Random(f"{seed}.{number}")
        this = Round(draw, total)
        try:
            outcome = this.run()
        except BaseException:
            print(f"round {seed}.{number} of {total >> 20} MiB", file=sys.stderr)
            raise
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        cuda.fake_complete_all()
        del this
        gc.collect()
        free = probe.get_memory_info()[0]
        assert free == total, f"round {seed}.{number}: {total - free} bytes are not free in the end"
    assert cuda.fake_illegals() == 0
    assert rounds < 100 or min(outcomes.get(k, 0) for k in ("cut", "whole", "refused")) > rounds // 50, outcomes
    print(outcomes, file=sys.stderr)
    print("ok")


main(int(sys.argv[1]), int(sys.argv[2]))

"""Hooks, finalizers and threads that come at any moment, and contexts that end."""
import gc
import os
import sys
import threading
import weakref

import tieralloc
from mm_common import *
from tieralloc import _members

MIB = 1 << 20
only = sys.argv[1:]


def case(function):
    """Run it, unless others are asked for."""
    if not only or function.__name__ in only:
        function()
        gc.collect()


def live(manager, instance):
    return manager.statistics(instance)["bytes_live"]


def give(manager, instance, n, label="x", **settings):
    return manager.allocate_all({label: request((n // 4,), **settings)}, id(instance), manager.get_stream(instance))


@case
def asked_once():
    """A hook that works with its instance, and whose arrays stay, is called once for an allocation."""
    m = MemoryManager(totalmem=100 * MIB, mode="active")
    a, b = Instance(), join(m, stream_group="g")
    calls = []

    def again():
        calls.append(m.get_stream(a))
        assert len(calls) < 5

    m.register(a, invalidate_cache_hook=again, stream_group="g")
    kept = give(m, a, 60 * MIB)
    refused(MemoryError, [str(50 * MIB)], give, m, b, 50 * MIB)
    assert len(calls) == 1, len(calls)
    del kept


@case
def nested():
    """Hooks that allocate have nobody else give way: they do not call each other without end."""
    m = MemoryManager(totalmem=100 * MIB, mode="active")
    instances, calls = [Instance() for _ in range(3)], []

    def hook(i):
        calls.append(i)
        refused(MemoryError, [], give, m, instances[i], 90 * MIB, "y")

    kept = []
    for i, instance in enumerate(instances):
        m.register(instance, invalidate_cache_hook=lambda i=i: hook(i), stream_group="g")
        kept.append(give(m, instance, 30 * MIB))
    refused(MemoryError, [], give, m, instances[2], 20 * MIB, "z")
    assert calls == [0, 1], calls


@case
def finalizers_do_not_wait():
    """What becomes garbage leaves at once, though another thread is at work with the groups."""
    m = MemoryManager()
    instance, held, over = join(m), threading.Event(), threading.Event()

    def hold():
        with m.stream_groups._lock, m._lock:
            held.set()
            over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    done = []
    box = [instance]
    del instance
    other = threading.Thread(target=lambda: (box.clear(), done.append(1)), daemon=True)
    other.start()
    other.join(20)
    told = list(done)
    over.set()
    thread.join()
    other.join()
    assert told == [1], "a finalizer waited for a lock"
    assert m.registry == {} and m.stream_groups.groups == {"default": []}


class Slow(str):
    """A label during whose look-up something else happens."""

    during = None

    def __hash__(self):
        call, Slow.during = Slow.during, None
        if call is not None:
            call()
        return super().__hash__()

    __eq__ = str.__eq__


@case
def freed_by_two():
    """An array that an instance is deprived of while the program frees it."""
    m = MemoryManager()
    a = join(m)
    settings = m.registry[id(a)]
    for _ in range(2):  # in the first and in the second look-up
        label = Slow("x")
        settings.add_allocation(label, np.zeros(10))
        assert live(m, a) == 80
        skip = [None] * _

        def during():
            if skip:
                skip.pop()
                Slow.during = during
            else:
                settings.give_way()

        Slow.during = during
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            settings.free(label)
        Slow.during = None
        assert settings.allocations == {} and live(m, a) == 0
    with warned():  # give_way does not warn of what another has freed
        settings.add_allocation("y", np.zeros(10))
        settings.free_all()


@case
def collected_while_listed():
    """Instances that are garbage in a cycle leave while the manager lists them."""
    m = Fixed()
    stays = [join(m) for _ in range(3)]
    old = gc.get_threshold()
    for after in range(1, 60):  # the collection comes at another moment each time
        for look in (lambda: m._auto_pool, m.reinit_streams):
            gc.disable()
            for _ in range(40):
                cycle = join(m)
                cycle.me = cycle
            del cycle
            taken = [(i, i) for i in range(3000)]  # so that the next one is new memory, which counts
            gc.set_threshold(gc.get_count()[0] + after, 1000, 1000)
            gc.enable()
            try:
                look()
            finally:
                gc.set_threshold(*old)
            del taken
            gc.collect()
    assert sorted(m._auto_pool) == sorted(map(id, stays))


@case
def left_while_allocating():
    """An account that ends while a block for it is refused goes with that, not later."""
    m = MemoryManager(name="left")
    a = join(m)
    budget, account = m._budget, m.registry[id(a)].account
    budget._leaving.add(account)  # it could not go while the block was on its way
    assert budget.alloc(account, GIB << 10, "device", 0) == (0, 0)
    assert budget._leaving == set()


@case
def context_reset():
    """After a reset the arrays of before are void: letting them go frees nothing of what came after."""
    m = MemoryManager(name="reset")
    a = join(m)
    old = {kind: give(m, a, 4 * MIB, kind, memory=kind)[kind] for kind in ("device", "pinned", "mapped", "managed")}
    assert cuda.cuDevicePrimaryCtxReset_v2(0) == 0
    for stream in m.stream_groups.streams.values():
        stream._finalizer.detach()
    assert live(m, a) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0) == 0
    m.reinit_streams()
    # A block that has the address of one of them, as the driver may give it out again.
    real, frees = tieralloc._library._functions.copy(), []
    address = old["pinned"].ctypes.data
    tieralloc._library._functions.update(ta_mm_alloc=lambda *_: address, ta_mm_free=lambda *its: frees.append(its[1:]) or 0)
    try:
        number = m._budget.alloc(m.registry[id(a)].account, 10, "pinned", 0)[1]
        m.free_all()
        old.clear()
        gc.collect()
        before = [its for its in frees if its[0] == address]
        m._budget.free(address, number, 0)
    finally:
        tieralloc._library._functions.update(real)
    assert before == [] and frees[-1] == (address, 0), "an array of before the reset took one of after it along"


@case
def moved():
    """An array whose instance works on another stream by now is not another's before that is done."""
    m = MemoryManager()
    a, b = join(m, stream_group="g"), join(m, stream_group="g")
    first = m.get_stream(a)
    x = give(m, a, 4000)["x"]
    where = ctypes.c_uint64(x.__cuda_array_interface__["data"][0]), ctypes.c_size_t(4000)
    m.change_stream_group(a, "h")
    second = ctypes.c_void_p(m.get_stream(a).handle)
    assert cuda.fake_launch(*where, 1, second) == 0
    del x
    m.free("x")
    y = give(m, b, 4000)["x"]
    where = ctypes.c_uint64(y.__cuda_array_interface__["data"][0]), ctypes.c_size_t(4000)
    assert not cuda.fake_busy(*where, ctypes.c_void_p(first.handle), 1)
    # The stream is there as long as it may be asked whether it is done.
    second, stream = None, weakref.ref(m.get_stream(a))
    m.stream_groups.streams.clear()
    gc.collect()
    assert stream() is not None
    m.reinit_streams()
    m.get_stream(a)
    gc.collect()
    assert stream() is None


@case
def captured():
    """An array that becomes garbage while a graph is captured does not spoil that."""
    m = MemoryManager()
    a, graph = join(m), ctypes.c_void_p()
    side = tieralloc.Stream()
    kept = [give(m, a, 4000, kind, memory=kind)[kind] for kind in ("device", "pinned", "mapped", "managed")]
    kept += [m.allocate((10,), np.float32, kind, m.get_stream(a)) for kind in ("device", "pinned", "mapped", "managed")]
    frees = [cuda.fake_calls(name) for name in (b"cuMemFree_v2", b"cuMemFreeHost")]
    assert cuda.cuStreamBeginCapture_v2(ctypes.c_void_p(side.handle), 0) == 0
    m.free_all()
    kept.clear()
    gc.collect()
    assert cuda.cuStreamEndCapture(ctypes.c_void_p(side.handle), ctypes.byref(graph)) == 0 and graph.value
    assert [cuda.fake_calls(name) for name in (b"cuMemFree_v2", b"cuMemFreeHost")] == [frees[0] + 2, frees[1] + 4]


@case
def temporary():
    """A copy from an array that must be put in order first is done before that goes."""
    m = MemoryManager()
    a = join(m)
    x, stream = give(m, a, 400)["x"], m.get_stream(a)
    for source, waits in ((np.ones(100, np.float32), 0), (np.ones(200, np.float32)[::2], 1)):
        before = cuda.fake_calls(b"cuStreamSynchronize")
        x.copy_to_device(source, stream=stream)
        assert cuda.fake_calls(b"cuStreamSynchronize") - before == waits, waits


@case
def forked():
    """A child that lets go of what its parent has says nothing, and the parent still has it."""
    m = MemoryManager(totalmem=100 * MIB, mode="active")
    a = join(m)
    kept = [give(m, a, MIB, kind, memory=kind)[kind] for kind in ("device", "pinned", "mapped", "managed")]
    kept += [m.allocate((10,), np.float32, kind) for kind in ("device", "pinned", "mapped", "managed")]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            kept.clear()
            m.free_all()
            refused(RuntimeError, [], give, m, a, MIB)
            del m, a
            gc.collect()
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert live(m, a) == 4 * MIB and kept[0].copy_to_host().nbytes == MIB


@case
def limits():
    """What the library does not count with is refused where it is given."""
    refused(ValueError, ["'totalmem'", str(1 << 62)], Fixed, totalmem=(1 << 62) + 1)
    m = Fixed(totalmem=1 << 62)
    a = join(m)
    assert m.cap(a) == 1 << 62
    refused(ValueError, ["axis_length", str((1 << 62) + 1)], m.get_chunk_parameters, {}, (1 << 62) + 1, "default")


@case
def mode_set_at_first():
    """A mode that is set while the library's side is made is that of both."""
    m = Fixed()
    made, go = threading.Event(), threading.Event()

    class Held(_members.Budget):
        def set_mode(self, mode):
            super().set_mode(mode)
            made.set()
            go.wait(60)

    was, _members.Budget = _members.Budget, Held
    try:
        maker = threading.Thread(target=lambda: m.manual_pool_proportion)
        maker.start()
        made.wait(60)
        setter = threading.Thread(target=m.set_limit_mode, args=("active",))
        setter.start()
        setter.join(0.2)
        go.set()
        maker.join()
        setter.join()
    finally:
        _members.Budget = was
    a = join(m)
    with warned():
        assert m._mode == "active" and m.get_available_memory("nobody") == 0, "the library is passive"


print("ok")

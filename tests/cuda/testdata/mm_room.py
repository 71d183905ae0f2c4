"""Room for queues: what they replace, who is idle, and chunks that fit as the device heap rounds."""
import gc

from mm_common import *

MIB = 1 << 20
warnings.simplefilter("ignore")


class Keeps(Instance):
    """Keeps the last response, as programs do."""

    response = None

    def ready(self, response):
        self.response = response


class Holds(Keeps):
    """Keeps the arrays by themselves, until it is told that they are void."""

    arrays = ()

    def ready(self, response):
        self.response, self.arrays = None, list(response.arr.values())
        self.chunks = response.chunks, response.chunk_length

    def invalidate(self):
        super().invalidate()
        self.arrays = ()


def member(manager, kind=Keeps, **settings):
    instance = kind()
    manager.register(instance, invalidate_cache_hook=instance.invalidate, allocation_ready_hook=instance.ready, **settings)
    return instance


def cut(mib, runs=1 << 10, **settings):
    """A request of so many MiB, which can be cut into runs."""
    return request((mib << 18 >> runs.bit_length() - 1, runs), chunk_axis_index=1, total_runs=runs, **settings)


def have(manager, instance, **wanted):
    manager.queue_request(instance, wanted)
    manager.allocate_queue(instance)


def live(manager, instance):
    return manager.statistics(instance)["bytes_live"]


def busy(manager, instance, array):
    address = ctypes.c_uint64(array.__cuda_array_interface__["data"][0])
    assert cuda.fake_launch(address, ctypes.c_size_t(4), 1, ctypes.c_void_p(manager.get_stream(instance).handle)) == 0


# The same queue again and again has the same chunks: what it replaces does not count against it.
for mode in ("passive", "active"):
    for at_work in (False, True):
        m = MemoryManager(mode=mode)
        i = member(m)
        for _ in range(4):
            have(m, i, x=cut(2000), y=cut(100), kept=request((1000,)))
            seen = i.response.chunks, i.response.chunk_length
            assert seen == (3, 497), seen  # 972 and 50 MiB, in units of 2 MiB, and one such unit for the small one
            assert set(i.response.arr) == {"x", "y", "kept"} and i.invalidated == 0 and m.statistics(i)["refused"] == 0
            if at_work:
                busy(m, i, i.response.arr["x"])
        cuda.fake_complete_all()
        # What is not replaced stays; where there is room, so does what is.
        old = i.response
        have(m, i, kept=request((2000,)))
        assert set(old.arr) == {"x", "y", "kept"} and set(i.response.arr) == {"kept"} and set(m.registry[id(i)].allocations) == {"x", "y", "kept"}
        have(m, i, y=cut(900))
        assert set(old.arr) == {"x", "kept"} and "x" in m.registry[id(i)].allocations, "a response has what is replaced"
        assert i.response.chunks > 1
        del old, i
        gc.collect()

# An instance that keeps the arrays themselves is told, if it is idle, that they are void.
m = MemoryManager()
i = member(m, Holds)
for n in range(3):
    have(m, i, x=cut(2000))
    assert i.chunks == (2, 524) or i.chunks == (3, 512), i.chunks
    assert i.invalidated == n and m.statistics(i)["refused"] == 0
first = i.chunks
busy(m, i, i.arrays[0])
refused(ValueError, ["single run"], have, m, i, x=cut(2000, 2))
assert i.invalidated == 3, "what it had went, and it was not told"
cuda.fake_complete_all()
have(m, i, x=cut(2000))
assert i.chunks == first
del i
gc.collect()

# Who is idle gives way before anything is cut; who is not, is held, or would not do, does not.
m = MemoryManager()
a, b, c = member(m), member(m), member(m, stream_group="other")
have(m, a, x=cut(1000))
have(m, b, x=cut(1000))
assert (b.response.chunks, a.invalidated, live(m, a), m.statistics(a)["evictions"]) == (1, 1, 0, 1) and a.response.arr == {}
busy(m, b, b.response.arr["x"])
have(m, c, x=cut(20))
refused(ValueError, ["unchunkable"], have, m, c, x=cut(1000, unchunkable=True))
assert b.invalidated == 0 and live(m, b) == 1000 * MIB and c.invalidated == 1
have(m, c, x=cut(1000))
assert c.response.chunks > 1 and b.invalidated == 0
cuda.fake_complete_all()
have(m, c, x=cut(600))
assert c.response.chunks == 1 and b.invalidated == 1
have(m, a, x=cut(100))
refused(ValueError, ["unchunkable"], have, m, b, x=cut(1100, unchunkable=True))
assert a.invalidated == 1 and c.invalidated == 1, "asked in vain"
m.queue_request(b, {})

# In active mode for the budget only those of the group are asked.
m.free_all()
a.response = b.response = c.response = None
m.set_manual_proportion(a, 0.25)
m.set_manual_proportion(b, 0.25)
m.set_manual_proportion(c, 0.25)
m.set_limit_mode("active")
have(m, c, x=cut(200))
have(m, a, x=cut(400))
cuda.fake_complete_all()  # a stream may wait for another one's block
have(m, b, x=cut(500))
seen = b.response.chunks, a.invalidated, c.invalidated, live(m, a), live(m, c)
assert seen == (1, 2, 1, 0, 200 * MIB), seen

# Members of the group that have queued are not asked for each other.
m.set_limit_mode("passive")
before = a.invalidated, b.invalidated, c.invalidated
m.queue_request(a, {"x": cut(900)})
have(m, b, y=cut(900))
assert (a.response.chunks, a.response.chunk_length) == (b.response.chunks, b.response.chunk_length)
assert (a.invalidated, b.invalidated, c.invalidated - 1) == before and set(m.registry[id(b)].allocations) == {"x", "y"}
del a, b, c, m
gc.collect()

# Managers of one device ask each other's instances, for a queue and for arrays.
m, other = MemoryManager(), MemoryManager()
a, b = member(m), member(other)
have(m, a, x=cut(1000))
have(other, b, x=cut(1000))
assert (b.response.chunks, a.invalidated, live(m, a)) == (1, 1, 0)
m.allocate_all({"x": cut(1000)}, id(a), m.get_stream(a))
assert (b.invalidated, live(other, b)) == (1, 0)
m.free_all()

# A chunk fits as the device heap rounds, so that nothing is refused.
have(m, a, **{f"x{n}": cut(17) for n in range(60)})
assert (a.response.chunks, a.response.chunk_length, m.statistics(a)["refused"]) == (2, 963, 0), a.response.chunk_length
m.free_all()
have(m, a, **{f"x{n}": request((3, 250000), chunk_axis_index=1, total_runs=250000) for n in range(357)})
assert m.statistics(a)["refused"] == 0

# An array takes the place of the one that has its label, too.
a.response = None
m.free_all()
give = lambda mib: m.allocate_all({"x": cut(mib)}, id(a), m.get_stream(a))
told = a.invalidated
for mib in (600, 1000, 700):
    give(mib)
    assert live(m, a) == mib * MIB and a.invalidated == told
refused(MemoryError, [str(1025 * MIB), "free"], give, 1025)
assert live(m, a) == 700 * MIB and a.invalidated == told, "what cannot be had took something away"

# Where memory is refused all the same, the chunk is shortened.
m.free_all()
a.response = None
hog = ctypes.c_uint64()
assert cuda.cuMemAlloc_v2(ctypes.byref(hog), ctypes.c_size_t(500 * MIB)) == 0


class Wrong(MemoryManager):
    def get_memory_info(self):
        return GIB, GIB


n = Wrong()
d = member(n)
have(n, d, x=cut(1000))
assert d.response.chunks == 3 and 341 < d.response.chunk_length < 536 and n.statistics(d)["refused"] >= 1
assert live(n, d) == d.response.arr["x"].nbytes
d.response = None
n.free_all()
refused(MemoryError, [str(1000 * MIB), "free"], have, n, d, x=cut(1000, unchunkable=True))
assert cuda.cuMemFree_v2(hog) == 0 and d.invalidated == 0
n.allocate_queue(d)
assert d.response.chunks == 1
print("ok")

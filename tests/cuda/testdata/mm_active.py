"""Active mode: budgets hold at allocation, and whoever is idle gives way; what the library reports of it."""
import gc
import sys
import threading

from mm_common import *

MIB = 1 << 20


def bytes_(n, **settings):
    return request((n // 4,), **settings)


def busy(array, stream):
    """Give a stream work that is done when it must be."""
    address = array.__cuda_array_interface__["data"][0]
    assert cuda.fake_launch(ctypes.c_uint64(address), ctypes.c_size_t(4), 1, ctypes.c_void_p(stream.handle)) == 0


m = MemoryManager(totalmem=100 * MIB, mode="active", name="the one")
a, b, c = join(m, 0.25, stream_group="g"), join(m, 0.25, stream_group="g"), join(m, 0.4, stream_group="h")
give = lambda instance, label, n, **settings: m.allocate_all({label: bytes_(n, **settings)}, id(instance), m.get_stream(instance))
live = lambda instance: m.statistics(instance)["bytes_live"]

# The budget is the group's; every kind of memory counts.
assert m.get_available_memory("g") == 50 * MIB
for kind in ("device", "pinned", "mapped", "managed"):
    refused(MemoryError, [str(50 * MIB + 4), kind, "group g", "Instance"], give, a, "x", 50 * MIB + 4, memory=kind)
kept = give(a, "x", 50 * MIB, memory="mapped")
assert live(a) == 50 * MIB and m.statistics(a)["bytes_peak"] == 50 * MIB
with warned("95%"):
    assert m.get_available_memory("g") == 0
refused(MemoryError, ["8 bytes"], give, a, "y", 8)  # one does not give way to itself
assert a.invalidated == 0 and m.statistics(a)["refused"] == 5
give(c, "x", 40 * MIB)  # the other group has its own
refused(MemoryError, [], give, c, "y", 8)
assert (a.invalidated, c.invalidated) == (0, 0)
m.set_limit_mode("passive")
del kept
m.free_all()
give(a, "x", 60 * MIB)
m.set_limit_mode("active")
m.free_all()

# The one that was not used for longest gives way, if it is idle and of the group.
give(c, "x", MIB)
give(a, "x", 20 * MIB)
d = join(m, stream_group="g")
assert m.get_available_memory("g") == m.cap(a) + m.cap(b) + m.cap(d) - 20 * MIB
give(d, "x", 20 * MIB)
m.get_stream(a)  # a is used again
give(b, "x", 30 * MIB)
assert (d.invalidated, a.invalidated, c.invalidated) == (1, 0, 0) and live(d) == 0 and live(a) == 20 * MIB
assert m.registry[id(d)].allocations == {} and m.statistics(d)["evictions"] == 1

# Who is at work does not; who has done it does. Arrays that the program has still stay, and valid.
m.free_all()
x = give(a, "x", 40 * MIB)["x"]
busy(x, m.get_stream(a))
refused(MemoryError, [], give, b, "x", 30 * MIB)
assert a.invalidated == 0 and live(a) == 40 * MIB
m.sync_stream(a)
refused(MemoryError, [], give, b, "x", 30 * MIB)  # it is idle, and asked; but x is here
assert a.invalidated == 1 and live(a) == 40 * MIB and m.registry[id(a)].allocations == {}
assert x.copy_to_host().nbytes == 40 * MIB
del x
assert live(a) == 0
give(b, "x", 30 * MIB)

# Where the device has no room, all groups are asked.
m.free_all()
m.set_limit_mode("passive")
give(c, "x", 600 * MIB)
was = c.invalidated
give(b, "x", 600 * MIB)
assert c.invalidated == was + 1 and live(c) == 0 and live(b) == 600 * MIB
m.free_all()
m.set_limit_mode("active")

# What a hook raises is told by sys.unraisablehook, and the allocation goes on.
def wrong():
    raise ZeroDivisionError("in a hook")


told = []
sys.unraisablehook = lambda found: told.append((type(found.exc_value), str(found.exc_value)))  # its traceback would keep arrays
e = Instance()
m.register(e, invalidate_cache_hook=wrong, stream_group="h")
give(e, "x", 40 * MIB)
cuda.fake_complete_all()
give(c, "x", 40 * MIB)
sys.unraisablehook = sys.__unraisablehook__
assert told == [(ZeroDivisionError, "in a hook")] and live(e) == 0, told

# invalidate_all calls all hooks, and raises at the end.
n, bad = MemoryManager(), Instance()
n.register(bad, invalidate_cache_hook=wrong)
after = join(n)
refused(ZeroDivisionError, ["in a hook"], n.invalidate_all)
assert after.invalidated == 1
del n, bad, after
gc.collect()
refused(ZeroDivisionError, [], m.invalidate_all)

# An instance that is garbage, but whose array the program has, is in the report until that goes.
f = join(m, stream_group="h")
x = give(f, "x", MIB)["x"]
del f
gc.collect()
(found,) = report()
assert (found["name"], found["mode"], found["bytes_total"], found["instance_count"]) == ("the one", "active", 100 * MIB, 6), found
row = [row for row in found["instances"] if row["bytes_live"] == MIB]
assert len(row) == 1 and (row[0]["name"], row[0]["group"], row[0]["pool"]) == ("Instance", "h", "automatic")
del x
assert report()[0]["instance_count"] == 5
b_row = next(row for row in report()[0]["instances"] if row["id"] == m.registry[id(b)].account)
figures = m.statistics(b)
assert (b_row["alloc_calls"], b_row["refused"], b_row["bytes_peak"], b_row["bytes_cap"]) == (
    figures["allocs"], figures["refused"], figures["bytes_peak"], m.cap(b)) and figures["manual"] == 1

# Eight threads, and nothing is left; parts stay within the whole.
m.free_all()
errors = []


def work(seed):
    import random
    draw = random.Random(seed)
    try:
        mine = []
        for _ in range(60):
            what = draw.randrange(6)
            if what == 0 and len(mine) < 4:
                mine.append(join(m, stream_group=draw.choice("gh")))
            elif what == 1 and mine:
                mine.pop(draw.randrange(len(mine)))
            elif what == 2 and mine:
                m.change_stream_group(draw.choice(mine), draw.choice("ghi"))
            elif mine:
                instance = draw.choice(mine)
                try:
                    if what == 3:
                        give(instance, draw.choice("xy"), draw.randrange(4, 4 * MIB), memory=draw.choice(("device", "mapped")))
                    elif what == 4:
                        m.queue_request(instance, {"q": request((1, 1, 1000), total_runs=1000)})
                        m.allocate_queue(instance)
                    else:
                        m.set_manual_proportion(instance, draw.random() / 100)
                except (MemoryError, ValueError):
                    pass
            assert sum(m._budget.pools()) < 1 + 1e-6
    except BaseException as error:
        errors.append(error)
        raise


m.set_manual_proportion(c, 0.3)
m.set_limit_mode("passive")
m.set_limit_mode("active")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
assert not errors, errors
gc.collect()
m.free_all()
gc.collect()
assert sorted(m.registry) == sorted(map(id, (a, b, c, d, e))), len(m.registry)
assert report()[0]["instance_count"] == 5 and all(row["bytes_live"] == 0 for row in report()[0]["instances"])
print("ok")

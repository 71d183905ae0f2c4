"""What Genesis' manager says where something is not right. Usage: genesis_messages.py CASE [PATH]"""
import contextlib
import io
import sys
import warnings

import tieralloc
from tieralloc import genesis

MIB = 1 << 20
WRONG = ("expected the address of a block that is in use: this one was freed before, begins within a block, or is not the library's")


@contextlib.contextmanager
def refused(error, text):
    try:
        yield
    except error as e:
        assert text in str(e), str(e)
    else:
        raise AssertionError(f"no {error.__name__}")


def no_library():
    with refused(RuntimeError, "tieralloc is not in this process. Start Python again like this:\n    LD_PRELOAD="):
        genesis.cuda.get_memory_manager()
    with refused(RuntimeError, "or call tieralloc.load(path of libtieralloc.so) first"):
        genesis.cuda.configure_memory_manager({"enable_stats": True})


def no_driver():
    """One message, whatever is asked for first; what needs no driver works."""
    mm = genesis.cuda.get_memory_manager()
    mm.configure(segment_size=4 * MIB)
    for ask in (lambda: mm.allocate_memory(MIB), lambda: mm.allocate_batch([MIB]), lambda: mm.warmup_cache([MIB], [1]),
                lambda: mm.configure(warmup_sizes=[(MIB, 1)]), lambda: mm.allocate_async(MIB).result(),
                lambda: genesis.cuda.AsyncMemoryPool(MIB)):
        with refused(RuntimeError, "there is no CUDA driver: libcuda.so.1: cannot open shared object file"):
            ask()
    assert mm.get_statistics().total_allocations == 0 and mm.cleanup_cache(force=True) == 0


def no_device():
    """The driver does not start."""
    from managed_common import fake
    fake.fake_fail(b"cuInit", 1, 100)
    with refused(tieralloc.CUDAError, "cuInit: CUDA error 100 (100)"):
        genesis.cuda.get_memory_manager().allocate_memory(MIB)


def no_such_device():
    with refused(OSError, "no 1048576 bytes on device 7: No such device"):
        genesis.cuda.get_memory_manager(7).allocate_memory(MIB)


def off():
    mm = genesis.cuda.get_memory_manager()
    with refused(OSError, "no 1048576 bytes on device 0: No such device (TA_CUDA=0 is set)"):
        mm.allocate_memory(MIB)
    with refused(OSError, "no free of 0x1000 on device 0: No such device (TA_CUDA=0 is set)"):
        mm.free_memory(4096)
    assert "libcuda" not in open("/proc/self/maps").read()


def frees():
    mm = genesis.cuda.get_memory_manager()
    a, b, large = mm.allocate_memory(5000), mm.allocate_memory(5000), mm.allocate_memory(30 * MIB)
    for wrong in (a + 512, a + 1, large + 4 * MIB, 4096, id(mm)):
        with refused(ValueError, f"free of {wrong:#x} on device 0: {WRONG}"):
            mm.free_memory(wrong)
    live = mm.get_statistics().live_bytes
    tieralloc.Device(0).set_current()  # which the default streams are in
    for block in (a, b, large):
        mm.free_memory(block)
        with refused(ValueError, f"free of {block:#x} on device 0: {WRONG}"):
            mm.free_memory(block)
        with refused(ValueError, f"record_stream of {block:#x} on device 0: expected the address of a block that is in use: this one was"
                                 " freed before, or begins within a block"):
            mm.record_stream(block, 2)
    mm.coalesce_free_blocks()
    with refused(ValueError, WRONG):
        mm.free_memory(b)
    stats = mm.get_statistics()
    assert live and stats.live_bytes == 0 and stats.total_freed == 3, stats
    assert (stats.device["frees_invalid"], stats.device["frees_unknown"]) == (7, 2), stats.device
    assert mm.garbage_collect() == stats.reserved_bytes  # nothing leaks


def recording():
    """Off at first; what leaks from when it is switched on is told, and what was allocated before is not."""
    mm = genesis.cuda.get_memory_manager()
    early = mm.allocate_memory(300)
    for ask in (lambda: mm.dump_allocation_trace(io.StringIO()), mm.analyze_allocation_patterns):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask()
        assert [str(w.message) for w in caught] == ["nothing is recorded of device 0: recording is off. configure(enable_stats=True) switches"
                                                    " it on for what is allocated and freed from then on"], caught
    genesis.cuda.configure_memory_manager({"enable_stats": True})
    leak, block = mm.allocate_memory(700), mm.allocate_memory(800)
    mm.free_memory(early)
    mm.free_memory(block)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mm.analyze_allocation_patterns()
        assert found["unfreed"] == [(leak, 700, "0x0")] and found["live"] == 1, found
        mm.configure(enable_stats=False)
        assert mm.analyze_allocation_patterns()["allocations"] == 2  # it stays what it was


def variables(*want):
    """The settings that the environment asks for: segment_size, global, recording, and blocks that are warm."""
    mm = genesis.cuda.get_memory_manager()
    figures = mm._figures()
    mm.configure(warmup_sizes=[(30 * MIB, 2)])
    found = figures.segment_size, figures.global_limit, figures.recording, int(mm._figures().blocks_warmed > 0)
    assert found == tuple(map(int, want)), found
    genesis.cuda.get_memory_manager(1)  # nothing is told twice


globals()[sys.argv[1]](*sys.argv[2:])
print("ok")

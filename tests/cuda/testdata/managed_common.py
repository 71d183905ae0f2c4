"""What the tests of the package's managed memory share."""
import contextlib
import ctypes
import re

MIB = 1 << 20

fake = ctypes.CDLL("libcuda.so.1")  # the driver of the tests, which can be told to fail
fake.fake_calls.restype = ctypes.c_ulong
fake.fake_calls.argtypes = [ctypes.c_char_p]
fake.fake_fail.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
fake.fake_used.restype = ctypes.c_size_t
fake.fake_illegals.restype = ctypes.c_ulong

TOLD = (b"cuMemAdvise", b"cuMemAdvise_v2", b"cuMemPrefetchAsync", b"cuMemPrefetchAsync_v2", b"cuMemPrefetchBatchAsync",
        b"cuMemDiscardBatchAsync", b"cuMemDiscardAndPrefetchBatchAsync", b"cuMemAllocManaged")


def told():
    """How often the driver has been told something about managed memory."""
    return [fake.fake_calls(name) for name in TOLD]


@contextlib.contextmanager
def refused(error, *words):
    """The block must raise error, with all the words in its text, before the driver is told anything."""
    before = told()
    try:
        yield
    except error as e:
        assert type(e) is error, repr(e)
        for word in words:
            assert re.search(word, str(e)), (word, str(e))
        assert told() == before, "the driver was told something"
    else:
        raise AssertionError(f"no {error.__name__}")


def of(module, name, **members):
    """An object of a class of another package."""
    return type(name, (), {"__module__": module, **members})()

"""What the tests of the Python MemoryManager share."""
import contextlib
import ctypes
import warnings

import numpy as np
import tieralloc_shim

from tieralloc import ArrayRequest, MemoryManager

GIB = 1 << 30

cuda = ctypes.CDLL("libcuda.so.1")  # the fake one, which the test tells what to do
cuda.fake_used.restype = ctypes.c_size_t
cuda.fake_calls.restype = ctypes.c_ulong


class Instance:
    """A component of a program, which notes what its hooks are called with."""

    def __init__(self):
        self.responses, self.invalidated = [], 0

    def ready(self, response):
        self.responses.append(response)

    def invalidate(self):
        self.invalidated += 1


class Fixed(MemoryManager):
    """A manager of a device that has as much free as the test says."""

    free, total = GIB, 8 * GIB

    def get_memory_info(self):
        return self.free, self.total


def join(manager, *arguments, **settings):
    """A new instance, registered with its hooks."""
    instance = Instance()
    manager.register(instance, *arguments, invalidate_cache_hook=instance.invalidate, allocation_ready_hook=instance.ready,
                     **settings)
    return instance


def request(shape, dtype=np.float32, **settings):
    return ArrayRequest(dtype, shape, **settings)


def refused(error, words, call, *arguments, **settings):
    """The call raises an error of this very kind, whose text has the words; it is returned as text."""
    try:
        call(*arguments, **settings)
    except Exception as found:
        text = str(found)
        assert type(found) is error, (type(found), text)
        assert all(word in text for word in words), (words, text)
        return text
    raise AssertionError(f"{call} {arguments} {settings} was accepted")


@contextlib.contextmanager
def warned(*words):
    """A with block in which there is exactly one warning for each of words, and those have them."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    texts = [str(warning.message) for warning in found]
    assert len(texts) == len(words) and all(word in text for word, text in zip(words, texts)), (words, texts)
    assert all(warning.category is UserWarning for warning in found), found


def near(a, b):
    return abs(a - b) < 1e-9


def report():
    """The managers in the library's report."""
    return tieralloc_shim.stats().get("managers", [])

"""Tell tieralloc, preloaded into this Python, where memory is wanted.

    LD_PRELOAD=/path/to/libtieralloc.so python3 train.py

    from tieralloc import hints as t
    t.enable()
    t.set_default_hint("hot")       # every thread without a hint of its own
    with t.hint("cold"):            # this thread, inside the block
        archive = numpy.zeros(10**8)
    t.tier_of(archive)              # "slow"

Hints are "hot", "warm", "cold", "pin_fast" and "prefer_fast", tiers "fast", "normal"
and "slow"; capitals do not matter. A hint is for what malloc gives to the one thread
that set it. Rules (TA_RULES) go before hints. Python's own small objects, up to 512
bytes, come from pools that Python maps itself, and have no tier; with
PYTHONMALLOC=malloc they come from malloc, too.
"""

import contextlib
import ctypes
import functools
import inspect
import json
import os
import threading
import warnings

from . import _library

__all__ = [
    "HINTS", "TIERS", "available", "disable", "enable", "enabled", "hello", "hint", "move",
    "set_default_hint", "stats", "tier_of",
]

# In the order of the enumerations ta_hint, which has TA_DEFAULT before them, and ta_tier.
HINTS = ("hot", "warm", "cold", "pin_fast", "prefer_fast")
TIERS = ("fast", "normal", "slow")

# Blocks above this size keep their address when they are moved (tieralloc.h).
_KEEPS_ADDRESS = 256 * 1024

_state = threading.RLock()  # held to change what follows
_enabled = False
_disables = 0  # how often disable() was called
_default = None  # number of the process's default hint, None: left as it is
_found = None  # what that was before the shim set it

# Of each thread: .before is (_disables, hint) from when the shim first set its hint;
# .left is _disables from its own last disable().
_mine = threading.local()


_DISABLED = "tieralloc is disabled in this process (TA_DISABLE=1)"


@functools.lru_cache(maxsize=None)
def _missing():
    """Why the library serves no malloc here, or "" where it does."""
    if not _library.preloaded() or not _library.address("ta_hello"):
        return "tieralloc is not in this process"
    if _library.function("ta_hello")() == b"tieralloc-disabled":
        return _DISABLED
    block = _library.function("malloc")(1)
    ours = _library.function("ta_tier_of")(block) >= 0
    _library.function("free")(block)
    return "" if ours else ("tieralloc is in this process, but malloc is not its own"
                            " (TA_INTERPOSE=0, or loaded too late)")


def _require():
    """Raise RuntimeError, which says how to start Python, where the library is not at work."""
    why = _missing()
    if why:
        raise RuntimeError(why if why == _DISABLED else
                           f"{why}. It must be there from the start. Start Python again like this:\n"
                           f"    {_library.command()}")


def available():
    """Whether the library is preloaded and serves this process's malloc."""
    return not _missing()


def _number(word, words, what):
    """The place of a word in a list of words."""
    if isinstance(word, str) and word.lower() in words:
        return words.index(word.lower())
    raise ValueError(f"unknown {what} {word!r}: expected {', '.join(words[:-1])} or {words[-1]}")


def enable():
    """Switch the shim on in this process.

    A default hint that was set before takes effect. With TA_DISABLE=1 this does nothing but to warn of
    it. Raises RuntimeError, which says how to start Python, where the library is not preloaded.
    """
    global _enabled
    if _missing() == _DISABLED:
        warnings.warn(f"{_DISABLED}: enable() does nothing, and memory is the C library's", RuntimeWarning, stacklevel=2)
        return
    _require()
    with _state:
        _enabled = True
        _apply_default()


def disable():
    """Switch the shim off.

    The process's default hint is again what it was before enable(), and the calling thread gets the
    hint back that it had. Others inside a hint block keep theirs until they end; hint blocks do
    nothing any more.
    """
    global _enabled, _disables, _found
    with _state:
        if not _enabled:
            return
        _enabled = False
        if _found is not None:
            _library.function("ta_set_default_hint")(_found)
            _found = None
        before = getattr(_mine, "before", None)
        if before is not None and before[0] == _disables:
            _library.function("ta_set_hint")(before[1])
        _mine.left = _disables
        _disables += 1


def enabled():
    """Whether the shim is switched on."""
    return _enabled


def set_default_hint(word):
    """Set the hint for what threads allocate that have none of their own.

    That is every thread of the process that is in no hint block, those that a library made by itself
    too, as PyTorch does: the calling one and new ones at once, others from the next block on that their
    heap has not at hand. While the shim is off this is only remembered, for enable().
    """
    global _default
    number = _number(word, HINTS, "hint") + 1
    with _state:
        _default = number
        _apply_default()


def _apply_default():
    """Give the process the default hint, if there is one and the shim is on."""
    global _found
    if _enabled and _default is not None:
        before = _library.function("ta_set_default_hint")(_default)
        if _found is None:
            _found = before


def _set_hint(number):
    """Set the calling thread's hint and return the one before."""
    before = _library.function("ta_set_hint")(number)
    if getattr(_mine, "before", (-1,))[0] != _disables:
        _mine.before = (_disables, before)
    return before


class hint(contextlib.AbstractContextManager):
    """A with block, or a function, whose thread allocates with another hint.

        with hint("cold"):
            ...

        @hint("hot")
        def step(): ...

    Blocks nest, and each gives the hint back that it found, after exceptions as well. While
    the shim is off they do nothing. The hint is the thread's: whatever else the thread
    does inside the block, as another coroutine may at an await, has it, too.
    """

    def __init__(self, word):
        self._word = word
        self._number = _number(word, HINTS, "hint") + 1
        self._found = {}  # for each thread inside: what it found, the innermost last

    def __enter__(self):
        found = None
        if _enabled:
            found = (_disables, _set_hint(self._number))
        self._found.setdefault(threading.get_ident(), []).append(found)
        return self

    def __exit__(self, *_):
        thread = threading.get_ident()
        mine = self._found.get(thread)
        if mine is None:
            return  # entered by another thread, as a generator may
        found = mine.pop()
        if not mine:
            del self._found[thread]
        # A thread that called disable() inside the block has its hint already.
        if found is not None and getattr(_mine, "left", -1) < found[0]:
            _library.function("ta_set_hint")(found[1])

    def __call__(self, function):
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function) \
                or inspect.isasyncgenfunction(function):
            raise TypeError(f"hint cannot decorate {function.__qualname__}: its body does not run"
                            " when it is called; use a with block inside")

        @functools.wraps(function)
        def hinted(*args, **kwargs):
            with hint(self._word):
                return function(*args, **kwargs)
        return hinted


def tier_of(thing):
    """The tier of a block: "fast", "normal" or "slow"; None where it is not the library's.

    thing is the block's address, or what has its data there: a NumPy array, a PyTorch
    tensor, a ctypes object, or anything with the buffer protocol.
    """
    _require()
    tier_number = _library.function("ta_tier_of")
    for address in _addresses(thing):
        tier = tier_number(address)
        if tier >= 0:
            return TIERS[tier]
    return None


def move(thing, tier):
    """Move a block to a tier, and return its address.

    thing is as for tier_of. A block above 256 KiB keeps its address. A smaller one gets a
    new one, and the old one is gone: so it is moved only if it was given by its address.
    Raises OSError where the library refuses (ta_move in tieralloc.h says why).
    """
    _require()
    number = _number(tier, TIERS, "tier")
    address = next((a for a in _addresses(thing) if _library.function("ta_tier_of")(a) >= 0), None)
    if address is None:
        raise ValueError("not a block of tieralloc")
    if not isinstance(thing, int) and \
            _library.function("malloc_usable_size")(address) <= _KEEPS_ADDRESS:
        raise ValueError("a block of at most 256 KiB would get another address, which its owner does not know")
    to = _library.function("ta_move")(address, number)
    if to is None:
        error = ctypes.get_errno()
        raise OSError(error, f"{os.strerror(error)}: the block stays in the {tier_of(address)} tier")
    return to


class _Buffer(ctypes.Structure):
    """Py_buffer of Python's C interface."""

    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]


def _addresses(thing):
    """Where the block of a thing may begin. Views count as what they view."""
    if isinstance(thing, int):
        return [thing]
    if callable(getattr(thing, "data_ptr", None)):  # PyTorch, from 2 on and before
        storage = getattr(thing, "untyped_storage", None) or getattr(thing, "storage", None)
        return [(storage() if callable(storage) else thing).data_ptr()]
    if hasattr(thing, "__array_interface__"):
        while hasattr(getattr(thing, "base", None), "__array_interface__"):
            thing = thing.base
        return [thing.__array_interface__["data"][0]]
    if isinstance(thing, (ctypes.c_void_p, ctypes._Pointer)):
        return [ctypes.cast(thing, ctypes.c_void_p).value or 0]
    if isinstance(thing, (ctypes._SimpleCData, ctypes.Array, ctypes.Structure, ctypes.Union)):
        return [ctypes.addressof(thing)]
    view = _Buffer()
    simple = 0  # PyBUF_SIMPLE
    try:
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(thing), ctypes.byref(view), simple)
    except (TypeError, BufferError):
        raise TypeError(f"{type(thing).__name__} is neither an address nor has its data in one block") from None
    address = view.buf
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    # The data of bytes is inside the object.
    return [address, id(thing)] if isinstance(thing, bytes) else [address]


def stats():
    """The report of this process, as docs/stats.schema.json describes it."""
    _require()
    text = _library.text_of(_library.function("ta_stats_json"))
    if not text:
        raise MemoryError("no memory for the report")
    return json.loads(text)


def hello():
    """One line that says what is at work here."""
    if _missing() == _DISABLED:
        return _DISABLED
    report = stats()
    return (f"{report['schema']}: {report['backend']} tiers, shim {'on' if _enabled else 'off'},"
            f" default hint {report['policy']['default_hint']}, process {report['pid']} ({report['program']})")

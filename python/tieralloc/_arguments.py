"""Checks of what tieralloc.cuda is given: TypeError or ValueError for what is not accepted."""

import collections.abc
import math
import numbers
import operator

# The largest numbers that reach the library whole: as its ssize_t, int and pointer, and as
# the double that settings are given as. ctypes would cut off what is above without a word.
MOST_BYTES, MOST_COUNT, MOST_ADDRESS, MOST_SETTING = (1 << 63) - 1, (1 << 31) - 1, (1 << 64) - 1, 1 << 53



def stream_handle(stream):
    """A stream's handle."""
    found = stream
    for name in ("cuda_stream", "ptr", "handle"):  # PyTorch, CuPy, numba
        found = getattr(found, name, found)
    found = getattr(found, "value", found)  # of a ctypes object
    if found is None:
        return 0
    expected = f"stream {stream!r}: expected a number from 0 to {MOST_ADDRESS}, or a stream of PyTorch, CuPy or numba"
    if isinstance(found, (bool, str, bytes)) or isinstance(found, numbers.Number) and not isinstance(found, numbers.Integral):
        raise TypeError(expected)
    try:
        number = int(found)
    except (TypeError, ValueError):
        raise TypeError(expected) from None
    if not 0 <= number <= MOST_ADDRESS:
        raise ValueError(expected)
    return number


def whole(value, what, least=0, most=MOST_BYTES, expected=""):
    """A whole number; TypeError for what is no number, ValueError for one that is not accepted."""
    expected = f"{what} {value!r}: expected " + (expected or f"a whole number from {least} to {most}")
    try:
        if isinstance(value, bool):
            raise TypeError
        number = int(value) if isinstance(value, float) else operator.index(value)
    except TypeError:
        raise TypeError(expected) from None
    except (ValueError, OverflowError):  # not a number, infinity
        raise ValueError(expected) from None
    if number != value or not least <= number <= most:
        raise ValueError(expected)
    return number


def wholes(values, what, least, most):
    """A list of whole numbers."""
    if isinstance(values, (str, bytes)) or not isinstance(values, collections.abc.Iterable):
        raise TypeError(f"{what}s {values!r}: expected a list of whole numbers")
    return [whole(value, what, least, most) for value in values]


def real(value, what, holds, expected):
    """A number that holds() accepts."""
    expected = f"{what} {value!r}: expected {expected}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(expected)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not holds(number):
        raise ValueError(expected)
    return number


def fraction(value, what):
    return real(value, what, lambda number: 0 <= number <= 1, "a number from 0 to 1")


def switch(value, what):
    """True or False, as 1 or 0."""
    if isinstance(value, numbers.Integral) and value in (0, 1):
        return int(value)
    raise TypeError(f"{what} {value!r}: expected True or False")


def address_number(block):
    """A block's address; None counts as 0."""
    return 0 if block is None else whole(block, "address", 0, MOST_ADDRESS)


def warmup_pairs(pairs):
    """Pairs of a size and a count."""
    expected = f"warmup_sizes {pairs!r}: expected pairs of a size and a count, such as [(4096, 50)]"
    try:
        pairs = [(size, count) for size, count in pairs]
    except (TypeError, ValueError):
        raise TypeError(expected) from None
    return [(whole(size, "size in warmup_sizes", 1), whole(count, "count in warmup_sizes", 1, MOST_COUNT)) for size, count in pairs]

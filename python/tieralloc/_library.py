"""Finds libtieralloc.so in this process and binds its C functions. No other module does."""

import ctypes
import os
import shlex
import sys
import threading
from typing import Any, Dict, Optional, Union

from . import _abi

_MARK = "ta_cuda_malloc"  # every library that serves devices has it

_lock = threading.RLock()
_functions: Dict[str, Any] = {}
_loaded: Optional[ctypes.CDLL] = None


def _preloaded() -> Optional[ctypes.CDLL]:
    """The process itself, if the library was loaded with it."""
    process = ctypes.CDLL(None, use_errno=True)
    return process if hasattr(process, _MARK) else None


def _library() -> Optional[ctypes.CDLL]:
    """The library, or None."""
    return _preloaded() or _loaded


def find_file(name: str) -> Optional[str]:
    """The path of a file beside the package's modules (a wheel has it there), else in build/."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (here, os.path.normpath(os.path.join(here, "..", "..", "build"))):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return None


def loaded() -> bool:
    """Whether the library is in this process."""
    return _library() is not None


def preloaded() -> bool:
    """Whether the library was loaded with the process, rather than by load()."""
    return _preloaded() is not None


def command() -> str:
    """The command that would have started this Python with the library."""
    path = find_file("libtieralloc.so") or "/path/to/libtieralloc.so"
    words = getattr(sys, "orig_argv", None) or [sys.executable or "python3", *sys.argv]
    return f"LD_PRELOAD={shlex.quote(path)} {' '.join(map(shlex.quote, words))}"


def function(name: str) -> Any:
    """A function of _abi.SIGNATURES. It leaves errno to ctypes.get_errno.

    Raises RuntimeError where the library is not in the process, and NotImplementedError
    where the library is older than the function.
    """
    found: Any = _functions.get(name)
    if found is None:
        library = _library()
        if library is None:
            raise RuntimeError("tieralloc is not in this process. Start Python again like this:\n"
                               f"    {command()}\n"
                               "or call tieralloc.load(path of libtieralloc.so) first")
        try:
            found = getattr(library, name)
        except AttributeError:
            raise NotImplementedError(f"the tieralloc in this process has no {name}: it is older"
                                      " than this package") from None
        found.restype, found.argtypes = _abi.SIGNATURES[name]
        _functions[name] = found
    return found  # a function of ctypes


def require() -> None:
    """Raise RuntimeError where the library is not in this process."""
    function(_MARK)


def address(name: str) -> int:
    """Where a function begins, or 0 where the library is older than it."""
    try:
        return ctypes.cast(function(name), ctypes.c_void_p).value or 0
    except NotImplementedError:
        return 0


def text_of(call: Any) -> bytes:
    """The text that call(buffer, room) writes, a function that counts as snprintf does."""
    room = 0
    while True:
        buffer = ctypes.create_string_buffer(room + 1)
        need = call(buffer, room)
        if need < room or need == 0:
            return buffer.raw[:need]
        room = need + 4096  # it may be longer next time


def load(path: Union[str, "os.PathLike[str]"]) -> None:
    """Load the library from a file, for programs that were started without it.

    The library then serves what the program asks of this package. It serves neither cudaMalloc nor
    malloc: for those it must be preloaded. Where it is in the process already, nothing is done.
    Raises OSError for a file that cannot be loaded, and ValueError for another library.
    """
    global _loaded
    file = os.fspath(path)
    if not isinstance(file, str):
        raise TypeError(f"path {path!r}: expected the path of libtieralloc.so as text")
    with _lock:
        if loaded():
            return
        library = ctypes.CDLL(os.path.abspath(file), use_errno=True)
        if not hasattr(library, _MARK):
            raise ValueError(f"path {file!r}: expected libtieralloc.so, and this library has no"
                             f" {_MARK}")
        _loaded = library

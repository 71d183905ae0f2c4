"""The C functions of tieralloc in this process, preloaded or loaded by load()."""

import ctypes
import os
import threading
from typing import Any, Dict, Optional, Sequence, Tuple, Union

# What a C function returns and takes.
Signature = Tuple[Any, Sequence[Any]]

_MARK = "ta_cuda_malloc"  # every library that serves devices has it

_lock = threading.RLock()
_signatures: Dict[str, Signature] = {}
_functions: Dict[str, Any] = {}
_loaded: Optional[ctypes.CDLL] = None


def declare(signatures: Dict[str, Signature]) -> None:
    """Make functions known: for each name what it returns and what it takes."""
    _signatures.update(signatures)


def _library() -> Optional[ctypes.CDLL]:
    """The library, or None."""
    process = ctypes.CDLL(None, use_errno=True)
    return process if hasattr(process, _MARK) else _loaded


def loaded() -> bool:
    """Whether the library is in this process."""
    return _library() is not None


def function(name: str) -> Any:
    """A declared function. It leaves errno to ctypes.get_errno.

    Raises RuntimeError where the library is not in the process, and NotImplementedError
    where it is, and is older than the function.
    """
    found: Any = _functions.get(name)
    if found is None:
        library = _library()
        if library is None:
            import tieralloc_shim
            raise RuntimeError("tieralloc is not in this process. Start Python again like this:\n"
                               f"    {tieralloc_shim._command()}\n"
                               "or call tieralloc.load(path of libtieralloc.so) first")
        try:
            found = getattr(library, name)
        except AttributeError:
            raise NotImplementedError(f"the tieralloc in this process has no {name}: it is older than this package") from None
        found.restype, found.argtypes = _signatures[name]
        _functions[name] = found
    return found  # a function of ctypes


def load(path: Union[str, "os.PathLike[str]"]) -> None:
    """Load the library from a file, for programs that were started without it.

    Then what the program asks of this package is served, but not what it asks of
    cudaMalloc or malloc: for those the library must be preloaded. Where it is in the
    process already, nothing is done. Raises OSError for a file that cannot be loaded,
    and ValueError for one that is not the library.
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
            raise ValueError(f"path {file!r}: expected libtieralloc.so, and this library has no {_MARK}")
        _loaded = library

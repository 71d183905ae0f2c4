"""Genesis' environment variables, where those of tieralloc are not set.

Each that is read is one line on standard error, which names the variable that tieralloc has for it.
"""

import contextlib
import os
import sys
from typing import Any, Callable, Dict, NamedTuple, Set, Tuple

_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _number(text: str) -> int:
    return int(text)


def _switch(text: str) -> bool:
    return _SWITCHES[text.lower()]


class _Variable(NamedTuple):
    name: str
    read: Callable[[str], Any]
    expected: str
    settings: Callable[[Any], Dict[str, Any]]  # arguments of MemoryManager.configure
    ours: str
    means: str  # of ours


_VARIABLES: Tuple[_Variable, ...] = (
    _Variable("GENESIS_CUDA_SEGMENT_SIZE", _number, "bytes, from 2 MiB to 64 GiB in steps of 2 MiB",
              lambda size: {"segment_size": size}, "TA_CUDA_SEGMENT_SIZE", "takes K, M and G"),
    _Variable("GENESIS_CUDA_CACHE_SIZE", _number, "a number of blocks",
              lambda blocks: {"cache_sizes": {"global": blocks}}, "TA_CUDA_CACHE_LIMIT", "is in bytes"),
    _Variable("GENESIS_CUDA_WARMUP_ENABLED", _switch, "true or false",
              lambda on: {"warms": on}, "TA_CUDA_WARMUP", "lists what is warmed, as in 4K:50,1M:10"),
    _Variable("GENESIS_CUDA_STATS_ENABLED", _switch, "true or false",
              lambda on: {"enable_stats": on}, "TA_CUDA_TRACE", "is a file that all allocations are written to"),
)

_told: Set[str] = set()


def _tell(name: str, line: str) -> None:
    if name not in _told:
        _told.add(name)
        print(f"tieralloc: {line}", file=sys.stderr)


def _applied(manager: Any, settings: Dict[str, Any]) -> None:
    if "warms" in settings:
        manager._warms = settings["warms"]
        return
    with contextlib.suppress(NotImplementedError):  # the library serves no devices
        manager.configure(**settings)


def apply(manager: Any) -> None:
    """Give a new manager the settings of those variables that are set. One that is none is told of, and left out."""
    for variable in _VARIABLES:
        text = os.environ.get(variable.name)
        if text is None or os.environ.get(variable.ours):
            continue
        try:
            _applied(manager, variable.settings(variable.read(text)))
        except (KeyError, ValueError):
            _tell(variable.name, f"{variable.name}={text}: expected {variable.expected}; it is not used")
            continue
        _tell(variable.name, f"{variable.name}={text} is used ({variable.expected}); tieralloc's variable is {variable.ours},"
                             f" which {variable.means}")

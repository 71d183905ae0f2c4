"""Groups of instances, each with a stream."""

import contextlib
import threading
from typing import Any, Dict, List, Optional

from . import _numba
from ._streams import Stream


def new_stream(device: int) -> Any:
    """A stream: numba's where the program uses numba, else one of the package."""
    cuda = _numba.cuda()
    if cuda is None:
        return Stream(device)
    with _numba.current(cuda, device):
        return cuda.stream()


def _identifier(instance: Any) -> int:
    """An instance's number; a number stands for itself."""
    return instance if isinstance(instance, int) else id(instance)


class StreamGroups:
    """Which instances work together, in the order of one stream.

    groups   the numbers of the instances by the name of their group
    streams  the stream of each group
    """

    def __init__(self, groups: Optional[Dict[str, List[int]]] = None, streams: Optional[Dict[str, Any]] = None, *,
                 device: int = 0) -> None:
        for name, value in (("groups", groups), ("streams", streams)):
            if value is not None and not isinstance(value, dict):
                raise TypeError(f"'{name}' must be a dict (got {value!r}, which is a {type(value).__name__})")
        self.groups: Dict[str, List[int]] = {} if groups is None else groups
        self.streams: Dict[str, Any] = {} if streams is None else streams
        self.device = device
        self._lock = threading.RLock()
        for group in self.groups:
            self.streams.setdefault(group, None)  # made when it is first asked for

    def _join(self, identifier: int, group: str) -> None:
        if group not in self.groups:
            self.streams[group] = new_stream(self.device)
            self.groups[group] = []
        self.groups[group].append(identifier)

    def add_instance(self, instance: Any, group: str) -> None:
        """Put an instance into a group, which is made if it is new. ValueError where it is in one."""
        identifier = _identifier(instance)
        with self._lock:
            for name, members in self.groups.items():
                if identifier in members:
                    raise ValueError(f"Instance already in a stream group ({name!r}): to move it, call change_group")
            self._join(identifier, group)

    def get_group(self, instance: Any) -> str:
        """The name of an instance's group. ValueError where it is in none."""
        identifier = _identifier(instance)
        with self._lock:
            for name, members in self.groups.items():
                if identifier in members:
                    return name
        raise ValueError(f"Instance not in any stream groups: {instance!r}")

    def get_stream(self, instance: Any) -> Any:
        """The stream of an instance's group."""
        with self._lock:
            group = self.get_group(instance)
            if self.streams.get(group) is None:
                self.streams[group] = new_stream(self.device)
            return self.streams[group]

    def get_instances_in_group(self, group: str) -> List[int]:
        """The numbers of a group's instances; none for a group that there is not."""
        with self._lock:
            return list(self.groups.get(group, ()))

    def change_group(self, instance: Any, new_group: str) -> None:
        """Move an instance to another group, which is made if it is new."""
        with self._lock:
            old = self.get_group(instance)
            identifier = _identifier(instance)
            if old != new_group:
                self._join(identifier, new_group)
                self.groups[old].remove(identifier)

    def remove(self, identifier: int) -> None:
        """Take the number of an instance that is garbage out of its group, if it is in one.

        Without the lock: this is called at any moment of any thread, also of one that has a
        lock for which the one that is at the groups waits. Nobody else moves such a number.
        """
        for members in list(self.groups.values()):
            with contextlib.suppress(ValueError):
                members.remove(identifier)

    def reinit_streams(self) -> None:
        """Give each group a new stream. Old ones end when nothing uses them any more."""
        with self._lock:
            for group in self.streams:
                self.streams[group] = new_stream(self.device)

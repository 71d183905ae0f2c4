"""What a MemoryManager may be made with: instances by their numbers, pools and queues."""

from typing import Any, Dict, List, Optional

from ._groups import StreamGroups
from ._requests import Requests, check_requests
from ._settings import InstanceMemorySettings, NotRegisteredError


def _check_kind(name: str, value: Any, kind: type) -> Any:
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"'{name}' must be a {kind.__name__} (got {value!r}, which is a {type(value).__name__})")
    return kind() if value is None else value


class State:
    """The arguments of the constructor, which name nobody who is not in the registry.

    registry  settings by the numbers of instances
    manual    the numbers of those that have the proportions of their settings
    queued    what instances want, by groups
    """

    def __init__(self, registry: Optional[Dict[int, InstanceMemorySettings]], auto_pool: Optional[List[int]],
                 manual_pool: Optional[List[int]], queued_allocations: Optional[Dict[str, Dict[int, Requests]]]) -> None:
        self.registry: Dict[int, InstanceMemorySettings] = dict(_check_kind("registry", registry, dict))
        self._automatic = set(_check_kind("auto_pool", auto_pool, list))
        self.manual = set(_check_kind("manual_pool", manual_pool, list))
        self.queued: Dict[str, Dict[int, Requests]] = _check_kind("queued_allocations", queued_allocations, dict)
        for identifier, settings in self.registry.items():
            self._check_settings(identifier, settings)
        for name, pool in (("auto_pool", self._automatic), ("manual_pool", self.manual)):
            self._check_known(name, pool)
        both = self._automatic & self.manual
        if both:
            raise ValueError(f"'auto_pool' and 'manual_pool' both have {sorted(both)}")
        for group, queue in self.queued.items():
            self._check_known(f"queued_allocations[{group!r}]", _check_kind(f"queued_allocations[{group!r}]", queue, dict))
            for requests in queue.values():
                check_requests(requests)

    @staticmethod
    def _check_settings(identifier: Any, settings: Any) -> None:
        if not isinstance(identifier, int) or not isinstance(settings, InstanceMemorySettings):
            raise TypeError(f"'registry' must have InstanceMemorySettings by whole numbers (got {identifier!r}: {settings!r})")
        if settings.is_open:
            raise ValueError(f"'registry' has settings for {identifier} that are another manager's")

    def _check_known(self, name: str, identifiers: Any) -> None:
        for identifier in identifiers:
            if identifier not in self.registry:
                raise NotRegisteredError(f"'{name}' has {identifier!r}, which is not in 'registry'")

    def group(self, identifier: int, groups: StreamGroups) -> str:
        """The group that an instance is in, or has queued for, else "default". ValueError where these are two."""
        known = [name for name, members in groups.groups.items() if identifier in members]
        queued = [name for name, queue in self.queued.items() if identifier in queue]
        found = sorted({*known, *queued})
        if len(found) > 1:
            raise ValueError(f"instance {identifier} is in more groups than one, by 'stream_groups' or 'queued_allocations': {found}")
        return found[0] if found else "default"

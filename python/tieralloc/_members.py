"""Which instances share a device's memory, with what parts, in which groups."""

import contextlib
import threading
import warnings
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _allocators, _driver, _library, _numba, _streams
from ._blocks import keeping_errno
from ._budget import MODES, MOST, Budget, Info, check_name, short_name
from ._groups import StreamGroups
from ._requests import ArrayResponse, Requests
from ._settings import InstanceMemorySettings, NotRegisteredError, check_proportion, placeholder_dataready
from ._settings import placeholder_invalidate, weakly
from ._state import State


def ensure_cuda_context(device: int = 0) -> None:
    """Have the thread work with a device. RuntimeError where it cannot."""
    try:
        cuda = _numba.cuda()
        if cuda is not None:
            cuda.current_context()
        elif _driver.current_device() is None:
            _driver.set_current(device)
    except Exception as error:
        raise RuntimeError(f"Failed to initialize or verify the CUDA context of device {device}: {error}. Is there a device,"
                           " with its driver, that this process may use?") from error


def _gone(manager: "weakref.ref[Members]", identifier: int, account: int) -> None:
    """An instance is garbage."""
    found = manager()
    if found is not None:
        found._forget(identifier, account)


class Members:
    """What a MemoryManager is without arrays and requests."""

    def __init__(self, totalmem: Optional[int] = None, registry: Optional[Dict[int, InstanceMemorySettings]] = None,
                 stream_groups: Optional[StreamGroups] = None, mode: str = "passive", allocator: Any = None,
                 auto_pool: Optional[List[int]] = None, manual_pool: Optional[List[int]] = None,
                 queued_allocations: Optional[Dict[str, Dict[int, Requests]]] = None, *, device: int = 0,
                 name: str = "") -> None:
        state = State(registry, auto_pool, manual_pool, queued_allocations)
        if totalmem is not None:
            if isinstance(totalmem, bool) or not isinstance(totalmem, int):
                raise TypeError(f"'totalmem' must be None or a number of bytes (got {totalmem!r})")
            if not 1 <= totalmem <= MOST:
                raise ValueError(f"'totalmem' must be from 1 to {MOST} bytes: {totalmem}")
        if stream_groups is not None and not isinstance(stream_groups, StreamGroups):
            raise TypeError(f"'stream_groups' must be StreamGroups (got {stream_groups!r})")
        if isinstance(device, bool) or not isinstance(device, int) or device < 0:
            raise ValueError(f"'device' must be the number of a device: {device!r}")
        self._check_mode(mode)
        check_name("name", name)
        _library.function("ta_mm_create")
        self.device, self.name, self._mode = device, name, mode
        self._lock = threading.RLock()
        self._kept: Dict[int, Any] = {}  # instances that there are no weak references to
        self.registry: Dict[int, InstanceMemorySettings] = {}
        self.stream_groups = StreamGroups(device=device) if stream_groups is None else stream_groups
        self._queued_allocations: Dict[str, Dict[int, Requests]] = {}
        self._shares: Optional[Budget] = None
        cuda = _numba.cuda()
        self._allocator: Any = allocator or ("default" if cuda is None else _allocators.manager_class(cuda, "default"))
        self.totalmem: int = self._find_total() if totalmem is None else totalmem
        self._adopt(state)

    def _find_total(self) -> int:
        """What the device has; 1 byte where there is none, so that the program can at least be imported."""
        try:
            return int(self.get_memory_info()[1])
        except Exception as error:
            warnings.warn(f"the memory manager found no device, and has 1 byte to share: {error}", UserWarning, stacklevel=3)
            return 1

    @property
    def _budget(self) -> Budget:
        """The library's side, which needs a device; made when it is first needed."""
        with self._lock:
            if self._shares is None:
                budget = Budget(self.device, self.totalmem, self.name)
                budget.set_mode(self._mode)
                self._shares = budget
            return self._shares

    def get_memory_info(self) -> Tuple[int, int]:
        """Bytes of the device that are free, and all. Subclasses may say otherwise."""
        return _driver.memory_info(self.device)

    # Instances

    def register(self, instance: object, proportion: Optional[float] = None,
                 invalidate_cache_hook: Callable[[], None] = placeholder_invalidate,
                 allocation_ready_hook: Callable[[ArrayResponse], None] = placeholder_dataready,
                 stream_group: str = "default") -> None:
        """Have an instance take part.

        proportion             its part of the memory, 0 to 1; None or 0: an equal share of what others leave
        invalidate_cache_hook  called when its arrays are gone or about to go
        allocation_ready_hook  called with an ArrayResponse when its requests are allocated
        stream_group           its group, which is made if it is new

        ValueError where it is registered, or the parts do not fit; UserWarning where they
        leave less than 5% for instances without one.
        """
        part = None if proportion is None else check_proportion(proportion) or None
        settings = InstanceMemorySettings(invalidate_hook=weakly(invalidate_cache_hook, instance),
                                          allocation_ready_hook=weakly(allocation_ready_hook, instance))
        identifier = id(instance)
        with self._lock:
            if identifier in self.registry:
                raise ValueError(f"Instance already registered: {instance!r}")
            scarce = self._join(identifier, settings, type(instance).__name__, stream_group, part)
            try:
                weakref.finalize(instance, keeping_errno, _gone, weakref.ref(self), identifier, settings.account).atexit = False
            except TypeError:
                self._kept[identifier] = instance
        self._warn_scarce(scarce, proportion)

    def _join(self, identifier: int, settings: InstanceMemorySettings, name: str, group: str, part: Optional[float]) -> bool:
        """Give the settings of an instance an account, in a group. Whether there is something to warn of."""
        mine = weakref.ref(settings)

        def give_way() -> None:
            found = mine()
            if found is not None:
                found.give_way()

        budget = self._budget
        account, scarce = budget.register(short_name(name), group, part, give_way)
        try:
            if identifier not in self.stream_groups.get_instances_in_group(group):
                self.stream_groups.add_instance(identifier, group)
        except BaseException:
            budget.unregister(account)
            raise
        settings.open(budget, account)
        self.registry[identifier] = settings
        return scarce

    def _adopt(self, state: State) -> None:
        """Have those take part whose numbers and settings the constructor was given, and queue what they want."""
        try:
            for identifier, settings in state.registry.items():
                part = settings.proportion if identifier in state.manual else None
                group = state.group(identifier, self.stream_groups)
                self._warn_scarce(self._join(identifier, settings, str(identifier), group, part), part)
        except BaseException:
            for settings in self.registry.values():
                settings.close()
            raise
        for group, queue in state.queued.items():
            self._queued_allocations[group] = dict(queue)

    def _forget(self, identifier: int, account: int) -> None:
        """Have an instance that is garbage leave. Its number may be another's already."""
        settings = self.registry.get(identifier)
        if settings is None or settings.account != account:
            return
        self.registry.pop(identifier, None)
        self.stream_groups.remove(identifier)
        for queue in list(self._queued_allocations.values()):
            queue.pop(identifier, None)
        settings.free_all()
        if self._shares is not None:  # without a lock: this may be called within anything
            self._shares.unregister(account)

    def _settings(self, identifier: int, instance: Any) -> InstanceMemorySettings:
        found = self.registry.get(identifier)
        if found is None:
            raise NotRegisteredError(f"Instance is not registered: {instance!r}")
        return found

    def _of(self, instance: object) -> InstanceMemorySettings:
        return self._settings(id(instance), instance)

    @staticmethod
    def _warn_scarce(scarce: bool, proportion: Optional[float]) -> None:
        if scarce:
            warnings.warn(f"Manual proportion {proportion} leaves less than 5% of memory for auto allocation, which counts"
                          " if the management mode is 'active'", UserWarning, stacklevel=3)

    def statistics(self, instance: object) -> Dict[str, Any]:
        """An instance's figures, as in the report."""
        info = self._budget.get(self._of(instance).account)
        figures = {name: getattr(info, name) for name, _ in info._fields_ if name != "size"}
        return {name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value for name, value in figures.items()}

    # Parts

    @staticmethod
    def _check_mode(mode: Any) -> None:
        if not isinstance(mode, str) or mode not in MODES:
            raise ValueError(f"Unknown mode: {mode!r}: expected 'passive' or 'active'")

    def set_limit_mode(self, mode: str) -> None:
        """Set what bounds requests: "passive" or "active"."""
        self._check_mode(mode)
        with self._lock:
            if self._shares is not None:
                self._shares.set_mode(mode)
            self._mode = mode

    def set_manual_proportion(self, instance: object, proportion: float) -> None:
        """Give an instance a part of its own, whichever way it had one before."""
        account, part = self._of(instance).account, check_proportion(proportion)
        self._warn_scarce(self._budget.set_manual(account, part), proportion)

    def set_manual_limit_mode(self, instance: object, proportion: float) -> None:
        """Give an instance that had a share a part of its own. ValueError for one that has its own."""
        settings, part = self._of(instance), check_proportion(proportion)
        if settings.manual:
            raise ValueError(f"Instance is already in the manual allocation pool, with proportion {settings.proportion}: to"
                             f" give it {proportion} instead, call set_manual_proportion")
        self._warn_scarce(self._budget.set_manual(settings.account, part), proportion)

    def set_auto_limit_mode(self, instance: object) -> None:
        """Give an instance that had its own part a share of what others leave. ValueError for one that has a share."""
        settings = self._of(instance)
        if not settings.manual:
            raise ValueError(f"Instance is already in the auto allocation pool, with proportion {settings.proportion}")
        self._budget.set_auto(settings.account)

    def _add_manual_proportion(self, instance: object, proportion: float) -> None:
        """Put an instance into the manual pool, with a part of its own; for programs that call it."""
        self.set_manual_proportion(instance, proportion)

    def _add_auto_proportion(self, instance: object) -> float:
        """Put an instance into the automatic pool, and return its share; for programs that call it."""
        settings = self._of(instance)
        self._budget.set_auto(settings.account)
        return settings.proportion

    def proportion(self, instance: object) -> float:
        """An instance's part, 0 to 1."""
        return self._of(instance).proportion

    def cap(self, instance: object) -> Optional[int]:
        """The bytes of an instance's part."""
        return self._of(instance).cap

    @property
    def manual_pool_proportion(self) -> float:
        """The sum of the parts that were given."""
        return self._budget.pools()[0]

    @property
    def auto_pool_proportion(self) -> float:
        """The sum of the shares."""
        return self._budget.pools()[1]

    def _infos(self) -> List[Tuple[int, int, Info]]:
        """The numbers, accounts and figures of all instances, but those that become garbage meanwhile."""
        found = []
        for identifier in list(self.registry):
            settings = self.registry.get(identifier)
            info = None if settings is None else self._budget.find(settings.account)
            if settings is not None and info is not None:
                found.append((identifier, settings.account, info))
        return found

    def _members(self, manual: bool) -> List[int]:
        return [identifier for identifier, _, info in self._infos() if bool(info.manual) == manual]

    @property
    def _auto_pool(self) -> List[int]:
        return self._members(False)

    @property
    def _manual_pool(self) -> List[int]:
        return self._members(True)

    def _rebalance_auto_pool(self) -> None:
        """For programs that call it: the library shares anew with each change."""

    # Groups and streams

    def get_stream_group(self, instance: object) -> str:
        """The name of an instance's group."""
        return self.stream_groups.get_group(id(instance))

    def change_stream_group(self, instance: object, new_group: str) -> None:
        """Move an instance to another group, with what it has queued."""
        identifier = id(instance)
        with self._lock:
            old = self.get_stream_group(instance)
            account = self._of(instance).account
            check_name("new_group", new_group)
            self.stream_groups.change_group(identifier, new_group)
            try:
                self._budget.set_group(account, new_group)
            except BaseException:
                self.stream_groups.change_group(identifier, old)
                raise
            wanted = self._queued_allocations.get(old, {}).pop(identifier, None)
            if wanted is not None:
                self._queued_allocations.setdefault(new_group, {})[identifier] = wanted

    def is_grouped(self, instance: object) -> bool:
        """Whether an instance shares a group with others; group "default" does not count."""
        group = self.get_stream_group(instance)
        return group != "default" and len(self.stream_groups.get_instances_in_group(group)) > 1

    def get_stream(self, instance: object) -> Any:
        """The stream of an instance's group, which the instance is taken to work on from now on."""
        stream = self.stream_groups.get_stream(id(instance))
        settings = self.registry.get(id(instance))
        if settings is not None:
            self._budget.use(settings.account, stream)
        return stream

    def reinit_streams(self) -> None:
        """Give each group a new stream, which its instances work on from now on."""
        self.stream_groups.reinit_streams()
        for identifier, account, _ in sorted(self._infos(), key=lambda known: known[2].last_used):
            with contextlib.suppress(ValueError):  # it has become garbage, and is in no group
                self._budget.use(account, self.stream_groups.get_stream(identifier))

    def sync_stream(self, instance: object) -> None:
        """Wait until an instance's stream has done what it was given."""
        ensure_cuda_context(self.device)
        stream = self.stream_groups.get_stream(id(instance))
        if not hasattr(stream, "synchronize"):
            stream = _streams.Stream(self.device, _streams.handle(stream))
        stream.synchronize()

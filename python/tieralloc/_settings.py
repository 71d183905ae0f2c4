"""What a MemoryManager knows of an instance."""

import numbers
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional

from ._blocks import address_of
from ._budget import Budget
from ._requests import ArrayResponse


class NotRegisteredError(KeyError, ValueError):
    """An instance that the manager does not know."""

    def __str__(self) -> str:
        return str(self.args[0])


def placeholder_invalidate() -> None:
    """The invalidate hook of an instance that has none."""


def placeholder_dataready(response: ArrayResponse) -> None:
    """The ready hook of an instance that has none."""


def check_proportion(value: Any) -> float:
    """A part of the memory, 0 to 1."""
    expected = f"Proportion must be between 0 and 1: {value!r}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(expected)
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(expected) from None
    if not 0 <= number <= 1:
        raise ValueError(expected)
    return number


def _check_hook(name: str, hook: Any) -> None:
    if not callable(hook):
        raise TypeError(f"'{name}' must be callable (got {hook!r}, which is a {type(hook).__name__})")


def weakly(hook: Callable[..., Any], instance: Any) -> Callable[..., Any]:
    """A hook that does not keep the instance, whose method it may be."""
    if getattr(hook, "__self__", None) is not instance or not hasattr(hook, "__func__"):
        return hook
    try:
        method = weakref.WeakMethod(hook)  # type: ignore[arg-type]
    except TypeError:  # a class without weak references
        return hook

    def call(*arguments: Any) -> Any:
        found = method()
        return found(*arguments) if found is not None else None

    return call


class InstanceMemorySettings:
    """An instance's part of the memory, its hooks, and the arrays that it has, by their labels.

    proportion and cap are the library's, and change as instances come and go. Without a
    manager they are what they were made with.
    """

    def __init__(self, proportion: float = 1.0, allocations: Optional[Dict[str, Any]] = None,
                 invalidate_hook: Callable[[], None] = placeholder_invalidate,
                 allocation_ready_hook: Callable[[ArrayResponse], None] = placeholder_dataready,
                 cap: Optional[int] = None) -> None:
        if allocations is not None and not isinstance(allocations, dict):
            raise TypeError(f"'allocations' must be a dict (got {allocations!r})")
        if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int)):
            raise TypeError(f"'cap' must be None or a number of bytes (got {cap!r})")
        _check_hook("invalidate_hook", invalidate_hook)
        _check_hook("allocation_ready_hook", allocation_ready_hook)
        self._proportion, self._cap = check_proportion(proportion), cap
        self.allocations: Dict[str, Any] = {} if allocations is None else allocations
        self.invalidate_hook, self.allocation_ready_hook = invalidate_hook, allocation_ready_hook
        self._budget: Optional[Budget] = None
        self.account = 0
        self._charged: Dict[str, int] = {}  # bytes of arrays that are not the manager's, by label
        self._responses: List["weakref.ref[ArrayResponse]"] = []  # that the instance got, and has still

    def open(self, budget: Budget, account: int) -> None:
        """Have an account of a manager, with what there is already."""
        self._budget, self.account = budget, account
        for key, array in list(self.allocations.items()):
            self.add_allocation(key, array)

    def close(self) -> None:
        """Have none any more."""
        self._budget = None
        self._charged.clear()

    @property
    def is_open(self) -> bool:
        """Whether it has an account."""
        return self._budget is not None

    @property
    def proportion(self) -> float:
        """The part of the total, 0 to 1."""
        return self._proportion if self._budget is None else self._budget.get(self.account).proportion

    @property
    def cap(self) -> Optional[int]:
        """The bytes of that part."""
        return self._cap if self._budget is None else self._budget.get(self.account).cap

    @property
    def manual(self) -> bool:
        """Whether the part was given to it, and is not a share of what others leave."""
        return self._budget is not None and bool(self._budget.get(self.account).manual)

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the arrays that it has. The library counts those, too, that only the program has still."""
        return sum(int(array.nbytes) for array in list(self.allocations.values()))

    def add_allocation(self, key: str, arr: Any) -> None:
        """Keep an array under a label; the one that had it is let go.

        One that did not come from allocate_all or allocate_queue is accounted while it is kept.
        """
        self._let_go(key)
        if self._budget is not None and not self._budget.has(address_of(arr)):
            self._budget.charge(self.account, int(arr.nbytes))
            self._charged[key] = int(arr.nbytes)
        self.allocations[key] = arr

    def free(self, key: str) -> None:
        """Let the array with a label go. UserWarning where there is none."""
        if not self._let_go(key):
            warnings.warn(f"Attempted to free allocation for {key}, but it was not found in the allocations list",
                          UserWarning, stacklevel=2)

    def _let_go(self, key: str) -> bool:
        """Whether there was an array with a label: another thread may have it give way at the same time."""
        found = self.allocations.pop(key, None) is not None
        charged = self._charged.pop(key, 0) if found else 0
        if charged and self._budget is not None:
            self._budget.charge(self.account, -charged)
        return found

    def free_all(self) -> None:
        """Let all arrays go. Those that the program has still stay valid, and accounted."""
        for key in list(self.allocations):
            self._let_go(key)

    def answer(self, response: ArrayResponse) -> None:
        """Keep the arrays that a queue has brought, in the place of those that have their labels."""
        for key, array in response.arr.items():
            self.add_allocation(key, array)
        self._responses = [*(known for known in self._responses if known() is not None), weakref.ref(response)]

    def release(self, labels: Iterable[str]) -> bool:
        """Let arrays go, and take them out of the responses that the instance has still. Whether it had any."""
        gone = list(labels)
        responses = [response for response in (known() for known in self._responses) if response is not None]
        for response in responses:
            for label in gone:
                response.arr.pop(label, None)
        return any([self._let_go(label) for label in gone])

    @property
    def live(self) -> int:
        """Bytes that the library counts for it: of the arrays that it has, and of those that only the program has."""
        info = None if self._budget is None else self._budget.find(self.account)
        return 0 if info is None else int(info.bytes_live)

    def give_way(self) -> None:
        """Free what can be freed, because others are short of memory, and tell the instance."""
        labels = set(list(self.allocations))
        for known in self._responses:
            response = known()
            labels.update(() if response is None else list(response.arr))
        self.release(labels)
        self.invalidate_hook()

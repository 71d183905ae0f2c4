"""Room for what a group has queued: what it replaces goes first, then instances that are idle are asked."""

from typing import Callable, List, Sequence, Tuple

from . import _driver
from ._budget import MOST, Asked, Budget, Chunking
from ._requests import Requests
from ._settings import InstanceMemorySettings

# The instances that have queued, with what they want.
Takers = Sequence[Tuple[InstanceMemorySettings, Requests]]


def hopeless(chunkable: int, unchunkable: int, room: int, runs: int) -> bool:
    """Whether requests do not fit however they are cut, if so many bytes are theirs alone."""
    if chunkable + unchunkable < room:
        return False
    return chunkable == 0 or unchunkable >= room or runs * (room - unchunkable) < chunkable


class Room:
    """Makes room until what is wanted fits uncut, or nobody is left who could help.

    group  whose requests they are
    look   how they are cut now: 0 or what is wrong as an errno, and the figures
    fixed  what is free is a subclass's figure, which does not rise, perhaps, when memory is freed
    """

    def __init__(self, budget: Budget, group: str, look: Callable[[], Tuple[int, Chunking]], fixed: bool) -> None:
        self._budget, self._group, self._look, self._fixed = budget, group, look, fixed
        self.released: List[InstanceMemorySettings] = []

    def _enough(self) -> bool:
        why, found = self._look()
        return why == 0 and found.whole

    def make(self, account: int, takers: Takers, stream: int) -> None:
        """Make room for takers, who work on a stream. account is of one of them, or of their group."""
        if self._enough():
            return
        kept = [settings for settings, wanted in takers if self._release(settings, wanted)]
        for settings in kept:
            if self._enough():
                return
            if _driver.done(self._budget.device, stream):
                settings.give_way()
        self._ask(account)

    def _release(self, settings: InstanceMemorySettings, wanted: Requests) -> bool:
        """Let the arrays of a taker go that are about to be replaced. Whether the program keeps some of them."""
        replaced = [settings.allocations.get(label) for label in wanted]
        due, before = sum(int(array.nbytes) for array in replaced if array is not None), settings.live
        replaced.clear()
        if settings.release(wanted):
            self.released.append(settings)
        return before - settings.live < due

    def _ask(self, account: int) -> None:
        """Ask idle instances: those of the group where its budget is short, else all."""
        asked = {False: Asked(), True: Asked()}
        before = -1
        while True:
            why, found = self._look()
            if why == 0 and found.whole or self._fixed and found.available <= before:
                return
            before = found.available
            everywhere = before < self._budget.available(self._group, MOST)[0]
            if not self._budget.ask_idle(account, everywhere, asked[everywhere]):
                return

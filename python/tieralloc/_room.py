"""Room for what a group has queued."""

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
    """Makes room for what a group has queued.

    First what the queue replaces goes, also out of the responses that its instances have; then those of
    them who keep it otherwise are told that it is void, if they are idle; then others who are idle give way,
    least recently used first.

    look    how the requests are cut now: 0 or what is wrong as an errno, and the figures
    fixed   what is free is a subclass's figure, which does not rise, perhaps, when memory is freed
    stream  the group's, on which its instances work
    """

    def __init__(self, budget: Budget, group: str, takers: Takers, stream: int, look: Callable[[], Tuple[int, Chunking]],
                 fixed: bool) -> None:
        self._budget, self._group, self._stream, self._look, self._fixed = budget, group, stream, look, fixed
        self._account = takers[0][0].account
        self._replacing = list(takers)
        self._keeping: List[InstanceMemorySettings] = []  # who has arrays that the queue replaces
        self._asked = {False: Asked(), True: Asked()}
        self._whole = True  # the heap's cache was left as it is
        self.refused = ""  # the kind of memory that was
        self.released: List[InstanceMemorySettings] = []

    def make(self) -> None:
        """Make room until what is wanted fits uncut, or nobody is left who could help."""
        while True:
            why, found = self._look()
            if why == 0 and found.whole:
                return
            if self._own():
                continue
            everywhere = found.available < self._budget.available(self._group, MOST)[0]
            if not self._budget.ask_idle(self._account, everywhere, self._asked[everywhere]):
                return
            if self._fixed and self._look()[1].available <= found.available:
                return

    def more(self) -> bool:
        """Make more room, because memory was refused. Whether it is worth another attempt.

        The heap's cache goes back to the driver each time: its segments are of other sizes.
        """
        if self.refused in ("pinned", "mapped"):
            return False  # nobody has memory of the host to give
        first, self._whole = self._whole, False
        helped = self._own() or first or self._budget.ask_idle(self._account, True, self._asked[True])
        self._budget.trim()
        return helped

    def _own(self) -> bool:
        """Have those who queued let go of what is replaced. Whether there was anything left to do."""
        if self._replacing:
            self._keeping = [settings for settings, wanted in self._replacing if self._release(settings, wanted)]
            self._replacing = []
            return bool(self.released)
        while self._keeping:
            settings = self._keeping.pop()
            if _driver.done(self._budget.device, self._stream):
                settings.invalidate_hook()
                return True
        return False

    def _release(self, settings: InstanceMemorySettings, wanted: Requests) -> bool:
        """Let the arrays of one go that are about to be replaced. Whether the program keeps some of them."""
        replaced = [settings.allocations.get(label) for label in wanted]
        due, before = sum(int(array.nbytes) for array in replaced if array is not None), settings.live
        replaced.clear()
        if settings.release(wanted):
            self.released.append(settings)
        return before - settings.live < due

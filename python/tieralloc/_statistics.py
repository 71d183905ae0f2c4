"""Figures of a device, and of what happens in a performance_context."""

import dataclasses
import json

from . import _library

watches = {}  # by device: the Watch of the process, and of each open performance_context


@dataclasses.dataclass
class Statistics:
    """Figures of one device, or what they rose by in a performance_context."""

    total_allocations: int = 0
    total_freed: int = 0
    peak_memory_usage: int = 0  # bytes of live blocks
    cache_hits: int = 0
    cache_misses: int = 0
    stream_hits: int = 0  # the hits, by where the block was found
    global_hits: int = 0
    split_hits: int = 0
    live_bytes: int = 0
    reserved_bytes: int = 0
    cached_bytes: int = 0
    fragmentation_ratio: float = 0.0
    ordinal: int = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def device(self):
        """All that the report says of the device at the moment; {} where it was not used yet."""
        devices = json.loads(_library.text_of(_library.function("ta_stats_json"))).get("devices", []) if self.ordinal is not None else []
        return next((device for device in devices if device["ordinal"] == self.ordinal), {})

    @property
    def cache_hit_rate(self):
        """Hits of those requests that the cache was asked for; 0 without any."""
        asked = self.cache_hits + self.cache_misses
        return self.cache_hits / asked if asked else 0.0

    def efficiency_score(self):
        """Hits of all allocations, those of the driver's own too, 0 to 1; 1 before the first."""
        return min(1.0, self.cache_hits / self.total_allocations) if self.total_allocations else 1.0

    @classmethod
    def of(cls, figures, peak, ordinal):
        hits, cached = (figures.hits_local, figures.hits_global, figures.hits_split), figures.cached
        return cls(figures.alloc_calls, figures.free_calls, peak, sum(hits), figures.misses, *hits, figures.bytes_live,
                   figures.bytes_reserved, cached, max(0.0, 1 - figures.largest_free / cached) if cached else 0.0, ordinal)

    def since(self, before):
        """What the counters rose by; the other figures are those at the end."""
        rose = {name: getattr(self, name) - getattr(before, name) for name in (
            "total_allocations", "total_freed", "cache_hits", "cache_misses", "stream_hits", "global_hits", "split_hits")}
        return dataclasses.replace(self, **rose)


@dataclasses.dataclass
class Performance:
    """What a performance_context saw; stats is None inside of it."""

    stats: Statistics = None
    seconds: float = 0.0


class Watch:
    """The peak of a device since a moment. The library has one peak; whoever starts it again tells all watches first."""

    def __init__(self):
        self.peak = 0

    @staticmethod
    def tell(device, peak):
        for watch in watches.setdefault(device, [Watch()]):
            watch.peak = max(watch.peak, peak)

"""Operations on ranges of managed memory, named as in cuda.core.utils."""

from ._ranges import advise, discard, discard_batch, discard_prefetch, discard_prefetch_batch, prefetch, prefetch_batch

__all__ = ["advise", "discard", "discard_batch", "discard_prefetch", "discard_prefetch_batch", "prefetch", "prefetch_batch"]

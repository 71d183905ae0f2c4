"""The former name of tieralloc.aio."""

import warnings

from tieralloc.aio import *  # noqa: F403
from tieralloc.aio import __all__ as __all__

warnings.warn("tieralloc_async is now tieralloc.aio", DeprecationWarning, stacklevel=2)

"""The former name of tieralloc.cuda."""

import warnings

from tieralloc.cuda import *  # noqa: F403
from tieralloc.cuda import __all__ as __all__

warnings.warn("tieralloc_cuda is now tieralloc.cuda", DeprecationWarning, stacklevel=2)

"""numba beside a NumPy that is newer than it."""

import sys


def import_numba():
    """NumPy and numba.cuda.

    numba's CUDA part asks NumPy, when it is loaded, for functions under names that NumPy has
    dropped since: in 2.4 in1d and trapz, in 2.5 row_stack. Nothing here calls them, so the
    functions that took their place will do.
    """
    import numpy as np

    for gone, now in ("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid"):
        if not hasattr(np, gone) and hasattr(np, now):
            setattr(np, gone, getattr(np, now))
    try:
        from numba import cuda
    except Exception as error:  # its own check of NumPy's version is an ImportError
        from importlib import metadata
        versions = [f"{name} {metadata.version(name)}" for name in ("numba", "numba-cuda") if list(metadata.distributions(name=name))]
        text = " ".join(str(error).split())
        sys.exit(f"{', '.join(versions) or 'numba'} with NumPy {np.__version__}: {type(error).__name__}: {text}")
    return np, cuda

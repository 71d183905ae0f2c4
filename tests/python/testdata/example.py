"""What TierAlloc's document shows of its shim, in its order."""

import tieralloc_shim

tieralloc_shim.enable()
tieralloc_shim.set_default_hint("hot")
print(tieralloc_shim.hello())

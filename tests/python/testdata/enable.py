"""Says that the shim could be switched on."""

import sys

import tieralloc_shim as t

try:
    t.enable()
except RuntimeError as error:
    sys.exit(str(error))
print("enabled", *sys.argv[1:])

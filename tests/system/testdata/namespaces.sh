#!/bin/sh
# Namespaces can be made in the root as on a machine of its own.
set -ex
unshare -m true
unshare -Ur true

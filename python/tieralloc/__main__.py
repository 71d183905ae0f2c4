"""python -m tieralloc ...: the tool tierallocctl, which a wheel brings with the library.

    python -m tieralloc run --fast-hard 64M --default-hint prefer_fast -- python3 train.py
    python -m tieralloc verify -- python3 train.py
"""

import os
import shutil
import sys

from ._library import find_file


def main() -> None:
    """Become the tool, with the arguments of this process."""
    tool = find_file("tierallocctl") or shutil.which("tierallocctl")
    if tool is None:
        sys.exit("tieralloc: tierallocctl is neither in this package nor in PATH: "
                 "install the wheel, or tieralloc itself")
    os.execv(tool, ["tierallocctl", *sys.argv[1:]])


if __name__ == "__main__":
    main()

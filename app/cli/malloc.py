"""Has large blocks of memory go back to the system as soon as they are freed.

A picture is a megabyte, and so is each request that holds one. glibc's allocator takes the first such block that is
freed as a sign to keep further ones in its heap (the dynamic M_MMAP_THRESHOLD of mallopt(3)), where any small block
that lives on above them keeps them all: tens of megabytes that nobody uses.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
"""Its number in malloc.h. Setting it ends the learning."""
LARGE_BYTES: Final = 256 * 1024


def give_back_large_blocks() -> bool:
    """For this process, from now on. False where the C library has no such setting, and nothing is changed."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES))

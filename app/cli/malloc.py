"""Allocator setting that returns large memory blocks to the system as soon as they are freed.

Screenshots, and the requests that contain them, need about 1 MB each. When such a block is freed, glibc raises its
dynamic M_MMAP_THRESHOLD (see mallopt(3)) and allocates later ones on the heap. There, one small block above them
prevents their release, which wastes tens of megabytes.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
"""Value in malloc.h. Setting the threshold disables its dynamic adjustment."""
LARGE_BYTES: Final = 256 * 1024


def set_mmap_threshold() -> bool:
    """Set a fixed threshold for this process. Return False if the C library does not support it."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES))

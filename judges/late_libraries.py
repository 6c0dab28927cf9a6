"""Libraries that are imported when they are first used: optional ones, and large ones that most processes do not need.

``from judges.late_libraries import np`` costs nothing. ``np.mean`` imports numpy, and raises ModuleNotFoundError if its
extra is not installed; ``judges.errors.missing_extra`` tells the user how to install it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["arxiv", "googlemaps", "maps_exceptions", "np", "optimize", "pa", "pq", "special"]


class _Library:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


if TYPE_CHECKING:
    import numpy as np
    from scipy import optimize, special
else:
    np = _Library("numpy")  # 0.1 s; starts threads, which a process that forks must not have
    optimize = _Library("scipy.optimize")  # 0.5 s
    special = _Library("scipy.special")  # 0.1 s

arxiv: Any = _Library("arxiv")  # a fifth of the start of a judge process
googlemaps: Any = _Library("googlemaps")  # 0.2 s
maps_exceptions: Any = _Library("googlemaps.exceptions")
pa: Any = _Library("pyarrow")  # 0.1 s
pq: Any = _Library("pyarrow.parquet")

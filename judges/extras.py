"""Extras of the distribution: large packages that most users do not need. They are imported where they are used."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

EXTRAS: Final = {
    "anthropic": "bedrock",
    "numpy": "statistics",
    "pyarrow": "suites",
    "scipy": "statistics",
}
"""Extra of each optional package, by import name."""


def installed(extra: str) -> bool:
    """Return whether all packages of an extra are installed. Imports none of them."""
    return all(find_spec(package) is not None for package, owner in EXTRAS.items() if owner == extra)


def advice(extra: str) -> str:
    """Return how to install an extra."""
    return f"install the extra {extra!r}: `make setup-all` in a checkout, or pip install 'assay[{extra}]'"


def missing_extra(error: BaseException) -> str | None:
    """Return the message for a failed import of an optional package; None for any other error.

    >>> missing_extra(ModuleNotFoundError(name="scipy.special"))[:35]
    'The package scipy is not installed:'
    """
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    extra = EXTRAS.get(package)
    return None if extra is None else f"The package {package} is not installed: {advice(extra)}"

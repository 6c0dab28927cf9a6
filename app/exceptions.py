"""Helper for exception groups of concurrent tasks."""

from __future__ import annotations


def first_exception(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first leaf exception of a group, at any depth."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found

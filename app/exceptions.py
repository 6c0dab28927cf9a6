"""What went wrong in tasks side by side, as the one error that it would have been in a single one."""

from __future__ import annotations


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first single exception in a group, however deep."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found

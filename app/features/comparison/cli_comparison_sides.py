"""Sides of a comparison on the command line: agents, runs and results of a server, or local result folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.console.connection import connect
from app.console.errors import WrongUsage
from app.console.summaries import check_judges, outcomes_in_folder

if TYPE_CHECKING:
    from app.features.comparison.paired_comparison import ComparisonSide

SIDES = "agent, agent@run or result id on the server, or a result folder OUT/AGENT"


def compare_sides(url: str, first: str, others: Sequence[str], *, mix_judges: bool) -> Mapping[str, Any]:
    """Compare ``first`` with each of ``others``.

    Raises:
        WrongUsage: the names mix folders with others, one has no judged answer, or the sides have several judges and
            ``mix_judges`` is false.
        ToolFailed: the server does not answer.
    """
    document = _comparison(url, first, others)
    sides = [document["a"], *(comparison["b"] for comparison in document["comparisons"])]
    check_judges(*(side.get("judges") or {} for side in sides), mix=mix_judges)
    return document


def _comparison(url: str, first: str, others: Sequence[str]) -> Mapping[str, Any]:
    if not _all_are_folders(first, *others):
        with connect(url) as client:
            return client.compare(first, others, mix_judges=True)
    from app.features.comparison.paired_comparison import comparison_json

    before, *after = map(_side, (first, *others))
    return comparison_json(before, after)


def _all_are_folders(*names: str) -> bool:
    """Return True if all names are result folders, False if none is.

    Raises:
        WrongUsage: only some are.
    """
    folders = [is_folder(name) for name in names]
    if any(folders) and not all(folders):
        raise WrongUsage(
            f"{' and '.join(names)}: folders can only be compared with folders",
            hint="A name that contains / is a result folder; other names refer to the server.",
        )
    return all(folders)


def _side(name: str) -> ComparisonSide:
    from app.features.comparison.paired_comparison import ComparisonSide

    return ComparisonSide(name=name, outcomes=outcomes_in_folder(Path(name)))


def is_folder(name: str) -> bool:
    """Return whether a side is a result folder. Names of agents, runs and results never contain a slash."""
    return "/" in name

"""What a command compares: agents and runs of a running server, or result folders of ``assay evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.console.connection import connected
from app.console.errors import WrongUsage

if TYPE_CHECKING:
    from app.features.comparison.compared import Side
    from app.summary import AnswerOutcome

SIDES = "agent, agent@run or a result's id of the server; or a result folder, OUT/AGENT"


def compared(url: str, first: str, others: Sequence[str]) -> dict[str, Any]:
    """``first`` against each of ``others``.

    Raises:
        WrongUsage: some are folders and some are not, or one has no judged answer.
        ToolFailed: the server does not answer.
    """
    if not _folders(first, *others):
        with connected(url) as client:
            return client.compare(first, others)
    from app.features.comparison.compared import comparison_json

    before, *after = map(_side, (first, *others))
    return comparison_json(before, after)


def order_of(url: str, first: str, second: str) -> dict[str, Any]:
    """Whether who is ahead of two stays ahead.

    Raises:
        WrongUsage, ToolFailed: as ``compared``.
    """
    if not _folders(first, second):
        with connected(url) as client:
            return client.order_sensitivity(first, second)
    from app.features.comparison.sensitivities import order_json

    return order_json(_side(first), _side(second))


def _folders(*names: str) -> bool:
    """Whether all are result folders; False: none is.

    Raises:
        WrongUsage: some are.
    """
    folders = [is_folder(name) for name in names]
    if any(folders) and not all(folders):
        raise WrongUsage(
            f"{' and '.join(names)}: folders can only be compared with folders",
            hint="A name with a / is a result folder; one without is asked of the server.",
        )
    return all(folders)


def _side(name: str) -> Side:
    from app.features.comparison.compared import Side

    return Side(name=name, outcomes=outcomes_in(Path(name)))


def is_folder(name: str) -> bool:
    """Whether a side is a result folder: no agent, run or result has a slash in its name."""
    return "/" in name


def outcomes_in(folder: Path) -> Sequence[AnswerOutcome]:
    """The judged answers below ``OUT/AGENT``.

    Raises:
        WrongUsage: there is none.
    """
    from app.features.comparison.judged_folder import judged_in

    found = judged_in(folder.parent, folder.name)
    if not found:
        raise WrongUsage(
            f"{folder}: there is no judged answer below it",
            hint="Name the folder of an agent below the --out of `assay evaluate`: eval_results/my-agent",
        )
    return found

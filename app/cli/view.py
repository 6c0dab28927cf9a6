"""``assay view``: open the report of judged answers, or a written page, in the browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from app.cli.evaluate import write_report_file
from app.console.errors import WrongUsage
from app.console.judging_options import judging_settings, quiet_logging
from app.console.streams import print_line
from judges.result import SUPERSEDED


def view(
    path: Annotated[
        Path,
        typer.Argument(help="Results of `assay evaluate` (a folder or a .json of it), or an HTML file, as of `check`."),
    ] = Path("eval_results"),
) -> None:
    """Open results or a report in the browser."""
    if not path.exists():
        raise WrongUsage(f"{path}: no such file or folder")
    if path.suffix in (".html", ".htm") and path.is_file():
        pages = [path]
    else:
        settings = judging_settings()
        quiet_logging(settings)
        pages = [write_report_file(settings, folder.parent, folder.name, None) for folder in _agent_folders(path)]
    for page in pages:
        address = page.absolute().as_uri()
        print_line(address)
        webbrowser.open(address)  # without a browser, the printed address remains


def _agent_folders(path: Path) -> list[Path]:
    """Return the folders ``OUT/AGENT`` of a result file, or at, above or below a folder.

    Raises:
        WrongUsage: There is none.
    """
    start = path.absolute()
    above = [folder for folder in (start, *start.parents) if _has_results(folder)]
    below = sorted(filter(_has_results, start.iterdir())) if start.is_dir() else []
    if not (above or below):
        hint = "Give the folder that `assay evaluate` wrote, eval_results/AGENT, or an .html file."
        raise WrongUsage(f"{path} contains no results", hint=hint)
    return above[:1] or below


def _has_results(folder: Path) -> bool:
    files: Iterable[Path] = folder.glob("*/answer_*/results/*.json") if folder.is_dir() else ()
    return any(file.parent.name != SUPERSEDED for file in files)

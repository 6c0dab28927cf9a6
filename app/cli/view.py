"""``assay view``: open results, a bundle or a check in the browser."""

from __future__ import annotations

import json
import tempfile
import webbrowser
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from answers.submission import NAME_PATTERN, answer_number
from app.cli.evaluate import stored_bodies, write_report_file
from app.console import event_loop
from app.console.errors import Exit, WrongUsage
from app.console.judging_options import judging_settings, quiet_logging
from app.console.streams import print_line, stderr_console
from app.features.bundles.archive import BundleReader, open_bundle
from app.features.bundles.verification import read_result, verify_open
from app.features.check.reading_view import render_view
from app.features.check.report import CheckDocument
from app.settings import Settings
from judges.result import SUPERSEDED, AnswerFolder
from mind2web2.report import write_report


def view(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER",
            help="Results of `assay evaluate` (folder or .json), a bundle (.zip), or a check (--json or --html).",
        ),
    ] = Path("eval_results"),
) -> None:
    """Open results, a bundle or a check in the browser. A bundle contains its pages; others are in the data folder."""
    if not path.exists():
        raise WrongUsage(f"{path}: no such file or folder")
    for page in _pages(path):
        address = page.absolute().as_uri()
        print_line(address)
        webbrowser.open(address)  # without a browser, the printed address remains


def _pages(path: Path) -> list[Path]:
    """Return the HTML files that show ``path``. Those of bundles and checks are written to a temporary folder."""
    kind = path.suffix.lower() if path.is_file() else ""
    if kind in (".html", ".htm"):
        return [path]
    if kind == ".zip":
        with open_bundle(path) as bundle:
            return [_bundle_report(path, bundle)]
    settings = judging_settings()
    quiet_logging(settings)
    document = _check_document(path) if kind == ".json" else None
    if document is not None:
        return [_check_view(settings, document)]
    return [write_report_file(settings, folder.parent, folder.name, None) for folder in _agent_folders(path)]


def _new_folder() -> Path:
    """Return a folder that stays, because a browser reads it after this process has ended."""
    return Path(tempfile.mkdtemp(prefix="assay-view-"))


def _check_document(path: Path) -> CheckDocument | None:
    """Return the check in a JSON file, None if it contains something else.

    Raises:
        WrongUsage: it is not JSON, or not a complete check.
    """
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise WrongUsage(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(document, Mapping) or "statements" not in document:
        return None
    try:
        return CheckDocument.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise WrongUsage(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _check_view(settings: Settings, document: CheckDocument) -> Path:
    async def read(sha256: str) -> bytes | None:
        return (await stored_bodies(settings, [sha256])).get(sha256)

    page = _new_folder() / "check.html"
    page.write_text(event_loop.run(render_view(document, read)), "utf-8", "replace")
    return page


def _bundle_report(path: Path, bundle: BundleReader) -> Path:
    """Write the report of the results in a bundle, with its own pages.

    Raises:
        typer.Exit: the bundle is not valid.
    """
    report, agent = verify_open(bundle), bundle.manifest.agent
    if not report.valid or not NAME_PATTERN.fullmatch(agent):
        problem = report.first_problem or f"{agent!r} is not a valid name of an agent"
        stderr_console().print_line(f"{path} is not valid: {problem}")
        raise typer.Exit(Exit.FAILED)
    out, taken = _new_folder(), set[tuple[str, int]]()
    for entry in bundle.manifest.results:
        run = answer_number(entry.answer_name) or 1
        while (entry.task_id, run) in taken:
            run += 1
        taken.add((entry.task_id, run))
        folder = AnswerFolder(out=out, agent=agent, task_id=entry.task_id, answer_name=f"answer_{run}.md")
        result: Mapping[str, Any] = read_result(bundle, entry)
        answer = f"answers/{result.get('answer_sha256')}.md"
        folder.results.mkdir(parents=True)
        folder.result_path(datetime.now(UTC)).write_text(json.dumps(result), "utf-8", "replace")
        if answer in bundle:
            folder.copy_inputs(bundle.read(answer), None)
    by_digest = {Path(file).stem: file for file in bundle.files if file.startswith("evidence/")}

    def bodies(digests: Sequence[str]) -> dict[str, bytes]:
        return {digest: bundle.read(by_digest[digest]) for digest in digests if digest in by_digest}

    return write_report(agent, out, stored_bodies=bodies)


def _agent_folders(path: Path) -> list[Path]:
    """Return the folders ``OUT/AGENT`` of a result file, or at, above or below a folder.

    Raises:
        WrongUsage: There is none.
    """
    start = path.absolute()
    above = [folder for folder in (start, *start.parents) if _has_results(folder)]
    below = sorted(filter(_has_results, start.iterdir())) if start.is_dir() else []
    if not (above or below):
        hint = "Give the folder that `assay evaluate` wrote, eval_results/AGENT, a bundle, or the output of `check`."
        raise WrongUsage(f"{path} contains no results", hint=hint)
    return above[:1] or below


def _has_results(folder: Path) -> bool:
    files: Iterable[Path] = folder.glob("*/answer_*/results/*.json") if folder.is_dir() else ()
    return any(file.parent.name != SUPERSEDED for file in files)

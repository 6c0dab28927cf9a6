"""``assay check``: options of the command, and the list of citation marks (``--bind``)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from answers.binding import Binding
from answers.binding import bind as bind_marks
from app.console.answer_files import read_report_file, read_supplied_pages
from app.console.connection import DryRunOption, JsonOption
from app.console.errors import WrongUsage, check_output
from app.console.judging_options import MaxPagesOption
from app.console.streams import print_json, print_line, stdout_console
from app.console.tables import plain_table
from app.dashboard.wording import shorten
from app.features.check.command import CheckCommand
from app.features.check.reports import is_url
from cache.capture import EvidencePolicy

_SourceArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE|URL",
        help="Report as Markdown, plain text, .docx, .html or .pdf, reply of a model provider (.json), - for standard "
        "input, or address of a published page (default: the shipped demo report).",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judging:
    """What judges the report, and its limits."""

    budget: Annotated[
        float | None, typer.Option("--budget", min=0.0, metavar="USD", help="Stop when this cost is reached.")
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="Model, as provider/model; lexical is a baseline without a model. Several, with commas between them, "
            "are a jury: its first model also divides the statements into claims (default: ASSAY_MODEL)."
        ),
    ] = None
    max_pages: MaxPagesOption = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Supplied:
    """Pages that come with the report, and their use."""

    sources: Annotated[
        Path | None,
        typer.Option(
            "--sources",
            metavar="FILE",
            help="Pages that come with the report: JSON lines with url and text, html, mhtml, pdf or image.",
        ),
    ] = None
    evidence: Annotated[
        EvidencePolicy,
        typer.Option(
            "--evidence",
            help="With --sources: open all pages and use these where a page cannot be read (fallback), or open none "
            "(supplied).",
        ),
    ] = EvidencePolicy.SUPPLIED


def check(
    source: _SourceArgument = None,
    *,
    bind: Annotated[
        bool, typer.Option("--bind", help="Only list each citation mark with its source and statement.")
    ] = False,
    as_json: JsonOption = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="OUT", help="Write the report as HTML.")] = None,
    dry_run: DryRunOption = False,
    min_precision: Annotated[
        float | None,
        typer.Option("--min-precision", min=0.0, max=1.0, metavar="P", help="Exit 1 below this citation precision."),
    ] = None,
    supplied: _Supplied,
    judging: _Judging,
) -> None:
    """Check whether the sources of a report support its statements.

    Opens each cited page with the browser and judges each statement. Without FILE, checks the shipped demo report
    with the lexical baseline, which needs no key.
    """
    if source is None and (bind or supplied.sources is not None):
        raise WrongUsage(f"{'--bind' if bind else '--sources'} needs a FILE or URL")
    if (bind or dry_run) and (html is not None or min_precision is not None):
        raise WrongUsage("--html and --min-precision need a check: remove --bind or --dry-run")
    check_output("--html", html)
    is_file = source is not None and not is_url(source)
    report = read_report_file(Path(str(source))) if is_file else None
    if bind and report is not None:
        print_binding(str(source), report, as_json=as_json)
        return
    pages = () if supplied.sources is None else tuple(read_supplied_pages(supplied.sources))
    command = CheckCommand(source=source, text=report, supplied=pages, policy=supplied.evidence, **asdict(judging))
    if bind:
        print_binding(str(source), command.published_text(), as_json=as_json)
    elif dry_run:
        command.print_estimate(as_json=as_json)
    else:
        command.run(as_json=as_json, html=html, min_precision=min_precision)


def print_binding(name: str, text: str, *, as_json: bool) -> None:
    """Print each citation mark with its source and statement, or a summary of them."""
    binding = bind_marks(text)
    if as_json:
        print_json(_binding_json(binding))
    else:
        _print_binding(name, binding)


def _binding_json(binding: Binding) -> dict[str, Any]:
    """Return the JSON document of ``--bind --json``. Offsets are characters."""
    text, sources = binding.text, binding.sources
    marks_of: list[list[str]] = [[] for _ in sources]
    marks = []
    for mark in binding.marks:
        source = None if mark.source is None else sources[mark.source]
        if mark.source is not None:
            marks_of[mark.source].append(text[mark.start : mark.end])
        marks.append(
            {
                "mark": text[mark.start : mark.end],
                "start": mark.start,
                "end": mark.end,
                "url": None if source is None else source.url,
                "title": "" if source is None else source.title,
                "source": mark.source,
                "statement": text[mark.statement_start : mark.statement_end],
                "statement_start": mark.statement_start,
                "statement_end": mark.statement_end,
            }
            | ({"page": mark.page} if mark.page else {})
        )
    return {
        "marks": marks,
        "sources": [
            {"url": source.url, "title": source.title, "marks": written}
            | ({"truncated": True} if source.truncated else {})
            for source, written in zip(sources, marks_of, strict=True)
        ],
    }


def _print_binding(name: str, binding: Binding) -> None:
    """Print the counts, then the marks without a source and the sources that are not bound to a statement."""
    unbound, unused = binding.unbound(), binding.unused()
    no_url = sum(mark.source is not None and binding.sources[mark.source].url is None for mark in binding.marks)
    console = stdout_console()
    table = plain_table("citations", "bound", "unbound", "sources", "unused")
    counts = (len(binding.marks), len(binding.marks) - len(unbound), len(unbound), len(binding.sources), len(unused))
    table.add_row(*map(str, counts))
    console.print(table)
    if not binding.marks:
        print_line(f"{name} contains no citations.")
    if no_url:
        print_line(f"{no_url} of the bound citations refer to a source without a URL.")
    if unbound:
        print_line("Marks without a source:")
        for mark in unbound:
            written = shorten(binding.text[mark.start : mark.end], 100)
            statement = shorten(binding.text[mark.statement_start : mark.statement_end], 100)
            print_line(f"  line {_line(binding, mark.start)}: {written}  {statement}")
    if unused:
        print_line("Sources not bound to a statement:")
        for source in unused:
            cut = "(truncated)" if source.truncated else ""
            named = "  ".join(part for part in (source.url, cut, shorten(source.title, 100)) if part)
            print_line(f"  line {_line(binding, source.start)}: {named}")


def _line(binding: Binding, offset: int) -> int:
    return binding.text.count("\n", 0, offset) + 1

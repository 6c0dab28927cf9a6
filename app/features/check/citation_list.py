"""``assay check --bind``: list of the citation marks of a report with their sources and statements."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from answers.binding import Binding, bind
from app.console.streams import print_json, print_line, stdout_console
from app.console.tables import plain_table


def print_binding(name: str, text: str, *, as_json: bool) -> None:
    """Print each citation mark with its source and statement, or a summary of them."""
    binding = bind(text)
    if as_json:
        print_json(binding_json(binding))
    else:
        _print_binding(name, binding)


def binding_json(binding: Binding) -> dict[str, Any]:
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
        )
    return {
        "marks": marks,
        "sources": [
            {"url": source.url, "title": source.title, "marks": written}
            for source, written in zip(sources, marks_of, strict=True)
        ],
    }


def _print_binding(name: str, binding: Binding) -> None:
    """Print the counts, then the marks without a source and the sources without a mark."""
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
    line_of = line_numbers(binding.text)
    if unbound:
        print_line("Marks without a source:")
        for mark in unbound:
            written, statement = (
                binding.text[mark.start : mark.end],
                binding.text[mark.statement_start : mark.statement_end],
            )
            print_line(f"  line {line_of(mark.start)}: {short(written, 100)}  {short(statement, 100)}")
    if unused:
        print_line("Sources without a mark:")
        for source in unused:
            named = "  ".join(part for part in (source.url, short(source.title, 100)) if part)
            print_line(f"  line {line_of(source.start)}: {named}")


def line_numbers(text: str) -> Callable[[int], int]:
    """Return a function that returns the line of a position."""
    ends = [index for index, char in enumerate(text) if char == "\n"]
    return lambda offset: bisect_right(ends, offset - 1) + 1


def short(text: str, limit: int = 300) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"

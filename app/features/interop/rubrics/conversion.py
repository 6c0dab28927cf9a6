"""Conversion of a whole rubric file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Final

from app.features.interop.rubrics import RubricFormat, harbor, healthbench, openai_graders, paperbench, promptfoo
from app.features.interop.rubrics.draft import Draft, ImportedTask
from app.features.interop.rubrics.sources import MAX_PROBLEMS, MAX_ROWS, Malformed, Source, read_source

_BY_ROW: Final[dict[RubricFormat, Callable[[Source], Iterator[Draft]]]] = {
    RubricFormat.HEALTHBENCH: healthbench.convert,
    RubricFormat.PAPERBENCH: paperbench.convert,
    RubricFormat.HARBOR: harbor.convert,
    RubricFormat.PROMPTFOO: promptfoo.convert,
}


def import_rubrics(
    format: RubricFormat,
    data: bytes,
    name: str,
    *,
    rows: tuple[bytes, str] | None = None,
    question: str = "",
) -> list[ImportedTask]:
    """Convert a rubric file to task files that compile, with what has no equivalent.

    Args:
        name: file name, for the parser, messages and ids.
        rows: content and name of the data set, for ``openai``.
        question: description of tasks whose source has none.

    Raises:
        Malformed: the file, or the data set, is not of its format. The message lists the first problems.
    """
    source = read_source(data, name)
    drafts: list[Draft] = []
    problems: list[str] = []
    for convert in _conversions(format, source, [] if rows is None else _rows(*rows)):
        try:
            for draft in convert():
                drafts.append(draft)
                if len(drafts) > MAX_ROWS:
                    raise Malformed(f"{name}: more than {MAX_ROWS} tasks; split the file")
        except Malformed as error:
            problems += str(error).splitlines()
            if len(problems) >= MAX_PROBLEMS:
                break
    if problems:
        raise Malformed(*problems)
    if not drafts:
        raise Malformed(f"{name}: it contains no rubric")
    taken: set[str] = set()
    stem = PurePath(name).stem
    for draft in drafts:
        draft.name = draft.name or stem
    return [draft.finish(taken, question) for draft in drafts]


def _conversions(
    format: RubricFormat, source: Source, rows: Sequence[Source]
) -> Iterator[Callable[[], Iterator[Draft]]]:
    """Yield one conversion per row, so that problems of several rows can be reported at once."""
    if format is RubricFormat.OPENAI:
        yield lambda: openai_graders.convert(source, rows)
        return
    for row in source.rows() if isinstance(source.value, list) else [source]:
        yield lambda row=row: _BY_ROW[format](row)  # type: ignore[misc]


def _rows(data: bytes, name: str) -> list[Source]:
    rows = read_source(data, name).rows()
    if not rows:
        raise Malformed(f"{name}: expected one object per line (.jsonl), or a list of objects")
    return rows

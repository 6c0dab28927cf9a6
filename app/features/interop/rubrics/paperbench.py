"""Trees of requirements, in the form of PaperBench."""

from __future__ import annotations

from collections.abc import Iterator

from app.features.interop.rubrics.draft import Draft, Nodes
from app.features.interop.rubrics.sources import Source
from judges.yaml_tasks.document import MAX_DEPTH

_MAX_LEVELS = MAX_DEPTH // 2 - 1
"""A level of the tree takes two levels of the file."""


def convert(source: Source) -> Iterator[Draft]:
    """Convert one tree of ``requirements``, ``weight`` and ``sub_tasks``. The score is the same weighted mean.

    Raises:
        Malformed: the tree does not have this form.
    """
    draft = Draft(name=source.text("id", default=""), description="", source=source)
    requirements = source.text("requirements")
    if source.items("sub_tasks"):
        draft.description = requirements
        draft.report(source, "requirements of the root", "used as the question; replace it with the original task")
        source.get("weight")
        _children(draft, source, draft.nodes, 1)
        draft.report_unread(source)
    else:
        _node(draft, source, draft.nodes, 1)
    yield draft


def _children(draft: Draft, source: Source, into: Nodes, level: int) -> None:
    for each in source.items("sub_tasks"):
        _node(draft, each, into, level)


def _node(draft: Draft, source: Source, into: Nodes, level: int) -> None:
    requirements, children = source.text("requirements"), source.items("sub_tasks")
    source.get("id")
    weight = draft.weight(source)
    if weight == 0:
        return
    if level > _MAX_LEVELS:
        draft.report(source, requirements, f"below level {_MAX_LEVELS} of the tree; use fewer levels", left_out=True)
    elif children:
        inner: Nodes = {}
        _children(draft, source, inner, level + 1)
        draft.group(into, source, inner, requirements, weight=weight)
    else:
        category = source.text("task_category", default="")
        if category:
            why = "judged on the text of the answer; code, logs and results of a run are not read"
            draft.report(source, f"task_category: {category}", why)
        draft.claim(into, source, requirements, weight=weight)
    draft.report_unread(source)

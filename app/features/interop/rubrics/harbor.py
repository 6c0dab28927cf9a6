"""Judge criteria of Harbor's Reward Kit (``judge.toml``)."""

from __future__ import annotations

from collections.abc import Iterator

from app.features.interop.rubrics.draft import Draft, Nodes
from app.features.interop.rubrics.sources import Source

MAX_POINTS = 20
NUMERIC_STEPS = 4


def convert(source: Source) -> Iterator[Draft]:
    """Convert one file with ``[judge]``, ``[[criterion]]`` and ``[scoring]``.

    Raises:
        Malformed: the file does not have this form.
    """
    draft = Draft(name=source.text("name", default=""), description="", source=source)
    for each in source.some("criterion"):
        _criterion(draft, each, draft.nodes)
    for name, value in source.get("judge").unread():
        why = "the answer is judged by the models of your configuration, without files or a workspace"
        draft.report(value, f"judge.{name}", why, left_out=True)
    if source.get("scoring").value is not None:
        _scoring(draft, source.get("scoring"))
    draft.report_unread(source)
    yield draft


def _criterion(draft: Draft, source: Source, into: Nodes) -> None:
    text, kind = source.text("description"), source.text("type", default="binary")
    id, weight = source.text("name", "id", default=""), draft.weight(source)
    negated = source.text("polarity", default="").lower().startswith("negative")
    if weight == 0:
        return
    if kind == "binary":
        draft.claim(into, source, text, id=id, weight=weight, negated=negated)
    elif kind not in ("likert", "numeric"):
        raise source.get("type").error(f"unknown type {kind!r}; use binary, likert or numeric")
    elif negated:
        draft.report(source, text, "a negative criterion with a scale; make it binary", left_out=True)
    elif kind == "likert":
        points = source.number("points", 5)
        if not (points.is_integer() and 2 <= points <= MAX_POINTS):
            raise source.get("points").error(f"'points' must be a whole number from 2 to {MAX_POINTS}")
        draft.scale(into, source, text, low=1, high=points, steps=int(points) - 1, id=id, weight=weight)
    else:
        low, high = source.number("min", 0), source.number("max", 1)
        if low >= high:
            raise source.get("max").error(f"'max' must be above 'min' ({low:g}), found {high:g}")
        draft.scale(into, source, text, low=low, high=high, steps=NUMERIC_STEPS, id=id, weight=weight)
    draft.report_unread(source)


def _scoring(draft: Draft, source: Source) -> None:
    aggregation = source.text("aggregation", default="weighted_mean").replace("-", "_")
    if aggregation == "all_pass":
        draft.all_or_nothing = True
    elif aggregation == "threshold":
        threshold = source.number("threshold", 0.5)
        draft.report(source, f"threshold: {threshold:g}", "compare the score with it; the task gives the weighted mean")
    elif aggregation == "any_pass":
        draft.report(source, "aggregation: any_pass", "the task gives the weighted mean; any score above 0 passes")
    elif aggregation != "weighted_mean":
        raise source.get("aggregation").error(
            f"unknown aggregation {aggregation!r}; use weighted_mean, all_pass, any_pass or threshold"
        )
    draft.report_unread(source)

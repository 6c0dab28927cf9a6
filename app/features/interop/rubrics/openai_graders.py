"""Graders of the OpenAI API: eval definitions with ``testing_criteria``, and graders of fine-tuning jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from app.features.interop.rubrics.draft import Draft, Nodes, at_least, text_check
from app.features.interop.rubrics.sources import Source, Unfilled, fill

_QUESTION_KEYS: Final = ("question", "prompt", "input", "query", "problem", "instruction")
_ANSWER: Final = "[the answer]"
_SCORE_STEPS: Final = 4
_TERM = re.compile(r"\s*(?:(\d+(?:\.\d+)?)\s*\*\s*)?([A-Za-z_]\w*)(?:\s*\*\s*(\d+(?:\.\d+)?))?\s*", re.ASCII)
_LEFT_OUT: Final = {
    "python": "code is not executed; write checks or claims, or a judge file in Python",
    "text_similarity": "similarity is not computed; write a claim such as: the answer says the same as ...",
    "endpoint": "graders behind an HTTP endpoint are not called; write claims for what it checks",
}
_Context = Mapping[str, Any]


def convert(source: Source, rows: Sequence[Source]) -> Iterator[Draft]:
    """Convert eval definitions or graders to one task per definition and row of data.

    ``source`` is a grader, a list of graders, an object with ``testing_criteria`` or ``grader``, or a list of them.
    ``rows`` are the values of ``item``, or objects that contain it. Without rows, graders that use them are left out.

    Raises:
        Malformed: the file does not have this form.
    """
    is_list = isinstance(source.value, dict) and "data" in source.value
    listed = source.items("data") if is_list else source.rows() or [source]
    loose = [each for each in listed if isinstance(each.value, dict) and "type" in each.value]
    if loose:
        yield from _tasks(source, loose, rows)
    for definition in (each for each in listed if each not in loose):
        graders = definition.items("testing_criteria")
        if definition.get("grader").value is not None:
            graders.append(definition.get("grader"))
        if not graders:
            raise definition.error("no graders; expected 'testing_criteria', 'grader', or a grader with a 'type'")
        yield from _tasks(definition, graders, rows)


def _tasks(definition: Source, graders: Sequence[Source], rows: Sequence[Source]) -> Iterator[Draft]:
    name = definition.text("name", default="") if isinstance(definition.value, dict) else ""
    for number, row in enumerate(rows or [None], start=1):
        item = {} if row is None else row.get("item").value or row.value
        task_name = f"{name or 'row'}_{number}" if rows else name
        draft = Draft(name=task_name, description=_question(item), source=definition)
        context = {"item": item, "sample": {"output_text": _ANSWER}}
        for each in graders:
            _grader(draft, each, context, draft.nodes, 1.0)
        if len(graders) > 1:
            why = "there, each criterion has its own pass rate; the score is their mean"
            draft.report(definition, "testing_criteria", why)
        if definition not in graders:
            draft.report_unread(definition, ignored=("id", "object", "created_at"))
        yield draft


def _question(item: Any) -> str:
    found = (item.get(key) for key in _QUESTION_KEYS) if isinstance(item, Mapping) else ()
    return next((each for each in found if isinstance(each, str) and each.strip()), "")


def _grader(draft: Draft, source: Source, context: _Context, into: Nodes, weight: float) -> None:
    kind, name = source.text("type"), source.text("name", default="")
    for key in ("model", "sampling_params"):
        if source.get(key).value is not None:
            draft.report(source, key, "the answer is judged by the models of your configuration", left_out=True)
    try:
        if kind == "multi":
            _multi(draft, source, context, into, weight)
        elif kind == "string_check":
            _string_check(draft, source, context, into, weight)
        elif kind in ("score_model", "label_model"):
            _model_grader(draft, source, context, into, weight)
        else:
            why = _LEFT_OUT.get(kind, "unknown type of grader; write a claim or a check for it")
            what = f"{kind}: {name}"
            if source.get("pass_threshold").value is not None:
                what = f"{kind} with pass_threshold: {source.number('pass_threshold'):g}: {name}"
            draft.report(source, what, why, left_out=True)
            return
    except Unfilled as error:
        why = f"{error}, or give the rows of the data set with --rows" if not context["item"] else str(error)
        draft.report(source, f"{kind}: {name}", why, left_out=True)
        return
    draft.report_unread(source)


def _multi(draft: Draft, source: Source, context: _Context, into: Nodes, weight: float) -> None:
    graders = source.get("graders")
    if not isinstance(graders.value, dict) or not graders.value:
        raise graders.error("'graders' must be an object that maps names to graders")
    formula = source.text("calculate_output", default="")
    weights = _weights(formula, graders.value)
    if weights is None:
        draft.report(source, f"calculate_output: {formula}", "only sums of graders times numbers; the mean is used")
        weights = dict.fromkeys(graders.value, 1.0)
    elif abs(sum(weights.values()) - 1) > 1e-6:
        why = f"the score is the sum divided by {sum(weights.values()):g}, from 0 to 1"
        draft.report(source, f"calculate_output: {formula}", why)
    children: Nodes = {}
    for key in graders.value:
        if weights.get(key):
            _grader(draft, graders.get(key), context, children, weights[key])
        else:
            draft.report(graders.get(key), f"graders.{key}", "calculate_output does not use it", left_out=True)
    draft.group(into, source, children, source.text("name", default="graders"), weight=weight)


def _weights(formula: str, names: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the weight of each grader in a sum such as ``0.6 * a + b``; None if the formula has another form."""
    weights: dict[str, float] = {}
    for term in formula[:2_000].split("+"):
        match = _TERM.fullmatch(term)
        if match is None or match[2] not in names or match[2] in weights:
            return None
        weights[match[2]] = float(match[1] or 1) * float(match[3] or 1)
    return weights if all(weight <= 1e9 for weight in weights.values()) and any(weights.values()) else None


def _string_check(draft: Draft, source: Source, context: _Context, into: Nodes, weight: float) -> None:
    operation = source.text("operation")
    if operation not in ("eq", "ne", "like", "ilike"):
        raise source.get("operation").error(f"unknown operation {operation!r}; use eq, ne, like or ilike")
    name, given = source.text("name", default="string_check"), source.text("input")
    reference = fill(source.text("reference", default=""), context)
    if fill(given, context) != _ANSWER:
        raise Unfilled(f"the input is {given[:60]!r}, not `{{{{sample.output_text}}}}`")
    if not reference.strip():
        raise Unfilled("the reference is empty")
    condition = text_check([reference], equal=operation in ("eq", "ne"), negated=operation == "ne")
    draft.check(into, source, condition, id=name, weight=weight)


def _model_grader(draft: Draft, source: Source, context: _Context, into: Nodes, weight: float) -> None:
    name = source.text("name", default="")
    prompt = fill("\n\n".join(text for each in source.items("input") for text in _contents(each)), context)
    if not prompt.strip():
        raise source.get("input").error("'input' has no text; expected messages with 'content'")
    if source.value["type"] == "label_model":
        labels = " or ".join(_labels(source, "passing_labels"))
        known = ", ".join(_labels(source, "labels"))
        text = f"Of the labels {known}, the right one for the answer is {labels}, by these rules: {prompt}"
        draft.statement(into, source, text, id=name or labels, weight=weight)
        return
    bounds = source.items("range")
    low, high = (0.0, 1.0) if not bounds else _bounds(source)
    if source.get("pass_threshold").value is not None:
        threshold = source.number("pass_threshold")
        draft.report(source, f"pass_threshold: {threshold:g}", "a claim that the score reaches it, which counts 0 or 1")
        draft.statement(into, source, at_least(prompt, threshold, low, high), id=name or prompt, weight=weight)
    else:
        draft.scale(into, source, prompt, low=low, high=high, steps=_SCORE_STEPS, id=name, weight=weight)


def _bounds(source: Source) -> tuple[float, float]:
    bounds = source.get("range").value
    numbers = [each for each in bounds if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(bounds) != 2 or len(numbers) != 2 or not -1e9 <= numbers[0] < numbers[1] <= 1e9:
        raise source.get("range").error("'range' must be two numbers, the lower one first")
    return float(numbers[0]), float(numbers[1])


def _labels(source: Source, key: str) -> list[str]:
    labels = [each.value for each in source.items(key)]
    if not labels or not all(isinstance(each, str) and each for each in labels):
        raise source.get(key).error(f"{key!r} must be a list of labels")
    return labels


def _contents(message: Source) -> Iterator[str]:
    """Yield the texts of a message. Images and audio are errors of the template: a claim cannot show them."""
    content = message.get("content")
    for each in content.rows() or [content]:
        if isinstance(each.value, str):
            yield each.value
        elif isinstance(each.value, dict) and isinstance(each.value.get("text"), str):
            yield each.value["text"]
        else:
            raise Unfilled("a message with something else than text cannot be shown in a claim")

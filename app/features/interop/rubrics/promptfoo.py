"""Assertions of promptfoo configurations that grade an output by a rubric or by its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.features.interop.rubrics.draft import Draft, Nodes, text_check
from app.features.interop.rubrics.sources import Source, Unfilled, fill

_RUBRICS: Final = frozenset({"llm-rubric", "model-graded-closedqa", "g-eval", "search-rubric"})
_TEXTS: Final = frozenset({"equals"} | {f"{case}contains{kind}" for case in ("", "i") for kind in ("", "-any", "-all")})


def convert(source: Source) -> Iterator[Draft]:
    """Convert each test of a configuration to a task.

    Raises:
        Malformed: the file does not have this form.
    """
    templates, default, prompts = source.get("assertionTemplates"), source.get("defaultTest"), source.get("prompts")
    tests = source.items("tests") if default.value is not None else source.some("tests")
    tests = tests or [Source({}, lambda _: source.where)]
    for number, test in enumerate(tests, start=1):
        parts = [each for each in (default, test) if each.value is not None]
        values = {name: value for part in parts for name, value in _variables(part).items()}
        name = test.text("description", default="") or f"test_{number}"
        draft = Draft(name=name, description=_question(prompts, values), source=test)
        if len(prompts.rows()) > 1:
            draft.report(prompts, "prompts", "the first one is the question; the others are left out", left_out=True)
        if any(isinstance(value, list) for value in values.values()):
            draft.report(test.get("vars"), "vars with lists", "the list is inserted, instead of one test per item")
        for part in parts:
            for each in part.items("assert"):
                _assertion(draft, _resolved(each, templates), values, draft.nodes)
        limited = [each for each in reversed(parts) if each.get("threshold").value is not None]
        if limited:
            why = "compare the score with it; the score is the same weighted mean"
            draft.report(limited[0], f"threshold: {limited[0].number('threshold'):g}", why)
        else:
            why = "there, all assertions must pass: compare the score with 1; it is the same weighted mean"
            draft.report(test, "test without threshold", why)
        for each in (*parts, source):
            draft.report_unread(each)
        yield draft


def _variables(test: Source) -> dict[str, Any]:
    variables = test.get("vars")
    if variables.value is not None and not isinstance(variables.value, dict):
        raise variables.error("'vars' must be an object with values; write the values into the file")
    return variables.value or {}


def _question(prompts: Source, values: Mapping[str, Any]) -> str:
    first = prompts.rows()[0].value if prompts.rows() else prompts.value
    if isinstance(first, dict):
        first = first.get("raw")
    if not isinstance(first, str) or first.startswith("file://"):
        return ""
    try:
        return fill(first, values)
    except Unfilled:
        return ""


def _resolved(source: Source, templates: Source) -> Source:
    """Return the template that an assertion refers to, or the assertion itself."""
    reference = source.text("$ref", default="")
    if not reference:
        return source
    name = reference.removeprefix("#/assertionTemplates/")
    found = templates.get(name) if isinstance(templates.value, dict) else templates
    if found.value is None:
        raise source.error(f"no assertion template {reference!r}; define it in assertionTemplates")
    return found


def _assertion(draft: Draft, source: Source, values: Mapping[str, Any], into: Nodes) -> None:
    kind, weight, id = source.text("type"), draft.weight(source), source.text("metric", default="")
    threshold = source.number("threshold") if source.get("threshold").value is not None else None
    if weight == 0:
        return
    base, negated = kind.removeprefix("not-"), kind.startswith("not-")
    if kind == "assert-set":
        inner: Nodes = {}
        for each in source.items("assert"):
            _assertion(draft, each, values, inner)
        if threshold is not None:
            draft.report(source, f"threshold: {threshold:g}", "the set counts its weighted mean")
        draft.group(into, source, inner, id or kind, weight=weight)
    elif base not in _RUBRICS | _TEXTS:
        source.get("value")
        what = kind if threshold is None else f"{kind} with threshold: {threshold:g}"
        draft.report(source, what, "no equivalent; write a claim or a check for it", left_out=True)
    else:
        try:
            texts = [fill(each, values) for each in _texts(source.get("value"))]
        except Unfilled as error:
            draft.report(source, f"{kind}: value", str(error), left_out=True)
            return
        if threshold is not None:
            what = f"threshold: {threshold:g} of {kind}"
            draft.report(source, what, "the assertion passes or fails, without a score")
        if base in _TEXTS:
            if base.endswith(("-any", "-all")) and len(texts) == 1:
                texts = [each.strip() for each in texts[0].split(",")]
            condition = text_check(texts, equal=base == "equals", any_of=base.endswith("-any"), negated=negated)
            draft.check(into, source, condition, id=id or f"{kind} {' '.join(texts)}", weight=weight)
            return
        for text in texts:
            draft.claim(into, source, text, id=id, weight=weight / len(texts), negated=negated)
    draft.report_unread(source)


def _texts(source: Source) -> list[str]:
    """Return the texts of a value.

    Raises:
        Unfilled: it is not text, or names a file.
    """
    listed = source.value if isinstance(source.value, list) else [source.value]
    if not listed or not all(isinstance(each, str) and each.strip() for each in listed):
        raise Unfilled("it is not text; write it as text")
    if any(each.startswith("file://") for each in listed):
        raise Unfilled("files are not read; write the text into the value")
    return listed

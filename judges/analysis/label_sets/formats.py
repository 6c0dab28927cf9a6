"""Formats of public label sets: the fields of their rows, and the labels that they become.

Every row is validated. A row with an unknown label, without a needed field or without source text is not used, and the
reason is counted. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, NoReturn, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from judges.analysis.label_sets import SetFormat
from judges.analysis.label_sets.rows import Problem, SourceRow, UnusableRow
from judges.analysis.labels import HumanDecision, Label, LabelledPage, RecordedVerdict, first_error
from rubrics.verdict import Outcome, Reason

PASSED, PARTIAL, FAILED = HumanDecision.PASSED, HumanDecision.PARTIAL, HumanDecision.FAILED


UNAVAILABLE: Final = "source_unavailable"
"""Reason of a recorded verdict: the judge said that it could not read the source."""
CALL_FAILED: Final = "call_failed"
"""Reason of a recorded verdict: the model did not reply."""


class _Row(BaseModel):
    """Row of a label set. Additional fields are allowed; values are not converted."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _WikipediaRow(_Row):
    id: Annotated[str, Field(min_length=1)]
    claim_text: str
    source_url: str | None = None
    source_text: str | None = None
    ground_truth: str


class _WiceMeta(_Row):
    id: str | None = None


class _WiceRow(_Row):
    label: str
    claim: str
    evidence: list[str]
    meta: _WiceMeta = _WiceMeta()


class _FactcheckRow(_Row):
    claim: str
    evidence: str | None = None
    stance: str


class _AggrefactRow(_Row):
    doc: str | None = None
    claim: str
    label: int
    dataset: str = ""


class _VerdictRow(_Row):
    """Recorded verdict of a judge on a row of the Wikipedia set."""

    entry_id: Annotated[str, Field(min_length=1)]
    provider: str | None = None
    model: str | None = None
    predicted_verdict: str | None = None
    comments: str | None = None
    source_quote: str | None = None
    latency_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    tokens_in: Annotated[int, Field(ge=0)] | None = None
    tokens_out: Annotated[int, Field(ge=0)] | None = None
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    error: str | None = None


_WIKIPEDIA: Final = {"supported": PASSED, "partially supported": PARTIAL, "not supported": FAILED}
_UNAVAILABLE_WORD: Final = "source unavailable"
_WICE: Final = {"supported": PASSED, "partially_supported": PARTIAL, "not_supported": FAILED}
_FACTCHECK: Final = {
    "completely-support": PASSED,
    "partially-support": PARTIAL,
    "refute": FAILED,
    "irrelevant": FAILED,
}
_AGGREFACT: Final = {"1": PASSED, "0": FAILED}


def is_verdict(row: Mapping[str, Any]) -> bool:
    """Return whether a row of the Wikipedia set is the verdict of a judge and not a labelled claim."""
    return "entry_id" in row


def parse_verdict(row: Mapping[str, Any], *, run: str) -> tuple[str, RecordedVerdict]:
    """Return the id of the labelled row and the verdict. ``run`` names the run of the judge.

    Raises:
        UnusableRow: the row is invalid or names no judge.
    """
    read = _validated(_VerdictRow, row)
    names = list(dict.fromkeys(name for name in (read.provider, read.model) if name))
    if not names:
        raise UnusableRow(Problem.MISSING_FIELD, "model: the row names no judge")
    outcome, reason, partial = _outcome(read)
    return read.entry_id, RecordedVerdict(
        outcome=outcome,
        reason=reason,
        model=_clean("/".join(names)),
        partial=partial,
        run=_clean(run) or None,
        reasoning=_clean(read.comments or ""),
        quote=None if read.source_quote is None else _clean(read.source_quote),
        input_tokens=read.tokens_in,
        output_tokens=read.tokens_out,
        usd=read.cost_usd,
        seconds=None if read.latency_ms is None else read.latency_ms / 1000,
    )


def _outcome(read: _VerdictRow) -> tuple[Outcome, str | None, bool]:
    if read.error:
        return Outcome.NOT_JUDGED, CALL_FAILED, False
    word = _word(read.predicted_verdict or "")
    if word == _UNAVAILABLE_WORD:
        return Outcome.NOT_JUDGED, UNAVAILABLE, False
    decision = _WIKIPEDIA.get(word)
    if decision is None:
        return Outcome.NOT_JUDGED, Reason.LLM_OUTPUT_UNUSABLE, False
    return Outcome.PASSED if decision is PASSED else Outcome.FAILED, None, decision is PARTIAL


def label_of(set_format: SetFormat, row: SourceRow) -> Label:
    """Return the label in a row.

    Raises:
        UnusableRow: the row cannot be used.
    """
    if isinstance(row.fields, UnusableRow):
        raise row.fields
    return _READERS[set_format](row.fields)


def _wikipedia(fields: Mapping[str, Any]) -> Label:
    read = _validated(_WikipediaRow, fields)
    if _word(read.ground_truth) == _UNAVAILABLE_WORD:
        raise UnusableRow(Problem.SOURCE_UNAVAILABLE, "ground_truth: people could not open the source")
    human = _decision(_WIKIPEDIA, _word(read.ground_truth), "ground_truth", read.ground_truth)
    url = read.source_url if read.source_url and _is_address(read.source_url) else _placeholder(SetFormat.WIKIPEDIA)
    return _label(human, read.claim_text, url, read.source_text, original=read.ground_truth, row=read.id)


def _wice(fields: Mapping[str, Any]) -> Label:
    read = _validated(_WiceRow, fields)
    human = _decision(_WICE, read.label, "label", read.label)
    return _label(
        human,
        read.claim,
        _placeholder(SetFormat.WICE),
        "\n".join(read.evidence),
        original=read.label,
        row=read.meta.id,
    )


def _factcheck(fields: Mapping[str, Any]) -> Label:
    read = _validated(_FactcheckRow, fields)
    human = _decision(_FACTCHECK, read.stance, "stance", read.stance)
    return _label(human, read.claim, _placeholder(SetFormat.FACTCHECK_GPT), read.evidence, original=read.stance)


def _aggrefact(fields: Mapping[str, Any]) -> Label:
    read = _validated(_AggrefactRow, fields)
    human = _decision(_AGGREFACT, str(read.label), "label", str(read.label))
    url = _placeholder(SetFormat.AGGREFACT)
    return _label(human, read.claim, url, read.doc, original=str(read.label), task_id=read.dataset or None)


_OWN: Final = TypeAdapter(Label)


def _own(fields: Mapping[str, Any]) -> Label:
    try:
        return _OWN.validate_python(fields)
    except ValidationError as error:
        _refuse_invalid(error)


_READERS: Final[Mapping[SetFormat, Callable[[Mapping[str, Any]], Label]]] = {
    SetFormat.WIKIPEDIA: _wikipedia,
    SetFormat.WICE: _wice,
    SetFormat.FACTCHECK_GPT: _factcheck,
    SetFormat.AGGREFACT: _aggrefact,
    SetFormat.OWN: _own,
}
_RowT = TypeVar("_RowT", bound=_Row)


def _label(human: HumanDecision, claim: str, url: str, text: str | None, *, original: str, **fields: Any) -> Label:
    if not claim.strip():
        _refuse(Problem.NO_CLAIM, "the claim is empty")
    if text is None or not text.strip():
        _refuse(Problem.NO_SOURCE_TEXT, "the text of the source is missing or empty")
    page = LabelledPage(url=url, text=_clean(text))
    return Label(human=human, claim=_clean(claim), sources=(url,), pages=(page,), original=original, **fields)


def _validated(model: type[_RowT], row: Mapping[str, Any]) -> _RowT:
    try:
        return model.model_validate(row)
    except ValidationError as error:
        _refuse_invalid(error)


def _refuse_invalid(error: ValidationError) -> NoReturn:
    kind = error.errors()[0]["type"]
    problem = {"missing": Problem.MISSING_FIELD, "enum": Problem.UNKNOWN_LABEL}.get(kind, Problem.WRONG_TYPE)
    _refuse(problem, first_error(error))


def _refuse(problem: Problem, detail: str) -> NoReturn:
    raise UnusableRow(problem, _clean(detail)[:300])


def _decision(known: Mapping[str, HumanDecision], label: str, field: str, shown: str) -> HumanDecision:
    if label not in known:
        _refuse(Problem.UNKNOWN_LABEL, f"{field}: {shown!r} is not one of {', '.join(known)}")
    return known[label]


def _word(text: str) -> str:
    return " ".join(text.casefold().split())


def _clean(text: str) -> str:
    """Replace lone surrogates, which no file and no request can contain."""
    return text.encode("utf-8", "replace").decode()


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and _clean(url) == url
    except ValueError:
        return False


def _placeholder(set_format: SetFormat) -> str:
    """Return the address of sources without one. It is shown to the judge and never opened."""
    return f"https://{set_format}.invalid/source"

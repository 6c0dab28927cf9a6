"""Formats of public label sets: their files, the fields of their rows, and the labels that they become.

Every row is validated. A row with an unknown label, without a needed field or without source text is not used, and the
reason is counted. Nothing is guessed.

Files are JSON lines, JSON documents or Parquet. Rows are read one at a time; this blocks on the disk. A row that cannot
be read is yielded as an ``UnusableRow`` and reading goes on. A file that cannot be read raises.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Final, NoReturn, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from judges.analysis.labels import (
    MAX_LINE_BYTES,
    HumanDecision,
    Label,
    LabelledPage,
    LabelsUnreadable,
    RecordedVerdict,
    first_error,
)
from judges.late_libraries import pa, pq
from rubrics.verdict import Outcome, Reason

_PARQUET_ROWS: Final = 256
"""Rows that are decoded at once."""
_PARQUET_MAGIC: Final = b"PAR1"


class SetFormat(StrEnum):
    """Format of a label set."""

    WIKIPEDIA = "wikipedia"
    """Wikipedia citation check: ``dataset.json`` and any number of recorded judges (``results*.json``)."""
    WICE = "wice"
    """WiCE: ``entailment_retrieval``."""
    FACTCHECK_GPT = "factcheck-gpt"
    """Factcheck-GPT: ``subtask3_claim_evidence_stance.jsonl``."""
    AGGREFACT = "aggrefact"
    """MiniCheck and LLM-AggreFact: document, claim and label 0 or 1, as JSON lines or Parquet."""
    OWN = "own"
    """Labels of this tool."""


class Problem(StrEnum):
    """Reason why a row is not used."""

    INVALID_JSON = "invalid_json"
    TOO_LONG = "row_too_long"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_LABEL = "unknown_label"
    NO_CLAIM = "no_claim"
    NO_SOURCE_TEXT = "no_source_text"
    SOURCE_UNAVAILABLE = "source_unavailable"
    """People could not open the source, so there is no label on the claim."""
    DUPLICATE_ID = "duplicate_id"
    """Different rows have the same id."""
    CONTRADICTING = "contradicting_labels"
    """The same claim with the same source has different labels in the set."""


class UnusableRow(Exception):
    """Row that is not used: the reason, and what is wrong."""

    def __init__(self, problem: Problem, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """Row of a file. ``number`` counts from 1; for JSON lines it is the line. ``run`` names the run of a judge."""

    file: str
    number: int
    fields: dict[str, Any] | UnusableRow
    run: str = ""


Rows: TypeAlias = Iterator[SourceRow]


def read_rows(path: Path) -> Rows:
    """Yield the rows of a file. Its format is recognized by its content.

    Raises:
        LabelsUnreadable: The file cannot be read, is empty, or is damaged after some rows.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
                yield from _parquet(path)
                return
            _rewind(file)
            read = _document if _is_document(file) else _lines
            _rewind(file)
            yield from read(path, file)
    except OSError as error:
        raise LabelsUnreadable(f"{path} cannot be read: {error.strerror or error}") from error


def _rewind(file: BinaryIO) -> None:
    """Go to the start of a file, behind its byte order mark."""
    file.seek(0)
    if file.read(len(BOM_UTF8)) != BOM_UTF8:
        file.seek(0)


def _is_document(file: BinaryIO) -> bool:
    """Return whether a file is one JSON document with many rows, and not JSON lines.

    A document is an array, or an object with the key ``rows``. Reads as much as necessary.
    """
    import ijson

    depth = 0
    with suppress(ijson.JSONError, ValueError, RecursionError):
        for event, value in ijson.basic_parse(file, multiple_values=True, use_float=True):
            if (event, depth) == ("start_array", 0) or (event, value, depth) == ("map_key", "rows", 1):
                return True
            depth += event.startswith("start") - event.startswith("end")
            if not depth:
                break
    return False


def _lines(path: Path, file: BinaryIO) -> Rows:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        is_too_long = len(line) > MAX_LINE_BYTES
        while is_too_long and line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)
        stripped = line.strip()
        if not is_too_long and not stripped:
            continue
        fields: dict[str, Any] | UnusableRow
        if is_too_long:
            fields = UnusableRow(Problem.TOO_LONG, f"longer than {MAX_LINE_BYTES} bytes")
        else:
            fields = _parse(stripped)
        yield SourceRow(file=path.name, number=number, fields=fields)
    if not number:
        raise LabelsUnreadable(f"{path}: the file is empty")


def _parse(line: bytes) -> dict[str, Any] | UnusableRow:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return UnusableRow(Problem.INVALID_JSON, str(error)[:200])
    return _object(row)


def _object(row: object) -> dict[str, Any] | UnusableRow:
    if isinstance(row, dict):
        return row
    return UnusableRow(Problem.NOT_AN_OBJECT, f"a row is an object, not {type(row).__name__}")


def _document(path: Path, file: BinaryIO) -> Rows:
    import ijson

    number = 0
    try:
        is_array = next(ijson.basic_parse(file, use_float=True))[0] == "start_array"
        _rewind(file)
        run = path.stem
        if not is_array:
            prompt_date = next(ijson.items(file, "metadata.prompt_date", use_float=True), None)
            run = prompt_date if isinstance(prompt_date, str) else run
            _rewind(file)
        for row in ijson.items(file, "item" if is_array else "rows.item", use_float=True):
            number += 1
            yield SourceRow(file=path.name, number=number, fields=_object(row), run=run)
    except (ijson.JSONError, ValueError, RecursionError, StopIteration) as error:
        raise LabelsUnreadable(f"{path}: invalid JSON after row {number}: {str(error)[:200]}") from error
    if not number:
        raise LabelsUnreadable(f'{path}: no rows: expected a JSON array, or an object with an array "rows"')


def _parquet(path: Path) -> Rows:
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield SourceRow(file=path.name, number=number, fields=_object(row))
    except (pa.ArrowException, ValueError) as error:
        raise LabelsUnreadable(f"{path}: invalid Parquet after row {number}: {str(error)[:200]}") from error


PASSED, PARTIAL, FAILED = HumanDecision.PASSED, HumanDecision.PARTIAL, HumanDecision.FAILED


UNAVAILABLE: Final = "source_unavailable"
"""Reason of a recorded verdict: the judge said that it could not read the source."""
CALL_FAILED: Final = "call_failed"
"""Reason of a recorded verdict: the model did not reply."""


def _sentences(value: Any) -> Any:
    return "\n".join(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else None


def _number(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


class _Row(BaseModel):
    """Row of a label set. Additional fields are allowed; values are not converted."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _SetRow(_Row):
    """Labelled claim. ``row`` is its id in the set, ``url`` the address of its source."""

    decisions: ClassVar[Mapping[str, HumanDecision]]
    claim: str
    text: str | None = None
    label: str
    row: str | None = None
    task_id: str | None = None
    url: str | None = None


class _WikipediaRow(_SetRow):
    decisions = {"supported": PASSED, "partially supported": PARTIAL, "not supported": FAILED}
    claim: Annotated[str, Field(validation_alias="claim_text")]
    text: Annotated[str | None, Field(validation_alias="source_text")] = None
    label: Annotated[str, Field(validation_alias="ground_truth")]
    row: Annotated[str, Field(validation_alias="id", min_length=1)]
    url: Annotated[str | None, Field(validation_alias="source_url")] = None


class _WiceRow(_SetRow):
    decisions = {"supported": PASSED, "partially_supported": PARTIAL, "not_supported": FAILED}
    text: Annotated[str, Field(validation_alias="evidence"), BeforeValidator(_sentences)]
    row: Annotated[str | None, Field(validation_alias=AliasPath("meta", "id"))] = None


class _FactcheckRow(_SetRow):
    decisions = {
        "completely-support": PASSED,
        "partially-support": PARTIAL,
        "refute": FAILED,
        "irrelevant": FAILED,
    }
    text: Annotated[str | None, Field(validation_alias="evidence")] = None
    label: Annotated[str, Field(validation_alias="stance")]


class _AggrefactRow(_SetRow):
    decisions = {"1": PASSED, "0": FAILED}
    text: Annotated[str | None, Field(validation_alias="doc")] = None
    label: Annotated[str, BeforeValidator(_number)]
    task_id: Annotated[str | None, Field(validation_alias="dataset")] = None


_ROWS: Final[Mapping[SetFormat, type[_SetRow]]] = {
    SetFormat.WIKIPEDIA: _WikipediaRow,
    SetFormat.WICE: _WiceRow,
    SetFormat.FACTCHECK_GPT: _FactcheckRow,
    SetFormat.AGGREFACT: _AggrefactRow,
}


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


_UNAVAILABLE_WORD: Final = "source unavailable"


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
    decision = _WikipediaRow.decisions.get(word)
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
    if set_format is SetFormat.OWN:
        try:
            return _OWN.validate_python(row.fields)
        except ValidationError as error:
            _refuse_invalid(error)
    read = _validated(_ROWS[set_format], row.fields)
    word = _word(read.label) if set_format is SetFormat.WIKIPEDIA else read.label
    if word == _UNAVAILABLE_WORD:
        _refuse(Problem.SOURCE_UNAVAILABLE, f"{_name(read, 'label')}: people could not open the source")
    if word not in read.decisions:
        known = ", ".join(read.decisions)
        _refuse(Problem.UNKNOWN_LABEL, f"{_name(read, 'label')}: {read.label!r} is not one of {known}")
    if not read.claim.strip():
        _refuse(Problem.NO_CLAIM, "the claim is empty")
    if read.text is None or not read.text.strip():
        _refuse(Problem.NO_SOURCE_TEXT, "the text of the source is missing or empty")
    # A placeholder is shown to the judge and never opened.
    url = read.url if read.url and _is_address(read.url) else f"https://{set_format}.invalid/source"
    return Label(
        human=read.decisions[word],
        claim=_clean(read.claim),
        sources=(url,),
        pages=(LabelledPage(url=url, text=_clean(read.text)),),
        original=read.label,
        row=read.row,
        task_id=read.task_id or None,
    )


def _name(row: _SetRow, field: str) -> str:
    """Return the name of a field in the set."""
    return str(type(row).model_fields[field].validation_alias or field)


_OWN: Final = TypeAdapter(Label)
_RowT = TypeVar("_RowT", bound=_Row)


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

"""Labels: decisions of people on single claims, as JSON lines. Reader and writer of the format.

The review export writes labels, ``assay meta-eval`` evaluates judges with them, and users can write their own;
``docs/meta-eval.md`` describes every field. A label contains the question that the person decided (claim, pages,
answer), so another judge can be asked the same question without access to the original service.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from cache.urls import canonical_key
from judges.errors import JudgeError
from rubrics.verdict import Outcome

LABEL_VERSION: Final = 1
MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_LISTED_PROBLEMS = 20
"""Maximum number of invalid lines that an error lists."""


class LabelsUnreadable(JudgeError):
    """A label file is unusable. ``problems`` describes the invalid lines, at most ``MAX_LISTED_PROBLEMS``."""

    def __init__(self, message: str, *, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


_Sha256: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class HumanDecision(StrEnum):
    """Decision of a person on a claim."""

    PASSED = "passed"
    """The claim holds."""
    FAILED = "failed"
    """The claim does not hold."""
    PARTIAL = "partial"
    """The sources support a part of the claim. A named rule turns the label into passed or failed, or excludes it."""
    UNCLEAR = "unclear"
    """The person could not decide. Such labels are counted but do not affect the evaluation of a judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPage:
    """Page that the person looked at.

    ``sha256`` (hex) is the digest of its text as UTF-8, ``page_id`` the id of its capture.
    """

    url: str
    page_id: str | None = None
    sha256: _Sha256 | None = None
    text: str | None = None


_Count: TypeAlias = Annotated[int, Field(ge=0)]
_Amount: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedVerdict:
    """Verdict that a judge gave earlier. ``model`` None: decided by code.

    ``partial``: the judge said that the sources support a part of the claim; ``outcome`` is then failed. ``run`` names
    the run of the model if there were several. ``quote`` is the passage that the judge quoted, None if it was not asked
    for one. Tokens, ``usd`` and ``seconds`` are those of this verdict, None if unknown.
    """

    outcome: Outcome
    reason: str | None = None
    model: str | None = None
    prompt: str | None = None
    partial: bool = False
    run: str | None = None
    reasoning: str = ""
    quote: str | None = None
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    usd: _Amount | None = None
    seconds: _Amount | None = None

    @property
    def judge(self) -> tuple[str, str]:
        """Return the model and the run, which identify the judge."""
        return self.model or "", self.run or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Decision of one person on one claim.

    ``sources`` is None for a claim about the answer alone. ``claim`` is None for a leaf that code decided, which no
    model can be asked about. ``task`` and ``answer`` are shown to the judge in addition to the claim. ``leaf`` is the
    key of the leaf in the result; the second leaf with the same id has the key ``id~2``.

    ``judge`` and ``judges`` are recorded verdicts on the claim; an imported set has one per judge. ``row`` is the id of
    the row in the imported set, ``original`` its label there.
    """

    label_version: Literal[1] = LABEL_VERSION
    human: HumanDecision
    claim: str | None
    sources: tuple[str, ...] | None = None
    instruction: str | None = None
    pages: tuple[LabelledPage, ...] = ()
    task: str = ""
    answer: str = ""
    reviewer: str = ""
    reason: str = ""
    at: AwareDatetime | None = None
    agent: str | None = None
    task_id: str | None = None
    answer_name: str | None = None
    answer_sha256: _Sha256 | None = None
    result_id: str | None = None
    leaf: str | None = None
    judge: RecordedVerdict | None = None
    judges: tuple[RecordedVerdict, ...] = ()
    row: str | None = None
    original: str = ""

    @property
    def recorded(self) -> tuple[RecordedVerdict, ...]:
        every = self.judges if self.judge is None else (self.judge, *self.judges)
        return tuple(one for one in every if one.model is not None)


_OPTIONAL: Final = ("judges", "row", "original")
"""Fields that lines contain only if they have a value."""

_LABEL = TypeAdapter(Label)
"""Parses a line. Unknown fields are ignored, because label files may have additional columns."""


def label_from_leaf(
    result: Mapping[str, Any],
    leaf: Mapping[str, Any],
    *,
    key: str,
    human: HumanDecision,
    reviewer: str,
    reason: str,
    at: datetime,
    answer: str,
) -> Label:
    """Return the label for a person's decision on a leaf of a result (JSON). ``answer`` is the judged text."""
    trees = [part["verification_tree"] for part in result.get("eval_breakdown") or ()]
    sources = leaf.get("sources")
    return Label(
        human=human,
        claim=leaf.get("claim"),
        sources=None if sources is None else tuple(sources),
        instruction=leaf.get("instruction"),
        pages=_pages_of(result, sources or ()),
        task=str(trees[0].get("desc") or "") if trees else "",
        answer=answer,
        reviewer=reviewer,
        reason=reason,
        at=at,
        agent=result.get("agent_name"),
        task_id=result.get("task_id"),
        answer_name=result.get("answer_name"),
        answer_sha256=result.get("answer_sha256"),
        result_id=result.get("id"),
        leaf=key,
        judge=RecordedVerdict(
            outcome=Outcome(leaf.get("outcome") or Outcome.UNDECIDED),
            reason=leaf.get("reason"),
            model=leaf.get("model"),
            prompt=leaf.get("prompt"),
        ),
    )


def label_line(label: Label) -> str:
    """Return a label as one line, including the line break. Deterministic."""
    document = asdict(label)
    document["pages"] = [
        {name: value for name, value in page.items() if value is not None} for page in document["pages"]
    ]
    document["judges"] = list(map(_without_details, document["judges"]))
    document["judge"] = None if document["judge"] is None else _without_details(document["judge"])
    for name in _OPTIONAL:
        if not document[name]:
            del document[name]
    document["at"] = None if label.at is None else label.at.isoformat()
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n"


def _without_details(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded verdict without details that have no value."""
    always = ("outcome", "reason", "model", "prompt")
    return {
        name: value
        for name, value in verdict.items()
        if name in always or (value is not None and value is not False and value != "")
    }


def parse_labels(lines: Iterable[bytes], *, name: str = "the labels") -> tuple[Label, ...]:
    """Parse UTF-8 lines. ``name`` identifies the source in error messages.

    Raises:
        LabelsUnreadable: lines are not valid labels, or there is no label. The error lists the lines.
    """
    return tuple(label for _, label in each_label(lines, name=name))


def label_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a label file without keeping them. Blocks on the disk.

    Raises:
        LabelsUnreadable: the file cannot be read, or a line is too long.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise LabelsUnreadable(f"{path}: line {number} is longer than {MAX_LINE_BYTES} bytes")
                yield line
    except OSError as error:
        raise LabelsUnreadable(f"{path} cannot be read: {error.strerror}") from error


def each_label(lines: Iterable[bytes], *, name: str = "the labels") -> Iterator[tuple[bytes, Label]]:
    """Yield UTF-8 lines with their labels, without keeping them.

    Raises:
        LabelsUnreadable: at the end, if lines are not valid labels or there is no label. The error lists the lines.
    """
    problems: list[str] = []
    found = 0
    for number, line in enumerate(lines, start=1):
        stripped = line.removeprefix(b"\xef\xbb\xbf").strip()
        if not stripped or len(problems) >= MAX_LISTED_PROBLEMS:
            continue
        try:
            label = _LABEL.validate_json(stripped)
        except ValidationError as error:
            problems.append(f"line {number}: {first_error(error)}")
            continue
        found += 1
        yield stripped, label
    if problems:
        raise LabelsUnreadable(f"{name}: lines that are not valid labels: {len(problems)}", problems=tuple(problems))
    if not found:
        raise LabelsUnreadable(f"{name}: contains no labels")


def _pages_of(result: Mapping[str, Any], sources: Iterable[str]) -> tuple[LabelledPage, ...]:
    """Return the captures of the sources, as far as the result lists them."""
    by_key = {canonical_key(str(page["url"])): page for page in result.get("pages") or ()}
    pages = [LabelledPage(url=url) for url in dict.fromkeys(sources)]
    return tuple(
        one if page is None else LabelledPage(url=one.url, page_id=page.get("page_id"), sha256=_text_digest(page))
        for one in pages
        for page in (by_key.get(canonical_key(one.url)),)
    )


def _text_digest(page: Mapping[str, Any]) -> str | None:
    digest = (page.get("bodies") or {}).get("text")
    return digest if isinstance(digest, str) else None


def first_error(error: ValidationError) -> str:
    """Return the field and the message of the first problem."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]

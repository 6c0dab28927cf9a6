"""Verification of a bundle: its zip, its files, and every figure and verdict that follows from recorded replies.

No code from the bundle runs. A manifest can be rebuilt after a file was changed, so the verification starts at the
results: they name their answer, task file, call log and pages by hash, and their scores follow from their verdicts.
This shows that the bundle agrees with itself, not who made it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from answers.submission import NAME_PATTERN
from app.api.reviews import scores_with_overrides
from app.features.bundles.archive import (
    MANIFEST,
    BundledResult,
    BundleReader,
    BundleRefused,
    evidence_path,
    open_bundle,
    script_paths,
)
from cache.capture import Capture
from cache.capture_index import capture_from_json
from cache.errors import IndexFailed
from judges.analysis.recomputation import (
    Ballot,
    NotRecomputable,
    ReplayDifference,
    inconsistent_leaves,
    score_differences,
    tree_of,
    unmatched_replies,
)
from judges.errors import LLMOutputUnusable
from judges.llm.call_recording import CallLogUnreadable, ParsedCallLog, read_calls, recorded_blocks
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import read_reply
from judges.prompting.prompts import locked_digests
from judges.prompting.rendering import BinaryEvalResult
from judges.registry import JudgeKind
from judges.result import page_json
from mind2web2.results import UNKNOWN_AGENT, UNKNOWN_ANSWER
from rubrics.rubric import RubricError
from rubrics.tree_json import script_of, script_sha256_of

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Errors of code that reads a record of another structure."""
_CONTENT_FOLDERS = ("evidence/", "call-logs/")
_NAMED_BY_HASH = ("answers/", "scripts/", *_CONTENT_FOLDERS)
_SHOWN_FIGURES = ("status", "final_score", "score", "score_strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedResult:
    """Verified result.

    ``figures`` are the recorded ones. ``with_overrides`` are the recomputed scores with the overrides applied.
    ``not_compared`` says what could not be compared because it is not in the bundle, and ``unchecked`` why nothing
    could be recomputed.
    """

    result_id: str
    task_id: str
    answer_name: str
    figures: Mapping[str, Any]
    differences: tuple[ReplayDifference, ...] = ()
    unchecked: str | None = None
    not_compared: tuple[str, ...] = ()
    with_overrides: Mapping[str, Any] | None = None

    @property
    def is_complete(self) -> bool:
        return self.unchecked is None and not self.not_compared

    def to_json(self) -> dict[str, Any]:
        return {
            "result_id": self.result_id,
            "task_id": self.task_id,
            "answer_name": self.answer_name,
            "equal": not self.differences,
            **self.figures,
            "with_overrides": self.with_overrides,
            "unchecked": self.unchecked,
            "not_compared": list(self.not_compared),
            "differences": [asdict(difference) for difference in self.differences],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Report on a bundle. ``problems`` are sentences about its files; if there are any, no result was read."""

    files: int
    bytes: int
    problems: tuple[str, ...]
    results: tuple[CheckedResult, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.problems and not any(result.differences for result in self.results)

    @property
    def is_complete(self) -> bool:
        """Whether everything could be compared."""
        return all(result.is_complete for result in self.results)

    @property
    def first_problem(self) -> str | None:
        """The first problem of a file, or the first difference of a result."""
        differences = (
            f"{result.task_id} {result.answer_name} ({result.result_id}): {difference}"
            for result in self.results
            for difference in result.differences
        )
        return next(iter(self.problems), None) or next(differences, None)


def verify(path: Path) -> Report:
    """Read and check a whole bundle, one file at a time. Blocks.

    Raises:
        BundleRefused: the file is not a valid bundle or is unsafe.
    """
    with open_bundle(path) as bundle:
        return verify_open(bundle)


def verify_open(bundle: BundleReader) -> Report:
    """Check an open bundle as ``verify`` does."""
    problems = bundle.problems() or list(_misnamed(bundle))
    size = bundle.manifest.bytes
    if problems:
        return Report(files=len(bundle.files), bytes=size, problems=tuple(problems))
    used: set[str] = set()
    results = tuple(_ResultCheck(bundle, entry, used).run() for entry in bundle.manifest.results)
    known = {*bundle.files, *(absent.path for absent in bundle.manifest.absent)}
    unused = tuple(f"{path} does not belong to a result of the bundle" for path in sorted(known - used))
    if not results:
        unused = (*unused, "the bundle contains no result")
    return Report(files=len(bundle.files), bytes=size, problems=unused, results=results)


def _misnamed(bundle: BundleReader) -> Iterator[str]:
    for path, file in bundle.files.items():
        folder, _, name = path.partition("/")
        if f"{folder}/" in _NAMED_BY_HASH and name.partition(".")[0] != file.sha256:
            yield f"{path} does not have the hash in its name"


class _OverrideIn(BaseModel):
    """Override of a leaf by a person."""

    id: str
    leaf: str
    outcome: str | None
    withdraws: str | None


class _OverridesIn(BaseModel):
    """Overrides file of a bundle: overrides, oldest first, and the scores with them."""

    overrides: tuple[_OverrideIn, ...] = ()
    with_overrides: dict[str, Any] | None = None


class _ResultCheck:
    """Check of one result. ``used`` receives the paths of all files that belong to it."""

    def __init__(self, bundle: BundleReader, entry: BundledResult, used: set[str]) -> None:
        self._bundle = bundle
        self._entry = entry
        self._used = used
        self._absent = {each.path: each.reason for each in bundle.manifest.absent}
        self._not_compared: dict[str, None] = {}
        self._texts: dict[str, str | None] = {}
        self._with_overrides: Mapping[str, Any] | None = None

    def run(self) -> CheckedResult:
        result = read_result(self._bundle, self._entry)
        self._used.add(_result_path(self._entry))
        unchecked: str | None = None
        differences = [*self._named_differences(result), *self._page_differences(result)]
        log = self._call_log(result, differences)
        try:
            root = tree_of(result)
            differences += score_differences(result)
            differences += inconsistent_leaves(root, self._text_of)
            if log is not None:
                is_native = script_of(result).get("kind") == JudgeKind.NATIVE
                differences += unmatched_replies(root, _replies_by_claim(log), is_native=is_native)
        except NotRecomputable as error:
            unchecked = str(error)
        differences += self._override_differences(result)
        return CheckedResult(
            result_id=self._entry.result_id,
            task_id=self._entry.task_id,
            answer_name=self._entry.answer_name,
            figures={name: result.get(name) for name in _SHOWN_FIGURES},
            differences=tuple(differences),
            unchecked=unchecked,
            not_compared=tuple(self._not_compared),
            with_overrides=self._with_overrides,
        )

    def _find(self, path: str, differences: list[ReplayDifference]) -> bool:
        """Return whether the bundle contains a file of this result. Note one that it leaves out."""
        self._used.add(path)
        if path in self._bundle:
            return True
        reason = self._absent.get(path)
        if reason is None and not self._bundle.manifest.content and path.startswith(_CONTENT_FOLDERS):
            reason = "the bundle was made without content"
        if reason is None:
            differences.append(ReplayDifference(where=path, recorded="part of the result", recomputed="missing"))
        else:
            self._not_compared.setdefault(f"{path}: {reason}")
        return False

    def _named_differences(self, result: Mapping[str, Any]) -> list[ReplayDifference]:
        """Check the names in the manifest, and that answer and task file are in the bundle."""
        differences: list[ReplayDifference] = []
        names = {"task_id": (self._entry.task_id, None), "answer_name": (self._entry.answer_name, UNKNOWN_ANSWER)}
        names |= {"agent_name": (self._bundle.manifest.agent, UNKNOWN_AGENT)}
        if NAME_PATTERN.fullmatch(str(result.get("id") or "")):
            names["id"] = (self._entry.result_id, None)
        for name, (listed, unknown) in names.items():
            if result.get(name) not in (listed, unknown):
                where = f"{name} in {MANIFEST}"
                differences.append(ReplayDifference(where=where, recorded=result.get(name), recomputed=listed))
        if result.get("answer_sha256") is not None:
            self._find(f"answers/{result['answer_sha256']}.md", differences)
        script = script_sha256_of(result)
        if result.get("eval_script_sha256", script) != script:
            differences.append(
                ReplayDifference(where="eval_script_sha256", recorded=result["eval_script_sha256"], recomputed=script)
            )
        if script is not None:
            python, yaml = script_paths(str(script))
            self._find(yaml if yaml in self._bundle else python, differences)
        return differences

    def _page_differences(self, result: Mapping[str, Any]) -> list[ReplayDifference]:
        """Check the capture records, and that every body that the result names is in the bundle."""
        differences: list[ReplayDifference] = []
        for page in pages_of(result, copies=True):
            path = _capture_path(page["page_id"])
            if not self._find(path, differences):
                continue
            capture = read_capture(self._bundle, page["page_id"])
            for name, value in page_json(capture).items():
                if value != page.get(name) and (name in page or name != "kind"):  # earlier results have no kind
                    where = f"{name} in {path}"
                    differences.append(ReplayDifference(where=where, recorded=page.get(name), recomputed=value))
            for blob in capture.blobs.values():
                self._find(evidence_path(blob.sha256, blob.media_type), differences)
        return differences

    def _call_log(self, result: Mapping[str, Any], differences: list[ReplayDifference]) -> ParsedCallLog | None:
        """Check the call log of a result and return it. None: the bundle does not contain it."""
        calls = result.get("calls")
        if not isinstance(calls, Mapping):
            self._not_compared.setdefault("the model requests: the result has no call log")
            return None
        path = f"call-logs/{calls.get('sha256')}.log"
        if not self._find(path, differences):
            return None
        try:
            log = read_calls(self._bundle.read(path))
            differences += _log_differences(result, log)
            differences += self._unshown_bodies(result, log)
        except (CallLogUnreadable, *MALFORMED) as error:
            raise BundleRefused(f"{path} is not a call log: {error}") from error
        return log

    def _unshown_bodies(self, result: Mapping[str, Any], log: ParsedCallLog) -> Iterator[ReplayDifference]:
        """Check that the pictures and pages that the model saw are those in the bundle."""
        pictures = {sha256 for call in log.calls for sha256 in _pictures(call.get("messages"))}
        shown = {str(sha256) for call in log.calls for sha256 in call.get("evidence") or ()}
        names = {path.partition("/")[2].partition(".")[0] for path in (*self._bundle.files, *self._absent)}
        for sha256 in sorted((pictures | shown) - names - set(log.pieces)):
            if sha256 in pictures or script_of(result).get("kind") == JudgeKind.NATIVE:
                yield ReplayDifference(where="a page in the call log", recorded=sha256, recomputed="not in the bundle")
            else:
                self._not_compared.setdefault(f"a page with the hash {sha256}: the task script created it")

    def _override_differences(self, result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
        """Check the number of overrides against the manifest, and the scores with them against a recomputation."""
        path, stored = f"overrides/{self._entry.result_id}.json", _OverridesIn()
        self._used.add(path)
        if path in self._bundle:
            try:
                stored = _OverridesIn.model_validate(self._bundle.read_json(path))
            except ValidationError as error:
                raise BundleRefused(f"{path} is invalid: {error.error_count()} fields are wrong") from error
        if len(stored.overrides) != self._entry.overrides:
            yield ReplayDifference(where=path, recorded=self._entry.overrides, recomputed=len(stored.overrides))
        try:
            recomputed = scores_with_overrides(result, stored.overrides) if stored.overrides else None
        except (RubricError, *MALFORMED) as error:
            # The bundle is untrusted. Only the fields behind the plain scores were checked; others can have any value.
            reason = f"cannot be recomputed: {error}"
            yield ReplayDifference(where="with_overrides", recorded=stored.with_overrides, recomputed=reason)
            return
        self._with_overrides = recomputed
        if recomputed != stored.with_overrides:
            yield ReplayDifference(where="with_overrides", recorded=stored.with_overrides, recomputed=recomputed)

    def _text_of(self, page_id: str) -> str | None:
        """Return the text of a page of the result, or None if the bundle leaves it out."""
        if page_id not in self._texts:
            self._texts[page_id] = self._read_text(page_id)
        return self._texts[page_id]

    def _read_text(self, page_id: str) -> str | None:
        if _capture_path(page_id) not in self._used:
            return ""  # not a page of this result
        if _capture_path(page_id) not in self._bundle:
            return None
        blob = read_capture(self._bundle, page_id).blobs.get("text")
        if blob is None:
            return ""
        path = evidence_path(blob.sha256, blob.media_type)
        return self._bundle.read(path).decode("utf-8", "replace") if path in self._bundle else None


def _result_path(entry: BundledResult) -> str:
    return f"results/{entry.result_id}.json"


def _capture_path(page_id: str) -> str:
    return f"captures/{page_id}.json"


def read_result(bundle: BundleReader, entry: BundledResult) -> dict[str, Any]:
    """Return a result of the bundle. Raises BundleRefused."""
    result = bundle.read_json(_result_path(entry))
    if not isinstance(result, dict):
        raise BundleRefused(f"{_result_path(entry)} is not a result: expected a JSON object")
    return result


def read_capture(bundle: BundleReader, page_id: str) -> Capture:
    """Return the record of a capture. Raises BundleRefused."""
    path = _capture_path(page_id)
    record = bundle.read_json(path)
    if not isinstance(record, Mapping):
        raise BundleRefused(f"{path} is not a capture record")
    try:
        capture = capture_from_json(record)
    except IndexFailed as error:
        raise BundleRefused(f"{path}: {error}") from error
    if capture.id != page_id:
        raise BundleRefused(f"{path} is the record of another capture")
    return capture


def pages_of(result: Mapping[str, Any], *, copies: bool = False) -> list[Mapping[str, Any]]:
    """Return the pages of a result, and with ``copies`` also the copies that the judge was not shown.

    Pages without a valid id have no files in a bundle.
    """
    pages = result.get("pages")
    listed = [page for page in (pages if isinstance(pages, list) else []) if isinstance(page, Mapping)]
    if copies:
        listed += [copy for page in listed if isinstance(copy := page.get("other_copy"), Mapping)]
    ids = (page.get("page_id") for page in listed)
    return [page for page, id in zip(listed, ids, strict=True) if isinstance(id, str) and NAME_PATTERN.fullmatch(id)]


def _log_differences(result: Mapping[str, Any], log: ParsedCallLog) -> Iterator[ReplayDifference]:
    """Check the number of calls, the pieces and the prompts of a call log."""
    if result["calls"].get("count") != len(log.calls):
        yield ReplayDifference(where="calls.count", recorded=result["calls"].get("count"), recomputed=len(log.calls))
    for sha256 in log.pieces:
        log.piece(sha256)  # raises if it does not have its hash
    locked = locked_digests()
    for ref, text in log.prompts.items():
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        if locked.get(ref, sha256) != sha256:
            yield ReplayDifference(where=f"prompt {ref} of the call log", recorded=sha256, recomputed=locked[ref])


def _replies_by_claim(log: ParsedCallLog) -> dict[str, Counter[Ballot]]:
    """Return the usable replies to each claim: result and model."""
    replies: dict[str, Counter[Ballot]] = {}
    for call in log.calls:
        try:
            if call["purpose"] != "verify" or "reply" not in call:
                continue
            raw = RawReply(text=call["reply"], finish=FinishReason.STOP, model=call["by"])
            vote = read_reply(raw, BinaryEvalResult, purpose="verify")
            if not isinstance(vote, BinaryEvalResult):
                continue
            for claim in recorded_blocks(call, lambda sha256: log.piece(sha256).data.decode(), "claim"):
                if isinstance(vote, BinaryEvalResult) or vote.fits(claim):
                    replies.setdefault(claim, Counter())[(vote.result, raw.model)] += 1
        except LLMOutputUnusable:
            continue
        except (CallLogUnreadable, *MALFORMED) as error:
            raise BundleRefused(f"a call log contains an entry that is not a call: {error}") from error
    return replies


def _pictures(content: Any) -> Iterator[str]:
    """Yield the hashes of the pictures in the messages of a recorded call."""
    if isinstance(content, Mapping) and "picture" in content:
        yield str(content["picture"])
    elif isinstance(content, Mapping | list):
        for each in content.values() if isinstance(content, Mapping) else content:
            yield from _pictures(each)

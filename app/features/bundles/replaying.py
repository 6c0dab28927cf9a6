"""Replay of a bundle: recompute every score offline, without API keys and without a model.

Every file is checked against its name and against the result that refers to it. The figures that follow from the
verdicts of the leaves are recomputed. The votes and quotes of each verdict are looked up. No code from the bundle runs.

This shows that the bundle agrees with itself. Only a root hash or a signature shows who made it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from answers.submission import NAME_PATTERN
from app.api.overrides import scores_with_overrides
from app.features.bundles.bundle_reader import LIMITS, BundleLimits, BundleReader, open_bundle
from app.features.bundles.content_redaction import truncate_values
from app.features.bundles.errors import BundleRefused
from app.features.bundles.exporting import call_files
from app.features.bundles.file_checks import check_descriptions, check_file_names, payload_hashes
from app.features.bundles.layout import (
    INDEX,
    Index,
    IndexedResult,
    answer_path,
    call_log_path,
    calls_path,
    capture_path,
    evidence_path,
    overrides_path,
    parse_json,
    read_capture,
    read_index,
    read_json,
    result_path,
    script_path,
    text_path,
    tree_path,
)
from judges.analysis.replay.recomputation import inconsistent_leaves, score_differences, votes_without_reply
from judges.analysis.replay.tree import NotRecomputable, ReplayDifference, tree_of
from judges.errors import LLMOutputUnusable
from judges.llm.call_log_reader import CallLogUnreadable, read_calls, recorded_blocks
from judges.llm.call_recording import MAX_PIECES_BYTES
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import read_reply
from judges.prompting.verdict_reply import BinaryEvalResult
from judges.registry import JudgeKind
from judges.result import page_json
from mind2web2.results import UNKNOWN_AGENT, UNKNOWN_ANSWER
from rubrics.errors import RubricError
from rubrics.result_fields import script_of, script_sha256_of

MAX_TEXT_BYTES = 64 * 1024 * 1024
MAX_CALLS_BYTES = 512 * 1024 * 1024
MAX_CALL_LOG_BYTES = MAX_CALLS_BYTES + MAX_PIECES_BYTES
_CONTENT_FOLDERS = ("evidence/", "texts/", "call-logs/")
_FILES_OF_INDEX = ("answer", "script", "calls")
_MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Errors of code that reads a record of another structure."""
_SHOWN_FIGURES = ("status", "final_score", "score", "score_strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedResult:
    """Replayed result.

    ``figures`` are the recorded ones. ``with_overrides`` are the recomputed scores with the overrides applied.
    ``unchecked`` says why nothing could be recomputed. ``not_compared`` lists what the bundle leaves out and could
    therefore not be compared, as sentences.
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
    def equal(self) -> bool:
        return not self.differences and self.unchecked is None

    def to_json(self) -> dict[str, Any]:
        return {
            "result_id": self.result_id,
            "task_id": self.task_id,
            "answer_name": self.answer_name,
            "equal": self.equal,
            **self.figures,
            "with_overrides": self.with_overrides,
            "unchecked": self.unchecked,
            "not_compared": list(self.not_compared),
            "differences": [asdict(difference) for difference in self.differences],
        }


def replay(path: Path, limits: BundleLimits = LIMITS) -> list[ReplayedResult]:
    """Check every file of a bundle and recompute every result. Blocks. ``verify`` checks the zip and the manifests.

    Raises:
        BundleRefused: the file is not a valid bundle or is unsafe, or a file in it does not match its name or what it
            describes.
    """
    with open_bundle(path, limits) as bundle:
        index, hashes = read_index(bundle), payload_hashes(bundle)
        check_file_names(bundle, hashes, index)
        results = [_Replay(bundle, hashes, index, indexed).run() for indexed in index.results]
        if not any(result.differences for result in results):  # a difference says more than a refused description
            check_descriptions(bundle, hashes, index)
        return results


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


class _Replay:
    def __init__(self, bundle: BundleReader, hashes: Mapping[str, str], index: Index, indexed: IndexedResult) -> None:
        self._bundle = bundle
        self._hashes = hashes
        self._index = index
        self._indexed = indexed
        self._texts: dict[str, str | None] = {}
        self._absent = {each.path: each.reason for each in index.absent}
        self._not_compared: dict[str, None] = {}
        self._with_overrides: Mapping[str, Any] | None = None

    def run(self) -> ReplayedResult:
        result = read_json(self._bundle, result_path(self._indexed.result_id))
        if not isinstance(result, dict):
            raise BundleRefused(f"data/{result_path(self._indexed.result_id)} is not a result: expected a JSON object")
        unchecked: str | None = None
        differences: list[ReplayDifference] = []
        try:
            differences.extend(self._file_differences(result))
            differences.extend(self._score_differences(result))
        except NotRecomputable as error:
            unchecked = str(error)
        return ReplayedResult(
            result_id=self._indexed.result_id,
            task_id=self._indexed.task_id,
            answer_name=self._indexed.answer_name,
            figures={name: result.get(name) for name in _SHOWN_FIGURES},
            differences=tuple(differences),
            unchecked=unchecked,
            not_compared=tuple(self._not_compared),
            with_overrides=self._with_overrides,
        )

    def _file_differences(self, result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
        """Check the files of the bundle against the result that refers to them."""
        yield from self._mismatched_files(result)
        yield from self._index_differences(result)
        yield from self._page_differences(result)
        yield from self._call_differences(result)

    def _score_differences(self, result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
        root = tree_of(result)
        yield from score_differences(result)
        yield from inconsistent_leaves(root, self._text_of)
        replies = self._replies_by_claim()
        if replies is not None:
            yield from votes_without_reply(root, replies)
        yield from self._override_differences(result)

    def _leave_out(self, path: str) -> bool:
        """Return whether the bundle leaves out a file, and note it."""
        if path in self._hashes:
            return False
        reason = self._absent.get(path)
        if reason is None and not self._index.content and path.startswith(_CONTENT_FOLDERS):
            reason = "the bundle was made without content"
        if reason is not None:
            self._not_compared.setdefault(f"{path}: {reason}")
        return reason is not None

    def _index_differences(self, result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
        """Check the entry of the index, which decides which files are compared."""
        script, calls = script_of(result), result.get("calls")
        expected = {
            "task_id": result.get("task_id"),
            "answer_name": result.get("answer_name"),
            "kind": str(script.get("kind", JudgeKind.NATIVE.value)),
            "answer": result.get("answer_sha256"),
            "script": script.get("sha256"),
            "calls": calls.get("count") if isinstance(calls, Mapping) else None,
            "pages": tuple(_pages_by_id(result)),
        }
        if isinstance(result.get("id"), str) and NAME_PATTERN.fullmatch(result["id"]):
            expected["result_id"] = result["id"]
        for name, value in expected.items():
            indexed = getattr(self._indexed, name)
            # A file that was left out is None in the index. The check of the files notes or reports that.
            is_left_out = indexed is None and name in _FILES_OF_INDEX
            is_unnamed = name == "answer_name" and value == UNKNOWN_ANSWER
            if indexed != value and not is_left_out and not is_unnamed:
                yield ReplayDifference(where=f"{name} in data/{INDEX}", recorded=value, recomputed=indexed)
        if result.get("agent_name") not in (None, UNKNOWN_AGENT, self._index.agent):
            yield ReplayDifference(
                where=f"agent in data/{INDEX}", recorded=result["agent_name"], recomputed=self._index.agent
            )

    def _page_differences(self, result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
        """Check the capture records, and that every body that the result names is in the bundle."""
        for page_id, page in _pages_by_id(result).items():
            path = capture_path(page_id)
            if self._leave_out(path):
                continue
            if path not in self._hashes:
                yield ReplayDifference(where=f"data/{path}", recorded=page_id, recomputed="not in the bundle")
                continue
            capture = read_capture(self._bundle, page_id)
            entry = page_json(capture) if self._index.content else truncate_values(page_json(capture))
            page = {"kind": entry["kind"], **page}  # earlier results do not have it
            for name in entry:
                if entry[name] != page.get(name):
                    yield ReplayDifference(
                        where=f"{name} in data/{path}", recorded=page.get(name), recomputed=entry[name]
                    )
            for blob in capture.blobs.values():
                body = evidence_path(blob.sha256, blob.media_type)
                if not self._leave_out(body) and body not in self._hashes:
                    yield ReplayDifference(where=f"data/{body}", recorded=blob.sha256, recomputed="not in the bundle")

    def _call_differences(self, result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
        """Check the model requests against the stored call log, whose hash is in the result."""
        calls, path = result.get("calls"), calls_path(self._indexed.result_id)
        if not isinstance(calls, Mapping):
            self._not_compared.setdefault(f"{path}: the result has no call log")
            return
        log_path = call_log_path(str(calls.get("sha256")))
        if self._leave_out(path) or self._leave_out(log_path):
            return
        if log_path not in self._hashes:
            yield ReplayDifference(where="calls.sha256", recorded=calls.get("sha256"), recomputed="not in the bundle")
            return
        try:
            record = read_calls(self._bundle.read(f"data/{log_path}", max_bytes=MAX_CALL_LOG_BYTES))
            for file in call_files(self._indexed.result_id, record, content=True):
                sha256 = hashlib.sha256(file.data).hexdigest()
                if self._hashes.get(file.path) != sha256 and not self._leave_out(file.path):
                    yield ReplayDifference(
                        where=f"data/{file.path}",
                        recorded=f"{sha256} in the call log",
                        recomputed=self._hashes.get(file.path, "not in the bundle"),
                    )
            yield from self._unshown_bodies(record.calls)
        except (CallLogUnreadable, *_MALFORMED) as error:
            raise BundleRefused(f"data/{log_path} is not a call log: {error}") from error

    def _unshown_bodies(self, calls: Iterable[Mapping[str, Any]]) -> Iterator[ReplayDifference]:
        """Check that the pictures and pages that the model saw are those in the bundle."""
        pictures = {sha256 for call in calls for sha256 in _pictures(call.get("messages"))}
        shown = {str(sha256) for call in calls for sha256 in call.get("evidence") or ()}
        names = {path.partition("/")[2].partition(".")[0] for path in (*self._hashes, *self._absent)}
        for sha256 in sorted((pictures | shown) - names):
            if sha256 in pictures or self._indexed.kind == JudgeKind.NATIVE:
                yield ReplayDifference(
                    where="a page or picture in the call log", recorded=sha256, recomputed="not in the bundle"
                )
            else:
                self._not_compared.setdefault(f"a page with the hash {sha256}: the judge script created it")

    def _replies_by_claim(self) -> dict[str, set[tuple[bool, str]]] | None:
        """Return the replies to claims, each with its model, by claim. None: the bundle has no call record."""
        path = calls_path(self._indexed.result_id)
        if path not in self._hashes:
            return None
        replies: dict[str, set[tuple[bool, str]]] = {}
        for line in self._bundle.read(f"data/{path}", max_bytes=MAX_CALLS_BYTES).splitlines():
            try:
                call = parse_json(line, path)
                if call["purpose"] != "verify" or "reply" not in call:
                    continue
                raw = RawReply(text=call["reply"], finish=FinishReason.STOP, model=call["by"])
                vote = read_reply(raw, BinaryEvalResult, purpose="verify")
                if isinstance(vote, BinaryEvalResult):
                    for claim in recorded_blocks(call, self._piece, "claim"):
                        replies.setdefault(claim, set()).add((vote.result, raw.model))
            except LLMOutputUnusable:
                continue
            except _MALFORMED as error:
                raise BundleRefused(f"data/{path} contains a line that is not a call record: {error}") from error
        return replies

    def _piece(self, sha256: str) -> str:
        path = text_path(str(sha256))
        if path not in self._hashes:
            return ""
        return self._bundle.read(f"data/{path}", max_bytes=MAX_TEXT_BYTES).decode("utf-8", "replace")

    def _override_differences(self, result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
        """Check the number of overrides against the index, and the scores with overrides against a recomputation."""
        path = overrides_path(self._indexed.result_id)
        stored = _OverridesIn()
        if f"data/{path}" in self._bundle:
            try:
                stored = _OverridesIn.model_validate(read_json(self._bundle, path))
            except ValidationError as error:
                raise BundleRefused(f"data/{path} is invalid: {error.error_count()} fields are wrong") from error
        if len(stored.overrides) != self._indexed.overrides:
            yield ReplayDifference(where=path, recorded=self._indexed.overrides, recomputed=len(stored.overrides))
        try:
            recomputed = scores_with_overrides(result, stored.overrides) if stored.overrides else None
        except (RubricError, *_MALFORMED) as error:
            # The bundle is untrusted. Only the fields behind the plain scores were checked; others can have any value.
            reason = f"cannot be recomputed: {error}"
            yield ReplayDifference(where="with_overrides", recorded=stored.with_overrides, recomputed=reason)
            return
        self._with_overrides = recomputed
        if recomputed != stored.with_overrides:
            yield ReplayDifference(where="with_overrides", recorded=stored.with_overrides, recomputed=recomputed)

    def _mismatched_files(self, result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
        """Check that the stored answer, judge script and tree are those that the result names."""
        for name, expected, path_of in (
            ("answer_sha256", result.get("answer_sha256"), answer_path),
            ("script.sha256", script_sha256_of(result), self._script_path),
        ):
            if expected is None:
                continue
            path = path_of(str(expected))
            if not self._leave_out(path) and path not in self._hashes:
                yield ReplayDifference(where=name, recorded=expected, recomputed="not in the bundle")
        breakdown = result.get("eval_breakdown")
        parts = breakdown if isinstance(breakdown, list) else []
        trees = [part.get("verification_tree") for part in parts if isinstance(part, Mapping)]
        path = tree_path(self._indexed.result_id)
        if read_json(self._bundle, path) != trees:
            yield ReplayDifference(where=f"data/{path}", recorded="the tree of the result", recomputed="another tree")

    def _script_path(self, sha256: str) -> str:
        return script_path(sha256, self._indexed.script_suffix)

    def _text_of(self, page_id: str) -> str | None:
        """Return the text of a page, or None if the bundle leaves it out."""
        if page_id not in self._texts:
            self._texts[page_id] = self._read_text(page_id)
        return self._texts[page_id]

    def _read_text(self, page_id: str) -> str | None:
        if page_id not in self._indexed.pages:
            return ""
        if self._leave_out(capture_path(page_id)):
            return None
        blob = read_capture(self._bundle, page_id).blobs.get("text")
        if blob is None:
            return ""
        path = evidence_path(blob.sha256, blob.media_type)
        if self._leave_out(path):
            return None
        return self._bundle.read(f"data/{path}", max_bytes=MAX_TEXT_BYTES).decode("utf-8", "replace")


def _pictures(content: Any) -> Iterator[str]:
    """Yield the hashes of the pictures in the messages of a recorded call."""
    if isinstance(content, Mapping) and "picture" in content:
        yield str(content["picture"])
    elif isinstance(content, Mapping | list):
        for each in content.values() if isinstance(content, Mapping) else content:
            yield from _pictures(each)


def _pages_by_id(result: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the pages of a result. Pages without a valid id have no files in a bundle."""
    pages = result.get("pages")
    return {
        page["page_id"]: page
        for page in (pages if isinstance(pages, list) else [])
        if isinstance(page, Mapping)
        and isinstance(page.get("page_id"), str)
        and NAME_PATTERN.fullmatch(page["page_id"])
    }


def first_difference(results: list[ReplayedResult]) -> str | None:
    """Describe the first difference.

    Without one, describe the first result that could not be recomputed, else return None.
    """
    for result in results:
        if result.differences:
            return f"{_describe(result)}: {result.differences[0]}"
    for result in results:
        if result.unchecked is not None:
            return f"{_describe(result)}: cannot be recomputed: {result.unchecked}"
    return None


def _describe(result: ReplayedResult) -> str:
    return f"{result.task_id} {result.answer_name} ({result.result_id})"

"""Replay of a bundle: recompute every score offline, without API keys and without a model.

The figures that follow from the verdicts of the leaves are recomputed. The votes and quotes of each verdict are looked
up. No code from the bundle runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from app.api.overrides import scores_with_overrides
from app.features.bundles.bundle_reader import LIMITS, BundleLimits, BundleReader, open_bundle
from app.features.bundles.errors import BundleRefused
from app.features.bundles.layout import (
    IndexedResultIn,
    IndexIn,
    answer_path,
    capture_path,
    evidence_path,
    overrides_path,
    read_index,
    read_json,
    result_path,
    script_path,
    tree_path,
)
from judges.analysis.replay.recomputation import inconsistent_leaves, score_differences
from judges.analysis.replay.tree import NotRecomputable, ReplayDifference, tree_of
from rubrics.errors import RubricError

MAX_TEXT_BYTES = 64 * 1024 * 1024
_SHOWN_FIGURES = ("status", "final_score", "score", "score_strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedResult:
    """Replayed result.

    ``figures`` are the recorded ones. ``with_overrides`` are the recomputed scores with the overrides applied.
    ``unchecked`` says why nothing could be recomputed.
    """

    result_id: str
    task_id: str
    answer_name: str
    figures: Mapping[str, Any]
    differences: tuple[ReplayDifference, ...] = ()
    unchecked: str | None = None
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
            "differences": [asdict(difference) for difference in self.differences],
        }


def replay(path: Path, limits: BundleLimits = LIMITS) -> list[ReplayedResult]:
    """Recompute every result of a bundle. Blocks. Files that it does not read are not hashed; use ``verify`` for that.

    Raises:
        BundleRefused: the file is not a valid bundle, or is unsafe.
    """
    with open_bundle(path, limits) as bundle:
        index = read_index(bundle)
        return [_Replay(bundle, index, indexed).run() for indexed in index.results]


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
    def __init__(self, bundle: BundleReader, index: IndexIn, indexed: IndexedResultIn) -> None:
        self._bundle = bundle
        self._index = index
        self._indexed = indexed
        self._texts: dict[str, str | None] = {}
        self._absent = {each.path for each in index.absent}
        self._with_overrides: Mapping[str, Any] | None = None

    def run(self) -> ReplayedResult:
        result = read_json(self._bundle, result_path(self._indexed.result_id))
        if not isinstance(result, dict):
            raise BundleRefused(f"data/{result_path(self._indexed.result_id)} is not a result: expected a JSON object")
        unchecked: str | None = None
        try:
            differences = tuple(self._differences(result))
        except NotRecomputable as error:
            differences, unchecked = (), str(error)
        return ReplayedResult(
            result_id=self._indexed.result_id,
            task_id=self._indexed.task_id,
            answer_name=self._indexed.answer_name,
            figures={name: result.get(name) for name in _SHOWN_FIGURES},
            differences=differences,
            unchecked=unchecked,
            with_overrides=self._with_overrides,
        )

    def _differences(self, result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
        yield from self._mismatched_files(result)
        root = tree_of(result)
        yield from score_differences(result)
        yield from inconsistent_leaves(root, self._text_of)
        yield from self._override_differences(result)

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
        except (RubricError, ValueError, LookupError, TypeError, AttributeError) as error:
            # The bundle is untrusted. Only the fields behind the plain scores were checked; others can have any value.
            reason = f"cannot be recomputed: {error}"
            yield ReplayDifference(where="with_overrides", recorded=stored.with_overrides, recomputed=reason)
            return
        self._with_overrides = recomputed
        if recomputed != stored.with_overrides:
            yield ReplayDifference(where="with_overrides", recorded=stored.with_overrides, recomputed=recomputed)

    def _mismatched_files(self, result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
        """Check that the stored answer, judge script and tree are those that the result names."""
        indexed = self._indexed
        judge = result.get("judge")
        script = judge.get("script_sha256") if isinstance(judge, Mapping) else None
        for name, expected, path in (
            ("answer_sha256", result.get("answer_sha256"), answer_path),
            ("judge.script_sha256", script, script_path),
        ):
            if not isinstance(expected, str) or path(expected) in self._absent:
                continue
            if f"data/{path(expected)}" not in self._bundle:
                yield ReplayDifference(where=name, recorded=expected, recomputed="not in the bundle")
                continue
            data = self._bundle.read(f"data/{path(expected)}", max_bytes=MAX_TEXT_BYTES)
            sha256 = hashlib.sha256(data).hexdigest()
            if sha256 != expected:
                yield ReplayDifference(where=name, recorded=expected, recomputed=sha256)
        breakdown = result.get("eval_breakdown")
        parts = breakdown if isinstance(breakdown, list) else []
        trees = [part.get("verification_tree") for part in parts if isinstance(part, Mapping)]
        stored_trees = read_json(self._bundle, tree_path(indexed.result_id))
        if stored_trees != trees:
            yield ReplayDifference(
                where="the tree", recorded="as in the result", recomputed=tree_path(indexed.result_id)
            )

    def _text_of(self, page_id: str) -> str | None:
        """Return the text of a page, or None if the bundle leaves it out."""
        if page_id not in self._texts:
            self._texts[page_id] = self._read_text(page_id)
        return self._texts[page_id]

    def _read_text(self, page_id: str) -> str | None:
        if not self._index.content or page_id not in self._indexed.pages or capture_path(page_id) in self._absent:
            return None
        record = read_json(self._bundle, capture_path(page_id))
        try:
            blob = record["blobs"]["text"]
            sha256, path = blob["sha256"], evidence_path(str(blob["sha256"]), str(blob["media_type"]))
        except (LookupError, TypeError):
            return ""
        if path in self._absent:
            return None
        data = self._bundle.read(f"data/{path}", max_bytes=MAX_TEXT_BYTES)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise BundleRefused(f"data/{path} does not match its hash")
        return data.decode("utf-8", "replace")


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

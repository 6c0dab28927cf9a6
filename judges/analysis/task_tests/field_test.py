"""Field test of a judge: edits every extracted value and every citation, and records which leaves change.

The judge runs on replayed extractions, and every claim is confirmed. A leaf therefore changes only because of the edit:
its check has another result, or the model would get another claim or other pages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from judges.analysis.task_tests.edits import Edit, EditKind, Edits, Field
from judges.analysis.task_tests.judge_file import JudgeFile, Recordings, ReplayClient
from judges.analysis.task_tests.leaves import ObservedLeaf, observed_run
from judges.errors import JudgeBug, JudgeError
from judges.llm.client import LLMClient

_REFUSED = (
    "The judge sends its own prompts to the model (`client.async_response` or `client.response`). The field test "
    "supports only extractions and claims: read values with `extract` and judge claims with `verify`"
)
MAX_RUNS = 1500
MAX_CONSTANT_RUNS = 120
_WRONG_RUNS = (EditKind.WRONG, EditKind.OTHER_URL)


JudgeWithClient: TypeAlias = Callable[[str, Callable[[LLMClient], LLMClient]], Awaitable[Mapping[str, Any]]]
"""Judges the text of an answer and returns the result. The second argument wraps the model client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRun:
    """Run of the judge on one edit. ``new_extractions``: number of extractions that the base run did not request.

    ``error`` is set if the judge raised; ``leaves`` are then those of the base run.
    """

    edit: Edit
    leaves: Mapping[str, ObservedLeaf]
    new_extractions: int = 0
    error: str | None = None


@dataclass(slots=True, kw_only=True)
class FieldTestRuns:
    """Observations of a field test.

    ``base`` contains the leaves of the unedited run. ``is_truncated``: not all edits were run.
    """

    answer: str
    base: Mapping[str, ObservedLeaf]
    fields: tuple[Field, ...]
    file: JudgeFile
    runs: list[EditRun] = dataclasses.field(default_factory=list)
    is_truncated: bool = False

    def of(self, field: Field, *kinds: EditKind) -> tuple[EditRun, ...]:
        return tuple(run for run in self.runs if run.edit.field is field and (not kinds or run.edit.kind in kinds))

    def wrong(self, field: Field) -> tuple[EditRun, ...]:
        return self.of(field, *_WRONG_RUNS)

    def changed(self, run: EditRun) -> frozenset[str]:
        """Return the keys of the leaves that are changed, missing or new in comparison with the base run."""
        gone_or_new = self.base.keys() ^ run.leaves.keys()
        changed = {key for key, leaf in run.leaves.items() if key in self.base and differs(self.base[key], leaf)}
        return frozenset(gone_or_new | changed)


def differs(before: ObservedLeaf, after: ObservedLeaf) -> bool:
    """Return whether the check has another result, or the model would get another request."""
    if before.claim is None and after.claim is None:
        return None not in (before.check, after.check) and before.check is not after.check
    return before.question != after.question


async def observe(
    judge: JudgeWithClient, answer: str, *, file: JudgeFile, page_text: str, replies: Mapping[str, str]
) -> FieldTestRuns:
    """Run the judge on the answer and on every edit of it.

    ``page_text`` is the text of all pages. ``replies`` are recorded extractions; the judge's client makes all others.
    """
    recordings = Recordings(replies)
    replay = ReplayClient(recordings, None)
    try:
        base = observed_run(await judge(answer, replay.using)).leaves
    except JudgeError as error:
        if not replay.has_refused:
            raise
        raise JudgeBug(f"{error}. {_REFUSED}", traceback=getattr(error, "traceback", "")) from error
    edits = Edits(answer, recordings.extracted, f"{answer}\n{page_text}")
    observed = FieldTestRuns(answer=answer, base=base, fields=edits.fields, file=file)

    async def run(edit: Edit) -> EditRun:
        replay = ReplayClient(recordings, edit.values)
        try:
            leaves = observed_run(await judge(edit.text, replay.using)).leaves
        except JudgeError as error:
            done = EditRun(edit=edit, leaves=base, error=str(error))
        else:
            done = EditRun(edit=edit, leaves=leaves, new_extractions=replay.new_extractions)
        observed.runs.append(done)
        return done

    for edit in edits.all():
        if len(observed.runs) >= MAX_RUNS:
            observed.is_truncated = True
            break
        await run(edit)
    for field in [field for field in observed.fields if compared_by_code(observed, field)]:
        for edit in edits.near(field):
            await run(edit)
    unmoved = unmoved_checks(observed)
    for number, edit in enumerate(edits.constants(file.constants)):
        if not unmoved or number >= MAX_CONSTANT_RUNS:
            break
        unmoved -= observed.changed(await run(edit))
    return observed


def unmoved_checks(observed: FieldTestRuns) -> frozenset[str]:
    """Return the leaves decided by code that no run changed."""
    moved = frozenset[str]().union(*(observed.changed(run) for run in observed.runs))
    return frozenset(key for key, leaf in observed.base.items() if leaf.claim is None and key not in moved)


def flipped(observed: FieldTestRuns, run: EditRun) -> frozenset[str]:
    """Return the checks that passed in the base run and fail in this run."""
    return frozenset(
        key
        for key, leaf in run.leaves.items()
        if leaf.claim is None and leaf.check is False and key in observed.base and observed.base[key].check is True
    )


def compared_by_code(observed: FieldTestRuns, field: Field) -> frozenset[str]:
    """Return the checks that accept the value of a field and none of the wrong values: they compare it for equality."""
    runs = observed.of(field, EditKind.WRONG)
    if len(runs) < 2:
        return frozenset()
    return frozenset.intersection(*(flipped(observed, run) for run in runs))

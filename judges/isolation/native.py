"""Run of a native judge file in a child process, from the service's side (``serving`` is the child's side)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from answers.submission import Answer
from cache.evidence import Evidence
from judges.errors import JudgeBug
from judges.extractor import Extractor
from judges.isolation.confined import Errand, run_confined
from judges.isolation.fork_server_pool import Nursery
from judges.isolation.rpc_server import REAL, Bodies, Desk, Lane
from judges.isolation.values import typed
from judges.llm.client import LLMClient
from judges.prompting.blocks import Separator
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge
from judges.settling import Progress
from judges.verifier import Verifier
from rubrics.verdict import Usage

ENTRY = "judges.isolation.serving:judge_natively"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedJudgement:
    """Result of an isolated native judge: ``judges.result.native_summary``, prompts and usage."""

    summary: Mapping[str, Any]
    prompts: tuple[str, ...]
    usage: Usage


async def judge_confined(
    judge: Judge,
    answer: Answer,
    *,
    agent: str,
    llm: LLMClient,
    model: str,
    separator: Separator,
    preparer: PagePreparer,
    evidence_for: Callable[[str], Awaitable[Evidence]],
    bodies: Bodies,
    nursery: Nursery,
    progress: Progress | None = None,
    deadline_s: float | None = None,
) -> ConfinedJudgement:
    """Run a native judge file in a child process. All its requests are handled here.

    Raises:
        JudgeBug, JudgeError: see ``run_confined``.
    """
    own = PagePreparer(separator)
    lane = Lane(
        llm=llm,
        judge=lambda name, apart: Verifier(llm, name, separator=separator, pages=own if apart else preparer),
        reader=lambda asked, name, apart: Extractor(asked, name, separator=separator, pages=own if apart else preparer),
        evidence_for=evidence_for,
    )
    errand = Errand(
        entry=ENTRY,
        judge=judge,
        answer=answer,
        agent=agent,
        model=model,
        answers=Desk({REAL: lane}, answer=answer.text, bodies=bodies).answers(),
        deadline_s=deadline_s,
        progress=progress,
    )
    result = await run_confined(nursery, errand)
    match result:
        case {"summary": dict(summary), "prompts": list(prompts), "usage": usage}:
            return ConfinedJudgement(summary=summary, prompts=tuple(map(str, prompts)), usage=typed(usage, Usage))
    raise JudgeBug(f"the judge of {judge.task!r} returned an invalid result")

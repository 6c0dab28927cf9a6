"""Run of a native judge file in a child process: the service's side. The child's side is ``judge_main``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from answers.submission import Answer
from cache.capture import Evidence
from judges.errors import JudgeBug
from judges.isolation.fork_server_pool import ForkServerPool
from judges.isolation.judge_job import JudgeJob, run_isolated
from judges.isolation.rpc_server import Bodies, RpcServer, RunServices
from judges.isolation.serialization import from_json_value
from judges.llm.client import LLMClient
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge
from judges.settling import Progress
from judges.verifier import Verifier
from rubrics.verdict import Usage

ENTRY = "judges.isolation.judge_main:run_native_judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedJudgement:
    """Result of an isolated native judge: ``judges.result.native_summary``, prompts and usage."""

    summary: Mapping[str, Any]
    prompts: tuple[str, ...]
    usage: Usage


async def judge_isolated(
    judge: Judge,
    answer: Answer,
    *,
    agent: str,
    llm: LLMClient,
    model: str,
    block_builder: BlockBuilder,
    preparer: PagePreparer,
    evidence_for: Callable[[str], Awaitable[Evidence]],
    bodies: Bodies,
    process_pool: ForkServerPool,
    progress: Progress | None = None,
    deadline_s: float | None = None,
    verifier: Callable[..., Verifier] = Verifier,
) -> IsolatedJudgement:
    """Run a native judge file in a child process. All its requests are handled here.

    Raises:
        JudgeBug, JudgeError: see ``run_isolated``.
    """
    services = RunServices(
        llm=llm,
        block_builder=block_builder,
        preparer=preparer,
        own_preparer=PagePreparer(block_builder),
        evidence_for=evidence_for,
        verifier=verifier,
    )
    judge_job = JudgeJob(
        entry=ENTRY,
        judge=judge,
        answer=answer,
        agent=agent,
        model=model,
        handlers=RpcServer(services, answer=answer.text, bodies=bodies).handlers(),
        deadline_s=deadline_s,
        progress=progress,
    )
    result = await run_isolated(process_pool, judge_job)
    match result:
        case {"summary": dict(summary), "prompts": list(prompts), "usage": usage}:
            return IsolatedJudgement(
                summary=summary, prompts=tuple(map(str, prompts)), usage=from_json_value(usage, Usage)
            )
    raise JudgeBug(f"the judge of {judge.task!r} returned an invalid result")

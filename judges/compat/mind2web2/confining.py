"""Run of a public judge script in a child process, from the service's side (``confined`` is the child's side)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from cache.capture import Capture
from judges.errors import JudgeBug
from judges.extractor import Extractor
from judges.isolation.confined import JudgeJob, run_isolated
from judges.isolation.fork_server_pool import ForkServerPool
from judges.isolation.rpc_server import REAL_RUN, SCOUTING_RUN, RpcServer, RunServices
from judges.isolation.values import to_json_value
from judges.llm.client import LLMClient
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Style
from judges.registry import Judge
from judges.settling import Progress
from mind2web2.asking import StrictVerifier
from mind2web2.hosting import EvidenceSource
from mind2web2.scouting import ScriptArguments
from mind2web2.shared_replies import SharedReplies
from mind2web2.tools_desk import ToolsRpcServer

ENTRY = "mind2web2.confined:run_script"
PRELOADED = (
    "judges.isolation.serving",
    "judges.isolation.values",
    "mind2web2.confined",
    "mind2web2.eval_runner",
    "mind2web2.prompts.cache_prompts",
    "mind2web2.utils.path_config",
)
"""Modules that the fork server imports before it forks, for public and native judge files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedScriptRun:
    """Run of one script in a child process. ``replies`` are shared by its two runs if ``ahead`` is set."""

    judge: Judge
    play: ScriptArguments
    llm: LLMClient
    replies: SharedReplies
    separator: BlockBuilder
    preparer: PagePreparer
    pages: EvidenceSource
    ahead: EvidenceSource | None

    async def run(
        self, nursery: ForkServerPool, *, logger: logging.Logger, progress: Progress | None, deadline_s: float | None
    ) -> dict[str, Any]:
        """Run the script and return its result. Raises the same errors as ``run_isolated``."""
        play = self.play
        desk = RpcServer(self._lanes(), answer=play.answer.text, bodies=play.blobs)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.replies.aclose)
            tools = ToolsRpcServer()
            stack.push_async_callback(tools.aclose)
            errand = JudgeJob(
                entry=ENTRY,
                judge=self.judge,
                answer=play.answer,
                agent=play.agent_name,
                model=play.model,
                answers={**desk.answers(), **tools.answers()},
                deadline_s=deadline_s,
                progress=progress,
                logger=logger,
                on_open=self._report_requests,
                extra_fields={
                    "captures": [to_json_value(capture, Capture) for capture in play.captures],
                    "look_ahead": self.ahead is not None,
                },
            )
            result = await run_isolated(nursery, errand)
        if not isinstance(result, dict):
            raise JudgeBug(f"the judge script of {self.judge.task!r} returned {type(result).__name__}, not a dict")
        return result

    def _report_requests(self, tell: Callable[[Any], None]) -> None:
        """Notify the child of the number of requests, which its scout needs and only the service knows."""
        if self.ahead is not None:
            self.replies.on_request = tell

    def _lanes(self) -> dict[str, RunServices]:
        if self.ahead is None:
            return {REAL_RUN: self._lane(self.llm, self.pages)}
        return {
            REAL_RUN: self._lane(self.replies.view(real=True), self.pages),
            SCOUTING_RUN: self._lane(self.replies.view(real=False), self.ahead),
        }

    def _lane(self, llm: LLMClient, pages: EvidenceSource) -> RunServices:
        own = PagePreparer(self.separator)

        def preparer(apart: bool) -> PagePreparer:
            return own if apart else self.preparer

        return RunServices(
            llm=llm,
            judge=lambda model, apart: StrictVerifier(
                llm, model, separator=self.separator, pages=preparer(apart), style=Style.COMPAT
            ),
            reader=lambda asked, model, apart: Extractor(
                asked, model, separator=self.separator, pages=preparer(apart), style=Style.COMPAT
            ),
            evidence_for=pages.evidence_for,
        )

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
from judges.isolation.confined import Errand, run_confined
from judges.isolation.fork_server_pool import Nursery
from judges.isolation.rpc_server import REAL, SCOUT, Desk, Lane
from judges.isolation.values import plain
from judges.llm.client import LLMClient
from judges.prompting.blocks import Separator
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Style
from judges.registry import Judge
from judges.settling import Progress
from mind2web2.asking import StrictVerifier
from mind2web2.hosting import EvidenceSource
from mind2web2.scouting import Play
from mind2web2.shared_replies import SharedReplies
from mind2web2.tools_desk import ToolsDesk

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
class Confinement:
    """Run of one script in a child process. ``replies`` are shared by its two runs if ``ahead`` is set."""

    judge: Judge
    play: Play
    llm: LLMClient
    replies: SharedReplies
    separator: Separator
    preparer: PagePreparer
    pages: EvidenceSource
    ahead: EvidenceSource | None

    async def run(
        self, nursery: Nursery, *, logger: logging.Logger, progress: Progress | None, deadline_s: float | None
    ) -> dict[str, Any]:
        """Run the script and return its result. Raises the same errors as ``run_confined``."""
        play = self.play
        desk = Desk(self._lanes(), answer=play.answer.text, bodies=play.blobs)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.replies.aclose)
            tools = ToolsDesk()
            stack.push_async_callback(tools.aclose)
            errand = Errand(
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
                more={
                    "captures": [plain(capture, Capture) for capture in play.captures],
                    "look_ahead": self.ahead is not None,
                },
            )
            result = await run_confined(nursery, errand)
        if not isinstance(result, dict):
            raise JudgeBug(f"the judge script of {self.judge.task!r} returned {type(result).__name__}, not a dict")
        return result

    def _report_requests(self, tell: Callable[[Any], None]) -> None:
        """Notify the child of the number of requests, which its scout needs and only the service knows."""
        if self.ahead is not None:
            self.replies.on_asking = tell

    def _lanes(self) -> dict[str, Lane]:
        if self.ahead is None:
            return {REAL: self._lane(self.llm, self.pages)}
        return {
            REAL: self._lane(self.replies.view(real=True), self.pages),
            SCOUT: self._lane(self.replies.view(real=False), self.ahead),
        }

    def _lane(self, llm: LLMClient, pages: EvidenceSource) -> Lane:
        own = PagePreparer(self.separator)

        def preparer(apart: bool) -> PagePreparer:
            return own if apart else self.preparer

        return Lane(
            llm=llm,
            judge=lambda model, apart: StrictVerifier(
                llm, model, separator=self.separator, pages=preparer(apart), style=Style.COMPAT
            ),
            reader=lambda asked, model, apart: Extractor(
                asked, model, separator=self.separator, pages=preparer(apart), style=Style.COMPAT
            ),
            evidence_for=pages.evidence_for,
        )

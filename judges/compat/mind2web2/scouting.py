"""One run of a hosted script, alone or with a scout going ahead of it."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from answers.submission import Answer
from cache.capture import Capture
from judges.errors import JudgeBug, JudgeError
from judges.judge_code import judge_code
from mind2web2.asked_once import Answers, called_off, shared
from mind2web2.hosting import Bodies, EvidenceSource, HostedCache, HostedClient
from mind2web2.look_ahead import Scout
from mind2web2.semaphores import DualSemaphore
from mind2web2.utils.load_eval_script import EvaluateAnswer

_UNBOUNDED = 1_000_000
_log = logging.getLogger(__name__)
_unheard = logging.getLogger(f"{__name__}.scout")
_unheard.addHandler(logging.NullHandler())
_unheard.propagate = False


class Replies(Protocol):
    """The replies of both runs of a script."""

    @property
    def asked(self) -> int:
        """Calls made for either run."""

    async def aclose(self) -> None:
        """Call off what is still under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What every run of a script is handed, but for its client, its pages and its logger."""

    task_id: str
    answer: Answer
    agent_name: str
    model: str
    blobs: Bodies
    captures: tuple[Capture, ...]
    outside: Answers | None
    """What the tools of the script have asked, shared by its runs; None where there is only one."""

    async def run(
        self, script: EvaluateAnswer, client: HostedClient, pages: EvidenceSource, logger: logging.Logger
    ) -> Any:
        """What the script returns.

        Raises:
            JudgeBug: it raised.
            JudgeError: it let an error of the model out.
        """
        with tempfile.TemporaryDirectory(prefix="mind2web2-") as folder:
            cache = HostedCache(Path(folder), pages=pages, blobs=self.blobs, captures=self.captures)
            with judge_code(f"the judge script of {self.task_id!r} raised"), shared(self.outside):
                return await script(
                    client=client,
                    answer=self.answer.text,
                    agent_name=self.agent_name,
                    answer_name=self.answer.name,
                    cache=cache,
                    # Model and page cache are limited where they are; this is for a script's own use.
                    semaphore=DualSemaphore(asyncio.Semaphore(_UNBOUNDED), asyncio.Semaphore(_UNBOUNDED)),
                    logger=logger,
                    model=self.model,
                )


@asynccontextmanager
async def gone_ahead(
    play: Play,
    load: Callable[[], Awaitable[EvaluateAnswer]],
    client: HostedClient,
    *,
    replies: Replies,
    scout: Scout,
    pages: EvidenceSource,
) -> AsyncIterator[None]:
    """While this is open, a scout goes ahead of the run inside, with the ``client`` of a scouting run.

    It has the script's module to itself (``load`` gives a fresh one), so the script's own state is touched once in
    the run that counts. What becomes of the scout does not matter to anybody.
    """

    async def ahead() -> None:
        try:
            await play.run(await load(), client, pages, _unheard)
        except (JudgeBug, JudgeError) as error:
            _log.debug("the scouting run of %s ended early: %s", play.task_id, error)
        finally:
            client.let_go()

    task = asyncio.create_task(ahead())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        await scout.aclose()
        await replies.aclose()
        await called_off(play.outside or {})

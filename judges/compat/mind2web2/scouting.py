"""Run of a hosted script, with an optional concurrent scouting run."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from answers.submission import Answer
from judges.errors import JudgeBug, JudgeError, LLMError
from judges.source_code import judge_code
from mind2web2.hosted_objects import Bodies, HostedCache, HostedClient, ListedPages
from mind2web2.llm_client.judge import JudgeError as PublicJudgeError
from mind2web2.llm_client.judge import answer_scope
from mind2web2.look_ahead import Scout
from mind2web2.semaphores import DualSemaphore
from mind2web2.tool_replies import ToolReplies, cancel_pending, share_replies
from mind2web2.utils.load_eval_script import EvaluateAnswer

_UNBOUNDED = 1_000_000
_log = logging.getLogger(__name__)
_silent_log = logging.getLogger(f"{__name__}.scout")
_silent_log.addHandler(logging.NullHandler())
_silent_log.propagate = False


class Replies(Protocol):
    """Model replies of both runs of a script."""

    @property
    def request_count(self) -> int:
        """Number of requests sent for either run."""

    async def aclose(self) -> None:
        """Cancel pending requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptArguments:
    """Arguments for every run of a script, except client, pages and logger."""

    task_id: str
    answer: Answer
    agent_name: str
    model: str
    blobs: Bodies
    tool_replies: ToolReplies | None
    """Requests that the script's tools have sent, shared by its runs; None if there is only one run."""

    async def run(
        self, script: EvaluateAnswer, client: HostedClient, pages: ListedPages, logger: logging.Logger
    ) -> Any:
        """Run the script and return its result.

        Raises:
            JudgeBug: it raised.
            JudgeError: it did not catch an error of the model.
        """
        with tempfile.TemporaryDirectory(prefix="mind2web2-") as folder:
            cache = HostedCache(Path(folder), pages=pages, blobs=self.blobs)
            with (
                _errors_of_the_service(),
                answer_scope(client.scope),
                judge_code(f"the judge script of {self.task_id!r} raised"),
                share_replies(self.tool_replies),
            ):
                return await script(
                    client=client,
                    answer=self.answer.text,
                    agent_name=self.agent_name,
                    answer_name=self.answer.name,
                    cache=cache,
                    # Model and page cache apply their own limits. This semaphore is for the script's own use.
                    semaphore=DualSemaphore(asyncio.Semaphore(_UNBOUNDED), asyncio.Semaphore(_UNBOUNDED)),
                    logger=logger,
                    model=self.model,
                )


@contextmanager
def _errors_of_the_service() -> Iterator[None]:
    """Replace a public ``JudgeError`` that the script did not catch by the error of the model that caused it."""
    cause: LLMError | None = None
    try:
        yield
    except PublicJudgeError as error:
        if not isinstance(error.__cause__, LLMError):
            raise
        cause = error.__cause__
    if cause is not None:
        raise cause


@asynccontextmanager
async def scouting_run(
    arguments: ScriptArguments,
    load: Callable[[], Awaitable[EvaluateAnswer]],
    client: HostedClient,
    *,
    replies: Replies,
    scout: Scout,
    pages: ListedPages,
) -> AsyncIterator[None]:
    """Run a scouting run of the script concurrently with the block, with ``client``.

    ``load`` creates a separate module for it, so that the script's module state is not shared with the real run. Errors
    of the scouting run are ignored.
    """

    async def run_ahead() -> None:
        try:
            await arguments.run(await load(), client, pages, _silent_log)
        except (JudgeBug, JudgeError) as error:
            _log.debug("the scouting run of %s ended early: %s", arguments.task_id, error)
        finally:
            client.release()

    task = asyncio.create_task(run_ahead())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        await scout.aclose()
        await replies.aclose()
        await cancel_pending(arguments.tool_replies or {})

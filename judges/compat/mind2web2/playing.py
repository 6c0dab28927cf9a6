"""A judge script played to its end, alone or with a scout ahead, wherever that is."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol

from judges.errors import JudgeBug
from judges.judge_code import judge_code
from mind2web2.hosting import EvidenceSource, HostedClient
from mind2web2.look_ahead import Scout
from mind2web2.scouting import Play, Replies, gone_ahead
from mind2web2.utils.load_eval_script import EvaluateAnswer

Load = Callable[[], Awaitable[EvaluateAnswer]]
"""Gives the script's function, out of a module that nobody else has."""


class ClientFor(Protocol):
    """Makes the client of a run: a scouting one has a ``scout``, the one that counts may be ``scouted_by`` it."""

    def __call__(self, *, scout: Scout | None = None, scouted_by: Scout | None = None) -> HostedClient: ...


async def play_out(
    play: Play,
    load: Load,
    *,
    client_for: ClientFor,
    replies: Replies,
    pages: EvidenceSource,
    ahead: EvidenceSource | None,
    logger: logging.Logger,
    deadline_s: float | None,
) -> dict[str, Any]:
    """What the script says, ready for JSON; ``ahead`` are the pages of a scouting run, None: there is none.

    Raises:
        JudgeBug: it cannot be loaded, raised (unless values it needed could not be read), returned no dict, or had made
            no tree by the deadline.
        JudgeError: the script let an error of the model out.
    """
    script = await load()
    scout = None if ahead is None else Scout(replies)
    client = client_for(scouted_by=scout)
    limit = asyncio.timeout(deadline_s)
    async with AsyncExitStack() as side_by_side:
        side_by_side.callback(client.let_go)
        if scout is not None and ahead is not None:
            going = gone_ahead(play, load, client_for(scout=scout), replies=replies, scout=scout, pages=ahead)
            await side_by_side.enter_async_context(going)
        try:
            async with limit:
                said = await play.run(script, client, pages, logger)
        except TimeoutError as error:
            if not limit.expired():
                raise
            why = f"the judge script of {play.task_id!r} did not return within {deadline_s:g} s"
            said = _cut_short(client, why, error)
        except JudgeBug as error:
            if not any(evaluator.extraction_failed for evaluator in client.evaluators):
                raise
            # It stumbled over the empty values it was given, which is no fault of its own.
            said = _cut_short(client, str(error), error)
    return _completed(checked_result(said, play.task_id))


def checked_result(said: Any, task_id: str) -> dict[str, Any]:
    """What a script returned, as plain JSON values; what JSON has no word for becomes text.

    Raises:
        JudgeBug: it is no dict, or its ``final_score`` no number.
    """
    if not isinstance(said, dict):
        raise JudgeBug(f"the judge script of {task_id!r} returned {type(said).__name__}, not a dict")
    with judge_code(f"what the judge script of {task_id!r} returned cannot be written down"):
        text = json.dumps(said, default=str, skipkeys=True, ensure_ascii=False).encode("utf-8", errors="replace")
        plain: dict[str, Any] = json.loads(text, parse_constant=str)
    score = plain.get("final_score", 0.0)
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise JudgeBug(f"the judge script of {task_id!r} returned the final_score {score!r}")
    return plain


def _cut_short(client: HostedClient, why: str, error: Exception) -> dict[str, Any]:
    """What the script's evaluator knows so far."""
    if not client.evaluators:
        raise JudgeBug(why) from error
    evaluator = client.evaluators[-1]
    evaluator.cut_short(why)
    return evaluator.get_summary()


def _completed(result: dict[str, Any]) -> dict[str, Any]:
    """A script may make its dict without our evaluator: its number is then all there is to know."""
    known = float(result.get("final_score", 0.0))
    certain = {"value": known, "low": known, "high": known}
    return {"final_score": known, "status": "complete", "score": certain, "score_strict": certain} | result

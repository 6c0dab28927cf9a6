"""Execution of a judge script, alone or with look-ahead, in any process."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol

from judges.errors import JudgeBug
from judges.source_code import judge_code
from mind2web2.breakdown import with_defaults
from mind2web2.hosted_objects import HostedClient, ListedPages
from mind2web2.look_ahead import Scout
from mind2web2.scouting import Replies, ScriptArguments, scouting_run
from mind2web2.tool_faults import ToolNotConfigured
from mind2web2.utils.load_eval_script import EvaluateAnswer

Load = Callable[[], Awaitable[EvaluateAnswer]]
"""Returns the script's function from a newly created module."""


class ClientFor(Protocol):
    """Creates the client of a run. ``scout`` is set for a scouting run, ``scouted_by`` for its real run."""

    def __call__(self, *, scout: Scout | None = None, scouted_by: Scout | None = None) -> HostedClient: ...


async def run_with_look_ahead(
    arguments: ScriptArguments,
    load: Load,
    *,
    client_for: ClientFor,
    replies: Replies,
    pages: ListedPages,
    look_ahead_pages: ListedPages | None,
    logger: logging.Logger,
    deadline_s: float | None,
) -> dict[str, Any]:
    """Run the script and return its result as JSON values. ``look_ahead_pages`` enables a scouting run.

    Raises:
        JudgeBug: the script cannot be loaded, raised (except after a fault), returned no dict, or had no
            tree at the deadline.
        JudgeError: the script did not catch an error of the model.
    """
    script = await load()
    scout = None if look_ahead_pages is None else Scout(replies)
    client = client_for(scouted_by=scout)
    limit = asyncio.timeout(deadline_s)
    async with AsyncExitStack() as stack:
        stack.callback(client.release)
        if scout is not None and look_ahead_pages is not None:
            scouting = scouting_run(
                arguments, load, client_for(scout=scout), replies=replies, scout=scout, pages=look_ahead_pages
            )
            await stack.enter_async_context(scouting)
        try:
            async with limit:
                returned = await arguments.run(script, client, pages, logger)
        except TimeoutError as error:
            if not limit.expired():
                raise
            explanation = f"the judge script of {arguments.task_id!r} did not return within {deadline_s:g} s"
            returned = _partial_summary(client, explanation, error)
        except JudgeBug as error:
            is_after_fault = any(evaluator.extraction_failed for evaluator in client.evaluators)
            if not is_after_fault or isinstance(error.__cause__, ToolNotConfigured):
                raise
            # Caused by the fault, or by empty values after it, so it is not the script's fault.
            returned = _partial_summary(client, str(error), error)
        return with_defaults(checked_result(returned, arguments.task_id), client.scope.decisions)


def checked_result(returned: Any, task_id: str) -> dict[str, Any]:
    """Return a script's result as JSON values. Unsupported values are converted with ``str``.

    Raises:
        JudgeBug: it is not a dict, or its ``final_score`` is not a number.
    """
    if not isinstance(returned, dict):
        raise JudgeBug(f"the judge script of {task_id!r} returned {type(returned).__name__}, not a dict")
    with judge_code(f"the result of the judge script of {task_id!r} cannot be written as JSON"):
        text = json.dumps(returned, default=str, skipkeys=True, ensure_ascii=False).encode("utf-8", errors="replace")
        plain: dict[str, Any] = json.loads(text, parse_constant=str, object_pairs_hook=_sharing_strings())
    score = plain.get("final_score", 0.0)
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise JudgeBug(f"the judge script of {task_id!r} returned an invalid final_score: {score!r}")
    return plain


def _sharing_strings() -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return a hook for the JSON parser, so that equal strings like "passed", a third of a result, are one object."""
    known: dict[str, str] = {}

    def as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: known.setdefault(value, value) if isinstance(value, str) else value for key, value in pairs}

    return as_object


def _partial_summary(client: HostedClient, explanation: str, error: Exception) -> dict[str, Any]:
    """Return the summary of the script's last evaluator, with open leaves not judged."""
    if not client.evaluators:
        raise JudgeBug(explanation) from error
    evaluator = client.evaluators[-1]
    evaluator.interrupt(explanation)
    return evaluator.get_summary()

"""Model client with scripted replies, and helpers to set up an evaluator and read its tree."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from mind2web2 import CacheFileSys, Evaluator
from mind2web2.eval_runner import DualSemaphore

LOGGER = logging.getLogger("tests.compat")
_CLAIM = re.compile(r"<claim [0-9a-f]+>\n(.*?)\n</claim ", re.DOTALL)
_URL = re.compile(r"<url [0-9a-f]+>\n(.*?)\n</url ", re.DOTALL)
_REQUEST = re.compile(r"<request [0-9a-f]+>\n(.*?)\n</request ", re.DOTALL)

Vote = bool | Exception | None
"""One vote: a verdict, an exception to raise, or no parsed verdict."""


class ScriptedClient:
    """Client with votes by claim or by (claim, URL), and values by the name of the extracted class.

    The votes of a claim are used in order and the last one is repeated. A claim without votes is true.
    """

    def __init__(
        self,
        votes: Mapping[str | tuple[str, str], Vote | Sequence[Vote]] | None = None,
        values: Mapping[str, BaseModel | Exception | None] | None = None,
        *,
        suspends: bool = True,
    ) -> None:
        self._votes: dict[str | tuple[str, str], list[Vote]] = {
            key: list(said) if isinstance(said, Sequence) else [said] for key, said in (votes or {}).items()
        }
        self._values = dict(values or {})
        self._suspends = suspends
        self.calls: list[dict[str, Any]] = []
        self.claims: list[str] = []

    async def async_response(self, **keywords: Any) -> Any:
        self.calls.append(keywords)
        text = text_of(keywords["messages"])
        schema = keywords["response_format"]
        if self._suspends:
            await asyncio.sleep(0)
        if schema.__name__ != "BinaryEvalResult":
            return self._extracted(schema)
        claim = claim_in(text)
        self.claims.append(claim)
        said = self._next_vote(claim, url_in(text))
        if isinstance(said, Exception):
            raise said
        return None if said is None else schema(reasoning=f"ruled {said}", result=said)

    def _next_vote(self, claim: str, url: str | None) -> Vote:
        votes = self._votes.get((claim, url or ""), self._votes.get(claim, [True]))
        return votes.pop(0) if len(votes) > 1 else votes[0]

    def _extracted(self, schema: type[BaseModel]) -> Any:
        value = self._values.get(schema.__name__, schema())
        if isinstance(value, Exception):
            raise value
        return value


def text_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return all text of the messages."""
    parts: list[str] = []
    for message in messages:
        content = message["content"]
        parts += [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
    return "\n".join(parts)


def claim_in(text: str) -> str:
    found = _CLAIM.search(text)
    assert found is not None, text
    return found[1]


def url_in(text: str) -> str | None:
    found = _URL.search(text)
    return found and found[1]


def request_in(text: str) -> str:
    found = _REQUEST.search(text)
    assert found is not None, text
    return found[1]


def initialized_evaluator(client: Any, cache: CacheFileSys | None = None, **keywords: Any) -> Evaluator:
    """Return an initialized evaluator that uses ``client``."""
    evaluator = Evaluator()
    evaluator.initialize(
        "task",
        **{
            "client": client,
            "answer": "the answer",
            "global_cache": cache,
            "global_semaphore": DualSemaphore(asyncio.Semaphore(5), asyncio.Semaphore(30)),
            "logger": LOGGER,
            **keywords,
        },
    )
    return evaluator


def nodes(summary: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the nodes of the tree in a summary, by id."""
    found: dict[str, dict[str, Any]] = {}
    pending = [summary["eval_breakdown"][0]["verification_tree"]]
    for node in pending:
        found[node["id"]] = node
        pending.extend(node["children"])
    return found


def tree(summary: Mapping[str, Any]) -> dict[str, tuple[str, float]]:
    """Return status and score of every node, by id."""
    return {id: (node["status"], node["score"]) for id, node in nodes(summary).items()}


def outcomes(summary: Mapping[str, Any]) -> dict[str, tuple[str, str | None]]:
    """Return outcome and reason of every leaf, by id."""
    return {id: (node["outcome"], node["reason"]) for id, node in nodes(summary).items() if not node["children"]}

"""Adds up what one answer's requests took, by model and role, whoever asked: the judge or helpers it made."""

from __future__ import annotations

from dataclasses import asdict
from functools import reduce
from operator import add
from typing import Any

from judges.errors import LLMError
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.roles import role_of
from rubrics.verdict import Usage


class UsageMeter:
    """A client for one answer, over one that many share: ``aclose`` closes nothing."""

    def __init__(self, inner: LLMClient) -> None:
        self._inner = inner
        self._used: dict[tuple[str, str], Usage] = {}

    @property
    def total(self) -> Usage:
        return reduce(add, self._used.values(), Usage())

    def rows(self) -> list[dict[str, Any]]:
        """As results write it: ``{model, role, calls, ...}``, sorted."""
        return [{"model": model, "role": role, **asdict(used)} for (model, role), used in sorted(self._used.items())]

    async def complete(self, request: LLMRequest) -> LLMReply:
        try:
            reply = await self._inner.complete(request)
        except LLMError as error:
            self._add(request, error.usage)
            raise
        self._add(request, reply.usage)
        return reply

    async def aclose(self) -> None:
        """The client behind belongs to somebody else."""

    def _add(self, request: LLMRequest, used: Usage) -> None:
        key = request.model, role_of(request)
        self._used[key] = self._used.get(key, Usage()) + used

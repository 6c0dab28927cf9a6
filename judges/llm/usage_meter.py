"""Usage of one answer by model and role, including the requests of helpers that its judge created."""

from __future__ import annotations

from dataclasses import asdict
from functools import reduce
from operator import add
from typing import Any

from judges.errors import LLMError
from judges.llm.client import LLMClient, LLMReply, LLMRequest, role_of
from rubrics.verdict import Usage


class UsageMeter:
    """``LLMClient`` of one answer that adds up usage. It wraps a shared client, which it does not close."""

    def __init__(self, inner: LLMClient) -> None:
        self._inner = inner
        self._used: dict[tuple[str, str], Usage] = {}

    @property
    def total(self) -> Usage:
        return reduce(add, self._used.values(), Usage())

    def rows(self) -> list[dict[str, Any]]:
        """Return one JSON row per model and role as in results, sorted: ``{model, role, calls, ...}``."""
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
        """Do nothing: the wrapped client is shared."""

    def _add(self, request: LLMRequest, used: Usage) -> None:
        key = request.model, role_of(request)
        self._used[key] = self._used.get(key, Usage()) + used

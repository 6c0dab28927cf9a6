"""Client for the models of a jury: sends each request to the client of its model."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from judges.llm.cached import CONFIGURATION_HASH_CHARS, CachedLLM
from judges.llm.client import LLMClient, LLMReply, LLMRequest


class JuryClient:
    """``LLMClient`` for the models of a jury. Each reply has the cache key that it has without a jury.

    ``clients`` are the clients by model, the first one also for all other models. They stay open.
    """

    def __init__(self, clients: Mapping[str, LLMClient]) -> None:
        self._clients = clients
        self._first = next(iter(clients.values()))

    def of(self, model: str) -> LLMClient:
        """Return the client for requests to ``model``."""
        return self._clients.get(model, self._first)

    async def complete(self, request: LLMRequest) -> LLMReply:
        return await self.of(request.model).complete(request)

    async def aclose(self) -> None:
        """Do nothing: the clients are shared."""

    def configuration_hash(self, request: LLMRequest) -> str:
        """Return a short hash of provider, address and parameters of each model. ``request`` has no messages."""
        parts = []
        for model, client in self._clients.items():
            known = client.configuration_hash(request) if isinstance(client, CachedLLM) else ""
            parts.append(f"{model} {known}")
        return sha256("\n".join(parts).encode()).hexdigest()[:CONFIGURATION_HASH_CHARS]

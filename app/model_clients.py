"""The clients of the models, by provider, as the settings have them, and what is known of each provider's mood."""

from __future__ import annotations

import asyncio
import hmac
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from app.limits import Limits
from app.settings import Settings
from judges.errors import ModelNotConfigured
from judges.llm.budget import Budget
from judges.llm.circuit import Circuit, CircuitState, not_sent
from judges.llm.client import LLMClient
from judges.llm.joined_replies import FarReplies, JoinedReplies
from judges.llm.providers import Access, make_client, parse_model
from judges.llm.refusals import refuses_everything
from judges.llm.response_cache import Replies, ReplyStore
from judges.llm.retry import RetryPolicy

if TYPE_CHECKING:
    # A run of a suite has models and no database, whose libraries take seconds to load.
    from app.storage.model_lines import ModelLines


def reply_store(settings: Settings, shared: FarReplies | None = None) -> Replies | None:
    """Where the models' replies are kept, None where they are not; ``shared``: what other workers are told, too."""
    if not settings.reply_cache_bytes:
        return None
    folder = ReplyStore(reply_folder(settings.data_dir), max_bytes=settings.reply_cache_bytes)
    return folder if shared is None else JoinedReplies(folder, shared)


def reply_folder(data_dir: Path) -> Path:
    """The models' replies in a data folder."""
    return data_dir / "replies"


class ModelClients:
    """Model clients by provider: made when first asked for, closed together."""

    def __init__(
        self,
        settings: Settings,
        limits: Limits,
        replies: Replies | None,
        *,
        policy: RetryPolicy | None = None,
        lines: ModelLines | None = None,
        secret: bytes = b"",
    ) -> None:
        """``lines``: where workers on one database tell each other of refused keys, marked with their ``secret``.
        With them the money is theirs to count, too.
        """
        self._settings = settings
        self._policy = policy
        self._limits = limits
        self._replies = replies
        self._lines = lines
        self._secret = secret
        self._budget = None if settings.budget_usd is None or lines is not None else Budget(settings.budget_usd)
        self._clients: dict[str, LLMClient] = {}
        self._opening = asyncio.Lock()
        self._circuits: dict[str, Circuit] = {}

    def client(self, model: str) -> tuple[LLMClient, str]:
        """The client for ``provider/model`` and the model's bare name.

        Raises:
            ModelNotConfigured: no such provider, or its key is missing.
        """
        name = parse_model(model)
        if name.provider not in self._clients:
            # A client serves every model of its provider: the request names the model.
            self._clients[name.provider], _ = make_client(
                model,
                semaphore=self._limits.llm,
                access=_access(self._settings),
                store=self._replies,
                policy=self._policy,
                circuit=self._circuit(name.provider),
                budget=self._budget,
            )
        return self._clients[name.provider], name.model

    async def opened(self, model: str) -> tuple[LLMClient, str]:
        """As ``client``. One that there is not yet is made off the event loop: the SDK's libraries and certificates
        take it a quarter of a second.

        Raises:
            ModelNotConfigured: no such provider, or its key is missing.
        """
        async with self._opening:
            if parse_model(model).provider not in self._clients:
                await asyncio.to_thread(self.client, model)
        return self.client(model)

    def check(self, model: str | None) -> None:
        """Refuse to begin what ``model`` (None: the settings' own) would not be asked for now.

        Raises:
            LLMRejected: an earlier request was refused for its key, account or access.
        """
        name = parse_model(model or self._settings.model)
        circuit = self._circuit(name.provider)
        refusal = circuit.refusal(name.model)
        if refusal is None or not refuses_everything(refusal):
            return
        if circuit.state(name.model) is CircuitState.REFUSED:
            raise not_sent(refusal) from refusal

    def state(self, model: str | None) -> CircuitState:
        """What is to be expected of the next request to ``model``; None: the settings' own."""
        name = parse_model(model or self._settings.model)
        try:
            self.client(str(name))
        except ModelNotConfigured:
            return CircuitState.REFUSED
        return self._circuit(name.provider).state(name.model)

    def let_one_through(self, model: str | None) -> None:
        """Somebody says that the key was mended: one request may find out."""
        name = parse_model(model or self._settings.model)
        self._circuit(name.provider).let_one_through(name.model)
        if self._lines is not None:
            self._lines.probe_wanted(name.provider)

    def _circuit(self, provider: str) -> Circuit:
        found = self._circuits.get(provider)
        if found is None:
            found = self._circuits[provider] = Circuit()
            if self._lines is not None:
                self._lines.join(f"{provider}:{_fingerprint(self._secret, provider, self._settings)}", found)
        return found

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()


def _fingerprint(secret: bytes, provider: str, settings: Settings) -> str:
    """Tells one key of a provider from another; of use to nobody without the installation's secret."""
    access = _access(settings)
    own = {
        "openai": (access.openai_api_key, access.openai_base_url),
        "azure": (access.azure_api_key, access.azure_endpoint),
        "bedrock": (access.aws_access_key, access.aws_secret_key, access.aws_region),
    }
    return hmac.new(secret, repr((provider, own.get(provider))).encode(), "sha256").hexdigest()[:32]


def _access(settings: Settings) -> Access:
    def plain(secret: SecretStr | None) -> str | None:
        return None if secret is None else secret.get_secret_value()

    optional = {"azure_api_version": settings.azure_api_version, "aws_region": settings.aws_region}
    return Access(
        openai_api_key=plain(settings.openai_api_key),
        openai_base_url=settings.openai_base_url,
        azure_api_key=plain(settings.azure_api_key),
        azure_endpoint=settings.azure_endpoint,
        aws_access_key=plain(settings.aws_access_key or settings.aws_access_key_id),
        aws_secret_key=plain(settings.aws_secret_key or settings.aws_secret_access_key),
        aws_session_token=plain(settings.aws_session_token),
        **{name: value for name, value in optional.items() if value is not None},
    )

"""The clients of the models, by provider, as the settings have them, and the health of each provider."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from app.engine.limits import Limits
from app.settings import Settings
from judges.errors import ModelNotConfigured
from judges.llm.budget import Budget, unknown_price
from judges.llm.circuit import Circuit, CircuitState, not_sent
from judges.llm.client import LLMClient
from judges.llm.joined_replies import FarReplies, JoinedReplies
from judges.llm.missing_models import ListedModel, ModelList, shutdown_of, shutdown_warning
from judges.llm.negotiation import DialectFile
from judges.llm.providers import LEXICAL, REMOTE, Access, ModelName, account_of, make_client, parse_model
from judges.llm.refusals import refuses_everything
from judges.llm.response_cache import Replies, ReplyStore
from judges.llm.retry import RetryPolicy
from judges.llm.wire import Backend

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
        lists_models: bool = True,
    ) -> None:
        """``lines``: where workers on one database tell each other of refused keys, marked with their ``secret``.
        They count the money then, too. ``lists_models``: whether servers may be asked for their list of models.
        """
        self._settings = settings
        self._policy = policy or _policy(settings)
        self._limits = limits
        self._replies = replies
        self._lines = lines
        self._secret = secret
        self._budget = None
        if lines is None and (settings.budget_usd is not None or settings.budget_tokens is not None):
            self._budget = Budget(settings.budget_usd, settings.budget_tokens)
        self._lists_models = lists_models
        self._model_lists: dict[str, ModelList] = {}
        self._clients: dict[str, LLMClient] = {}
        self._opening = asyncio.Lock()
        self._circuits: dict[str, Circuit] = {}

    def client(self, model: str) -> tuple[LLMClient, str]:
        """The client for ``provider/model`` and the model's bare name.

        Raises:
            ModelNotConfigured: no such provider, its key is missing, or a budget in USD cannot limit the model.
        """
        name = parse_model(model)
        self._check_price(name)
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
                prices=self._settings.prices,
                models=lambda backend: self._list_of(name.provider, backend),
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

    async def warnings(self, model: str | None, *, wait: bool = True) -> list[str]:
        """What a user should know of ``model`` (None: the settings' own): above all, that it is shut down soon.

        The first call requests the server's list of models. ``wait``: wait for it, at most for its deadline.
        """
        name = parse_model(model or self._settings.model)
        if name.provider == LEXICAL:
            return []
        with suppress(ModelNotConfigured):  # the price table may know the model all the same
            await self.opened(str(name))
        models = self._model_lists.get(name.provider)
        listed: Sequence[ListedModel] = ()
        if models is not None:
            listed = await models.listed() if wait else models.latest()
        vendor = REMOTE[name.provider].vendor
        warning = shutdown_warning(str(name), shutdown_of(name.model, listed, self._settings.prices, vendor=vendor))
        return [] if warning is None else [warning]

    def model_list(self, provider: str) -> ModelList | None:
        """The models that the server of a provider lists; None before its client was made."""
        return self._model_lists.get(provider)

    def _list_of(self, provider: str, backend: Backend) -> ModelList:
        found = self._model_lists[provider] = ModelList(backend if self._lists_models else None)
        return found

    def _check_price(self, name: ModelName) -> None:
        """Refuse a model whose cost is unknown where only a budget in USD could limit it."""
        settings = self._settings
        is_limited = settings.budget_usd is not None and settings.budget_tokens is None
        if is_limited and settings.prices.of(name.model) is None:
            raise ModelNotConfigured(unknown_price(str(name)))

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
    """Identifies one account at a provider; useless without the installation's secret."""
    account = account_of(provider, _access(settings))
    return hmac.new(secret, repr((provider, account)).encode(), "sha256").hexdigest()[:32]


def _policy(settings: Settings) -> RetryPolicy:
    limit = settings.llm_timeout_s
    return RetryPolicy() if limit is None else RetryPolicy(total_s=limit, long_total_s=limit)


def _access(settings: Settings) -> Access:
    def plain(secret: SecretStr | None) -> str | None:
        return None if secret is None else secret.get_secret_value()

    optional = {"azure_api_version": settings.azure_api_version, "aws_region": settings.aws_region}
    return Access(
        images=settings.images,
        dialects=DialectFile(settings.data_dir / "dialects.json"),
        openai_api_key=plain(settings.openai_api_key),
        openai_base_url=settings.openai_base_url,
        azure_api_key=plain(settings.azure_api_key),
        azure_endpoint=settings.azure_endpoint,
        aws_access_key=plain(settings.aws_access_key or settings.aws_access_key_id),
        aws_secret_key=plain(settings.aws_secret_key or settings.aws_secret_access_key),
        aws_session_token=plain(settings.aws_session_token),
        **{name: value for name, value in optional.items() if value is not None},
    )

"""Model clients by provider, created from the settings, with a circuit breaker per provider.

There is one semaphore per limited resource. Each adapter holds its semaphore only during its external call. Answers
share the slots for page captures fairly, see ``cache.pacing``. If workers share a limit, the slot of this process is
acquired before the shared one, so deadlocks are impossible.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr

from app.settings import Settings
from cache.pacing import FairLimit
from judges.errors import LLMError, LLMRejected, ModelNotConfigured
from judges.llm.cached import CachedLLM, FolderReplyCache, JuryClient, ReplyCache
from judges.llm.circuit import CircuitBreaker, CircuitState, not_sent_error
from judges.llm.client import LLMClient, LLMRequest
from judges.llm.learned_formats import FormatFile
from judges.llm.models import ListedModel, ModelList, shutdown_of, shutdown_warning
from judges.llm.observed import rejects_all_requests
from judges.llm.pricing import ProcessBudget, unknown_price_message
from judges.llm.provider_adapter import Access, ProviderAdapter
from judges.llm.providers import LEXICAL, REMOTE_PROVIDERS, ModelName, account_identity, make_client, parse_judge
from judges.llm.retry import Retrier, RetryPolicy

if TYPE_CHECKING:
    # A suite run uses models but no database, and the database libraries take seconds to import.
    from app.storage.provider_status import SharedProviderStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Semaphores of this process. ``answers()`` creates one per task."""

    tasks: asyncio.Semaphore
    pages: FairLimit
    llm: AbstractAsyncContextManager[Any]
    max_answers: int

    @classmethod
    def from_settings(cls, settings: Settings, *, shared_llm: AbstractAsyncContextManager[Any] | None = None) -> Limits:
        """Create the limits. ``shared_llm`` is the model request limit that all workers share, if any."""
        llm = asyncio.Semaphore(settings.max_llm)
        return cls(
            tasks=asyncio.Semaphore(settings.max_tasks),
            pages=FairLimit(settings.max_pages, per_host=settings.max_pages_per_host),
            llm=llm if shared_llm is None else CombinedLimit(llm, shared_llm),
            max_answers=settings.max_answers,
        )

    def answers(self) -> asyncio.Semaphore:
        """Create a semaphore for the answers of one task."""
        return asyncio.Semaphore(self.max_answers)


class CombinedLimit:
    """Reentrant context manager that acquires a slot of the first limit, then one of the second."""

    def __init__(self, first: AbstractAsyncContextManager[Any], second: AbstractAsyncContextManager[Any]) -> None:
        self._first = first
        self._second = second

    async def __aenter__(self) -> None:
        await self._first.__aenter__()
        try:
            await self._second.__aenter__()
        except BaseException:  # cancellation too must release the first
            await self._first.__aexit__(None, None, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._second.__aexit__(kind, error, trace)
        finally:
            await self._first.__aexit__(kind, error, trace)


_SMALL_MESSAGES: Final = ({"role": "user", "content": "Reply with the word yes."},)
_LEAST_FAVOURABLE: Final = (CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.UNTRIED, CircuitState.CLOSED)


def folder_reply_cache(settings: Settings) -> FolderReplyCache | None:
    """Return the reply cache of this machine; None if it is disabled."""
    if not settings.reply_cache_bytes:
        return None
    return FolderReplyCache(reply_folder(settings.data_dir), max_bytes=settings.reply_cache_bytes)


def reply_folder(data_dir: Path) -> Path:
    """Return the folder of the reply cache in a data folder."""
    return data_dir / "replies"


class ModelClients:
    """Model clients by provider. They are created on first use and closed together."""

    def __init__(
        self,
        settings: Settings,
        limits: Limits,
        replies: ReplyCache | None,
        *,
        policy: RetryPolicy | None = None,
        provider_status: SharedProviderStatus | None = None,
        secret: bytes = b"",
        lists_models: bool = True,
    ) -> None:
        """Initialize without creating any client.

        Args:
            policy: Retry policy (default: from the settings).
            provider_status: Status that the workers on one database share. The database then also counts the budget.
            secret: Key of the hash that identifies an account in ``provider_status``.
            lists_models: Whether the model list of a server may be requested.
        """
        self._settings = settings
        self._policy = policy or _policy(settings)
        self._limits = limits
        self._replies = replies
        self._provider_status = provider_status
        self._secret = secret
        self._budget = None
        if provider_status is None and (settings.budget_usd is not None or settings.budget_tokens is not None):
            self._budget = ProcessBudget(settings.budget_usd, settings.budget_tokens, usd_option=settings.budget_option)
        self._lists_models = lists_models
        self._model_lists: dict[str, ModelList] = {}
        self._clients: dict[str, LLMClient] = {}
        self._open_lock = asyncio.Lock()
        self._circuits: dict[str, CircuitBreaker] = {}

    def client(self, model: str) -> tuple[LLMClient, str]:
        """Return the client for ``provider/model`` or a jury, and its name without providers.

        Raises:
            ModelNotConfigured: The provider is unknown, its key is missing, or the price of the model is unknown and
                there is only a budget in USD.
        """
        judge = parse_judge(model)
        if judge.is_jury:
            return JuryClient({one.model: self.client(str(one))[0] for one in judge.members}), judge.model
        name = judge.first
        self._check_price(name)
        if name.provider not in self._clients:
            # One client serves all models of a provider, because the request names the model.
            self._clients[name.provider], _ = make_client(
                model,
                Retrier(self._policy, self._limits.llm),
                access=_access(self._settings),
                store=self._replies,
                circuit=self._circuit(name.provider),
                budget=self._budget,
                prices=self._settings.prices,
                models=lambda backend: self._list_of(name.provider, backend),
            )
        return self._clients[name.provider], name.model

    async def open_client(self, model: str) -> tuple[LLMClient, str]:
        """Return the same as ``client``, but create a new client in a thread.

        Importing the SDK and loading certificates takes about 0.25 s.

        Raises:
            ModelNotConfigured: See ``client``.
        """
        async with self._open_lock:
            if any(member.provider not in self._clients for member in parse_judge(model).members):
                await asyncio.to_thread(self.client, model)
        return self.client(model)

    async def warnings(self, model: str | None, *, wait: bool = True) -> list[str]:
        """Return warnings about ``model`` (None: that of the settings), for example about a scheduled shutdown.

        The first call requests the model list of the server. ``wait``: wait for the list until its deadline.
        """
        members = parse_judge(model or self._settings.model).members
        if len(members) > 1:
            return [warning for one in members for warning in await self.warnings(str(one), wait=wait)]
        [name] = members
        if name.provider == LEXICAL:
            return []
        with suppress(ModelNotConfigured):  # the price table may still contain the model
            await self.open_client(str(name))
        models = self._model_lists.get(name.provider)
        listed: Sequence[ListedModel] = ()
        if models is not None:
            listed = await models.listed() if wait else models.latest()
        vendor = REMOTE_PROVIDERS[name.provider].vendor
        warning = shutdown_warning(str(name), shutdown_of(name.model, listed, self._settings.prices, vendor=vendor))
        return [] if warning is None else [warning]

    def model_list(self, provider: str) -> ModelList | None:
        """Return the model list of a provider's server; None if its client was not created yet."""
        return self._model_lists.get(provider)

    def _list_of(self, provider: str, backend: ProviderAdapter) -> ModelList:
        models = self._model_lists[provider] = ModelList(backend if self._lists_models else None)
        return models

    def _check_price(self, name: ModelName) -> None:
        """Reject a model with unknown price if the only budget is in USD."""
        settings = self._settings
        is_limited = settings.budget_usd is not None and settings.budget_tokens is None
        if is_limited and settings.prices.of(name.model) is None:
            raise ModelNotConfigured(unknown_price_message(str(name)))

    def check(self, model: str | None) -> None:
        """Check that requests to ``model`` (None: that of the settings) are possible.

        Raises:
            LLMRejected: The circuit breaker is open, because an earlier request was rejected for its key, account or
                access.
        """
        for name in parse_judge(model or self._settings.model).members:
            circuit = self._circuit(name.provider)
            rejection = circuit.rejection(name.model)
            if rejection is None or not rejects_all_requests(rejection):
                continue
            if circuit.state(name.model) is CircuitState.OPEN:
                raise not_sent_error(rejection) from rejection

    async def check_key(self, model: str) -> None:
        """Check that requests to ``model`` are possible, before pages are captured for them.

        If no request was accepted yet and the server does not accept the key for its list of models, which is free,
        one small request decides: some keys may be used for requests only. The client of the model must be open.

        Raises:
            LLMRejected: The server rejects the key, now or earlier.
        """
        self.check(model)
        for name in parse_judge(model).members:
            models, client = self._model_lists.get(name.provider), self._clients.get(name.provider)
            untried = self._circuit(name.provider).state(name.model) is CircuitState.UNTRIED
            if models is None or not untried or not isinstance(client, CachedLLM):
                continue
            await models.listed()
            if models.is_rejected:
                try:
                    await client.remote.complete(LLMRequest(model=name.model, messages=_SMALL_MESSAGES))
                except LLMError as error:
                    if isinstance(error, LLMRejected) and rejects_all_requests(error):
                        raise

    def state(self, model: str | None) -> CircuitState:
        """Return the state of the circuit breaker for ``model`` (None: that of the settings).

        That of a jury is the least favourable one of its members.
        """
        judge = parse_judge(model or self._settings.model)
        try:
            self.client(str(judge))
        except ModelNotConfigured:
            return CircuitState.OPEN
        states = [self._circuit(name.provider).state(name.model) for name in judge.members]
        return min(states, key=_LEAST_FAVOURABLE.index)

    def allow_probe(self, model: str | None) -> None:
        """Allow one probe request to ``model``, after an operator fixed its key or account."""
        for name in parse_judge(model or self._settings.model).members:
            self._circuit(name.provider).allow_probe(name.model)
            if self._provider_status is not None:
                self._provider_status.request_probe(name.provider)

    def _circuit(self, provider: str) -> CircuitBreaker:
        circuit = self._circuits.get(provider)
        if circuit is None:
            circuit = self._circuits[provider] = CircuitBreaker()
            if self._provider_status is not None:
                self._provider_status.register(
                    f"{provider}:{_fingerprint(self._secret, provider, self._settings)}", circuit
                )
        return circuit

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()


def _fingerprint(secret: bytes, provider: str, settings: Settings) -> str:
    """Return a fingerprint of the account at a provider. The secret prevents guessing the key from it."""
    account = account_identity(provider, _access(settings))
    return hmac.new(secret, repr((provider, account)).encode(), "sha256").hexdigest()[:32]


def _policy(settings: Settings) -> RetryPolicy:
    limit = settings.llm_timeout_s
    return RetryPolicy() if limit is None else RetryPolicy(total_s=limit, long_total_s=limit)


def _access(settings: Settings) -> Access:
    def secret_value(secret: SecretStr | None) -> str | None:
        return None if secret is None else secret.get_secret_value()

    optional: dict[str, Any] = {"azure_api_version": settings.azure_api_version, "aws_region": settings.aws_region}
    return Access(
        images=settings.images,
        format_file=FormatFile(settings.data_dir / "dialects.json"),
        openai_api_key=secret_value(settings.openai_api_key),
        openai_base_url=settings.openai_base_url,
        azure_api_key=secret_value(settings.azure_api_key),
        azure_endpoint=settings.azure_endpoint,
        aws_access_key=secret_value(settings.aws_access_key or settings.aws_access_key_id),
        aws_secret_key=secret_value(settings.aws_secret_key or settings.aws_secret_access_key),
        aws_session_token=secret_value(settings.aws_session_token),
        **{name: value for name, value in optional.items() if value is not None},
    )

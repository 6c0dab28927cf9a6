"""Models: families with the parameters that each accepts, and unknown or retired models.

Requests to a model without a family contain no parameters, because the provider's defaults are always valid.

Providers agree neither on the status nor on the code of the error for an unknown model, so it is detected by code and
wording. Other names are suggested from the provider's model list.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from judges.errors import LLMError, LLMRejected
from judges.llm.pricing import Prices

log = logging.getLogger(__name__)

DEFAULT_MODEL: Final = "gpt-6-luna"
"""Default judge model, without its provider."""
DEFAULT_EFFORT: Final = "max"
"""Reasoning effort of the default model. Other models get an effort only if the user sets one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Models whose name matches ``pattern`` from its start, and their parameters.

    The name is compared in lower case, without provider and vendor. ``is_reasoning``: the model generates
    reasoning tokens before its reply, which count as output.
    """

    name: str
    pattern: str
    params: Mapping[str, Any] = field(default_factory=dict)
    is_reasoning: bool = False


_DETERMINISTIC: Mapping[str, Any] = {"temperature": 0.0}
_CLAUDE = r"(\w+\.)*(anthropic\.)?claude"

FAMILIES: tuple[Family, ...] = (
    Family(
        name="openai-default",
        pattern=re.escape(DEFAULT_MODEL) + r"(-\d|$)",
        params={"reasoning_effort": DEFAULT_EFFORT},
        is_reasoning=True,
    ),
    Family(name="openai-reasoning", pattern=r"o[1-9](-|$)", is_reasoning=True),
    Family(name="openai-gpt-5-chat", pattern=r"gpt-5(\.\d+)?-chat", params=_DETERMINISTIC),
    Family(name="openai-gpt-5", pattern=r"gpt-[5-9]|gpt-oss", is_reasoning=True),
    Family(name="openai-search", pattern=r"gpt-4o(-mini)?-search"),
    Family(name="openai-chat", pattern=r"gpt-4|gpt-3\.5|chatgpt", params=_DETERMINISTIC),
    Family(name="claude-4", pattern=_CLAUDE + r"-([123]|\w+-4(-[0-6])?(-\d{8}|-v\d|@|$))", params=_DETERMINISTIC),
    Family(name="claude", pattern=_CLAUDE, is_reasoning=True),
    Family(name="gemini-2", pattern=r"gemini-[12]|gemma", params=_DETERMINISTIC),
    Family(name="gemini", pattern=r"gemini", is_reasoning=True),
    Family(name="llama", pattern=r"(meta-)?llama|codellama", params=_DETERMINISTIC),
    Family(name="qwen-reasoning", pattern=r"qwq|qwen3.*thinking", is_reasoning=True),
    Family(name="qwen", pattern=r"qwen", params=_DETERMINISTIC),
    Family(name="mistral-reasoning", pattern=r"magistral", is_reasoning=True),
    Family(name="mistral", pattern=r"(open-)?mi[sx]tral|ministral|pixtral", params=_DETERMINISTIC),
    Family(name="deepseek-reasoning", pattern=r"deepseek-(r1|reasoner)", is_reasoning=True),
    Family(name="deepseek", pattern=r"deepseek", params=_DETERMINISTIC),
)
"""The first matching row applies."""


@lru_cache(maxsize=256)
def family_of(model: str) -> Family | None:
    """Return the family of a model, or None. A vendor before the name (``meta-llama/Llama-3``) is ignored.

    >>> [family.name if family else None for family in map(family_of, ("o3", "gpt-4o", "my-model"))]
    ['openai-reasoning', 'openai-chat', None]
    """
    model_name = model.rsplit("/", 1)[-1].lower()
    return next((family for family in FAMILIES if re.match(family.pattern, model_name)), None)


def params_for(model: str) -> Mapping[str, Any]:
    """Return the parameters to send with every request to ``model``; empty if its family is unknown."""
    family = family_of(model)
    return {} if family is None else family.params


def is_reasoning_model(model: str) -> bool:
    """Return whether ``model`` is known to generate reasoning tokens before its reply."""
    family = family_of(model)
    return family is not None and family.is_reasoning


LIST_DEADLINE_S: Final = 5.0
LIST_AGE_S: Final = 6 * 3600.0
WARNING_DAYS: Final = 60
"""Days before the shutdown of a model from which a warning is shown."""
_MAX_LISTED: Final = 5_000
_MAX_SUGGESTIONS: Final = 3

_CODES: Final = frozenset(
    {
        "model_not_found",
        "modelnotfound",
        "model_not_found_error",
        "model_deprecated",
        "model_decommissioned",
        "model_retired",
        "model_not_available",
        "invalid_model",
        "unknown_model",
        "deploymentnotfound",
    }
)
_NAME = r"[`'\"]?[\w./:@+-]{1,200}[`'\"]?"
_WORDING: Final = re.compile(
    rf"\bmodels?\b.{{0,160}}?\b(?:does not exist|not exist|not found|could not be found|"
    rf"(?:has|have) been (?:deprecated|decommissioned|retired|removed|discontinued|shut ?down)|"
    rf"(?:is|was) (?:deprecated|decommissioned|retired|discontinued|shut ?down)|"
    rf"is no longer (?:available|supported|accessible)|is not available for this api key)"
    rf"|\b(?:invalid|unknown|no such) model\b(?! (?:parameter|output|response|input))"
    rf"|\bmodel not exist\b"
    rf"|{_NAME} is not a valid model\b"
    rf"|\bno endpoints found for\b"
    rf"|\bdeployment\b.{{0,80}}?\bdoes not exist\b"
    rf"|\bmodel identifier is invalid\b"
    rf"|\bmodel version has reached the end of its life\b",
    re.IGNORECASE | re.DOTALL,
)
_BY_WORDING: Final = frozenset({400, 403, 410, 422})
_NOT_FOUND: Final = 404


def is_missing_model_error(status: int, code: str, message: str) -> bool:
    """Return whether an error for a chat request means that the model is unknown or retired.

    Every 404 does: the model or the endpoint is missing, so every request of the run would fail.

    >>> is_missing_model_error(400, "", "The model `o4-mini` has been deprecated")
    True
    >>> is_missing_model_error(400, "", "Unsupported parameter: 'temperature' is not supported with this model.")
    False
    """
    if status == _NOT_FOUND or code.lower() in _CODES:
        return True
    return status in _BY_WORDING and _WORDING.search(message) is not None


@dataclass(frozen=True, slots=True)
class ListedModel:
    """Listed model, with its shutdown date if the server gives one."""

    name: str
    shutdown: date | None = None


class ModelList:
    """Model list of a server, requested at most every ``LIST_AGE_S`` and with a deadline.

    The list is empty if the server has none or does not respond in time. ``is_rejected``: the server did not accept the
    key the last time.
    """

    def __init__(self, backend: Any, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._request = getattr(backend, "models", None)
        self._provider: str = getattr(backend, "provider", "")
        self._clock = clock
        self._found: tuple[ListedModel, ...] = ()
        self.is_rejected = False
        self._asked_at: float | None = None
        self._asking: asyncio.Task[None] | None = None

    def latest(self) -> tuple[ListedModel, ...]:
        """Return the last list, and request a new one in the background if it is due."""
        is_due = self._asked_at is None or self._clock() - self._asked_at > LIST_AGE_S
        if self._request is not None and self._asking is None and is_due:
            self._asked_at = self._clock()
            self._asking = asyncio.create_task(self._ask(), name="list of models")
        return self._found

    async def listed(self) -> tuple[ListedModel, ...]:
        """Return the list. If it is not recent, wait for a new one up to the deadline."""
        self.latest()
        if self._asking is not None:
            await asyncio.wait({self._asking})
        return self._found

    async def aclose(self) -> None:
        """Cancel a request in flight."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(LIST_DEADLINE_S):
                self._found = read_models(await self._request())  # type: ignore[misc]
            self.is_rejected = False
        except (OSError, ValueError, RecursionError, LLMError) as error:
            self.is_rejected = isinstance(error, LLMRejected)
            log.debug("models not listed", extra={"provider": self._provider, "error": type(error).__name__})
        finally:
            self._asking = None


def read_models(body: str) -> tuple[ListedModel, ...]:
    """Parse the body of a model list. Invalid entries are left out.

    Raises:
        ValueError: the body is not JSON.
    """
    listing = json.loads(body)
    entries = listing.get("data") if isinstance(listing, Mapping) else None
    models = []
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), str) and entry["id"]:
            models.append(ListedModel(entry["id"][:200], _day(entry.get("shutdown_date"))))
    return tuple(models[:_MAX_LISTED])


def shutdown_of(model: str, listed: Sequence[ListedModel], prices: Prices, *, vendor: str | None) -> date | None:
    """Return the shutdown date of a model from its server's list, else from the price table if ``vendor`` matches."""
    from_server = next((one.shutdown for one in listed if one.name == model and one.shutdown is not None), None)
    price = prices.of(model)
    known = price.shutdown if price is not None and price.vendor in (vendor, "") else None
    return from_server or known


def shutdown_warning(model: str, shutdown: date | None, *, today: date | None = None) -> str | None:
    """Return the warning about a model that shuts down soon or was shut down; None if neither applies.

    >>> shutdown_warning("gpt-4o", date(2027, 1, 14), today=date(2026, 11, 22))
    'gpt-4o shuts down on 2027-01-14 (in 53 days): choose another model with ASSAY_MODEL or --model'
    """
    today = today or datetime.now(UTC).date()
    if shutdown is None or shutdown - today > timedelta(days=WARNING_DAYS):
        return None
    remedy = "choose another model with ASSAY_MODEL or --model"
    if shutdown <= today:
        return f"{model} was shut down on {shutdown}: {remedy}"
    days = (shutdown - today).days
    return f"{model} shuts down on {shutdown} (in {days} day{'s' if days != 1 else ''}): {remedy}"


def suggestions(
    model: str, listed: Sequence[ListedModel], prices: Prices, *, today: date | None = None
) -> tuple[str, ...]:
    """Return similar model names, best first: listed by the server, or else with a price; never retired ones.

    >>> suggestions("gpt6-luna", (), Prices())[0]
    'gpt-6-luna'
    """
    today = today or datetime.now(UTC).date()
    available = set(prices.names(on=today))
    if listed:
        retired = {
            name for name, price in prices.all().items() if price.shutdown is not None and price.shutdown <= today
        }
        available = {
            one.name
            for one in listed
            if one.name.lower() not in retired and (one.shutdown is None or one.shutdown > today)
        }
    by_spelling = {name.lower(): name for name in sorted(available) if name != model}
    close = difflib.get_close_matches(model.lower(), by_spelling, n=_MAX_SUGGESTIONS, cutoff=0.7)
    return tuple(by_spelling[name] for name in close)


def missing_model_message(provider_message: str, model: str, listed: Sequence[ListedModel], prices: Prices) -> str:
    """Return the error message for an unknown model: the provider's message, then the fix."""
    today = datetime.now(UTC).date()
    price = prices.of(model)
    listed_shutdown = next((one.shutdown for one in listed if one.name == model), None)
    shutdown = listed_shutdown or (None if price is None else price.shutdown)
    close = suggestions(model, listed, prices, today=today)
    remedy = f"{model} is not available from this provider"
    if shutdown is not None and shutdown <= today:
        remedy = f"{model} was shut down on {shutdown}"
    elif any(one.name == model for one in listed):
        remedy = f"{model} is in the provider's list, but not available with this key"
    if close:
        remedy += f"; did you mean {' or '.join(close)}?"
    choices = {one.name for one in listed}
    example = DEFAULT_MODEL if not choices or DEFAULT_MODEL in choices else min(choices)
    fix = f"Set ASSAY_MODEL or --model (for example {example}), and check the provider's address"
    return f"{provider_message} ({remedy}. {fix})" if not close else f"{provider_message} ({remedy} {fix})"


def _day(value: Any) -> date | None:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        return None

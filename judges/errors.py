"""Exceptions raised while judging, and messages for packages of extras that are not installed.

None of these is ever a verdict. The code that settles a leaf turns them into ``not_judged`` with
:attr:`JudgeError.reason`. The hierarchy::

    JudgeError
    ├── LLMError                  a model request failed or was not sent
    │   ├── LLMUnavailable        transient fault after all retries
    │   │   └── LLMTimeout        no reply in time
    │   ├── LLMRejected           permanent error: wrong key, no access, unknown model, bad request
    │   │   ├── LLMQuotaExhausted the account's quota or credit is used up
    │   │   └── LLMCircuitOpen    not sent because of an earlier permanent error
    │   ├── LLMOutputUnusable     truncated, refused, filtered, empty, malformed or off-schema (``kind``)
    │   └── LLMBudgetExceeded     the spending limit of this run is reached
    ├── ExtractionFailed          no values could be extracted from the answer or a page
    ├── ModelNotConfigured        no client for this model name or key
    ├── PromptDamaged             a shipped prompt file does not match its front matter
    ├── IsolationFailed           the process of a task file could not be started; not a fault of the file
    └── JudgeBug                  the task file itself failed; carries its traceback
        ├── JudgeNotLoadable      it cannot be imported, or lacks its function
        └── ScriptStopped         it exceeded a resource or time limit and was killed

The packages of extras are large, and most users do not need them. They are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final, Self

from rubrics.verdict import Reason, Usage


class JudgeError(Exception):
    """Base class of the exceptions of this package."""

    reason: Reason | None = None
    """Reason for a leaf that is not judged because of this error; None if the error never concerns a leaf."""


class LLMError(JudgeError):
    """No usable reply from a model.

    Attributes:
        usage: Cost of the failed attempts.
        unusable: The replies that could not be used.
        shorter_page: Set if the request was sent again with less of its page; ``unusable`` then belongs to that
            request.
        retried: Faults that were retried.
        key: Key of the request; empty if the client has no keys.
    """

    reason = Reason.LLM_UNAVAILABLE
    # Not sent to the process of a task file.
    unusable: tuple[UnusableReply, ...] = ()
    shorter_page: ShorterPage | None = None
    retried: tuple[str, ...] = ()
    key: str = ""
    tokens: Mapping[str, Any] = MappingProxyType({})
    """Token counts of an unusable reply, as in ``LLMReply.tokens``."""
    request_format: Any = None
    """Request format (a ``judges.llm.request_formats.RequestFormat``), if the provider has several."""

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()

    def unpaid(self) -> Self:
        """Return a copy without usage, for a caller that joined the request of another caller."""
        copied = type(self).__new__(type(self), *self.args)
        copied.__dict__.update(self.__dict__, usage=Usage(), unusable=(), retried=())
        return copied


class LLMUnavailable(LLMError):
    """Connection error, or HTTP 408, 409, 429 or 5xx.

    Attributes:
        status: HTTP status; None without a response.
        retry_after_s: Delay that the provider asked for.
        should_retry: False if the provider said that a retry cannot succeed (header ``x-should-retry``).
        was_sent: The provider may charge for the request: it was sent, and only the reply is missing.
    """

    should_retry = True
    was_sent = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message, usage=usage)
        self.status = status
        self.retry_after_s = retry_after_s


class LLMTimeout(LLMUnavailable):
    """No reply within the time limit of one attempt, or of all attempts."""

    reason = Reason.TIMEOUT


class RejectionScope(StrEnum):
    """Range of requests that a provider's refusal applies to."""

    ENDPOINT = "endpoint"
    """All requests to this endpoint, for example because of the key or the account."""
    MODEL = "model"
    """All requests for this model: no access, unknown model, unsupported parameter."""
    REQUEST = "request"
    """This request only: too long, unsupported schema."""


class LLMRejected(LLMError):
    """Permanent error of the provider: a retry cannot succeed.

    Attributes:
        too_long: A shorter request may be accepted.
        no_such_model: The provider does not know the model, or has retired it.
    """

    reason = Reason.LLM_REJECTED

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        scope: RejectionScope = RejectionScope.REQUEST,
        usage: Usage | None = None,
        too_long: bool = False,
        no_such_model: bool = False,
    ) -> None:
        super().__init__(message, usage=usage)
        self.status = status
        self.scope = scope
        self.too_long = too_long
        self.no_such_model = no_such_model


class LLMQuotaExhausted(LLMRejected):
    """The account's quota or credit is used up, according to the provider."""


class LLMCircuitOpen(LLMRejected):
    """Not sent because the circuit breaker is open after an earlier permanent error of this provider."""


class LLMProviderPaused(LLMCircuitOpen):
    """Not sent because the operator paused this provider."""

    def __init__(self, message: str) -> None:
        super().__init__(message, scope=RejectionScope.ENDPOINT)


class UnusableKind(StrEnum):
    """Reason that a reply cannot be used."""

    TRUNCATED = "truncated"
    REFUSED = "refused"
    FILTERED = "filtered"
    EMPTY = "empty"
    MALFORMED = "malformed"
    OFF_SCHEMA = "off_schema"
    CUT_QUOTE = "quotes_must_be_whole_sentences_with_every_negation"
    """Its quotes leave out a negation of their sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableReply:
    """Reply that could not be used.

    Attributes:
        detail: The provider's explanation of a reply without text.
        usage: Cost of the reply.
        then: Messages added to the request when it was sent again.
        request_format: Request format, as in ``LLMReply.request_format``.
    """

    kind: UnusableKind
    text: str
    detail: str
    model: str
    usage: Usage
    then: tuple[Mapping[str, Any], ...] = ()
    request_format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShorterPage:
    """Record of a request that was rejected as too long and sent again with less of its page.

    Attributes:
        refusal: Message of the provider.
        page_chars: Number of characters of the page that were kept, from its beginning. Together with the request, this
            determines the shorter request (see ``judges.llm.remote``).
        unusable: Unusable replies to the full request, before it was rejected.
        text: Reply to the shorter request that does not count because the rest of the page was not shown.
        model: Model that sent ``text``.
        request_format: Format of the rejected request.
    """

    refusal: str
    page_chars: int
    unusable: tuple[UnusableReply, ...] = ()
    text: str | None = None
    model: str = ""
    request_format: str = ""


class LLMOutputUnusable(LLMError):
    """The model replied twice, and neither reply can be parsed."""

    reason = Reason.LLM_OUTPUT_UNUSABLE

    def __init__(self, kind: UnusableKind, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message, usage=usage)
        self.kind = kind


class LLMBudgetExceeded(LLMError):
    """The run has reached its spending limit."""

    reason = Reason.BUDGET


class ExtractionFailed(JudgeError):
    """No values could be extracted from the answer or page. ``cause_reason`` is the underlying reason."""

    reason = Reason.EXTRACTION_FAILED

    def __init__(self, message: str, *, cause_reason: Reason | None = None, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.cause_reason = cause_reason
        self.usage = usage or Usage()


class ModelNotConfigured(JudgeError):
    """No client can be created from this model name with the given keys. The message says how to fix it."""


class PromptDamaged(JudgeError):
    """A prompt file is missing, has invalid front matter, or was given the wrong variables."""


class JudgeBug(JudgeError):
    """The task file raised, or declared a rubric that cannot be settled. ``traceback`` is for the file's author."""

    def __init__(self, message: str, *, traceback: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback


class JudgeNotLoadable(JudgeBug):
    """The task file cannot be imported or does not define a judge."""

    names_lines = False
    """Whether the message names the file and its lines."""


class ScriptStopped(JudgeBug):
    """The process of a task file was killed because it exceeded ``limit``: "time" or the name of another limit."""

    def __init__(self, message: str, *, limit: str, traceback: str = "") -> None:
        super().__init__(message, traceback=traceback)
        self.limit = limit


class IsolationFailed(JudgeError):
    """The process of a task file could not be started, or the service's side of it failed."""


class ReplyNotCached(Exception):
    """No cached reply exists for a request that must be answered from the cache. Neither a fault nor a verdict."""


EXTRAS: Final = {
    "anthropic": "bedrock",
    "numpy": "statistics",
    "pyarrow": "suites",
    "scipy": "statistics",
}
"""Extra of each optional package, by import name."""


def installed(extra: str) -> bool:
    """Return whether all packages of an extra are installed. Imports none of them."""
    return all(find_spec(package) is not None for package, owner in EXTRAS.items() if owner == extra)


def advice(extra: str) -> str:
    """Return how to install an extra."""
    return f"install the extra {extra!r}: `make setup-all` in a checkout, or pip install 'assay[{extra}]'"


def missing_extra(error: BaseException) -> str | None:
    """Return the message for a failed import of an optional package; None for any other error.

    >>> missing_extra(ModuleNotFoundError(name="scipy.special"))[:35]
    'The package scipy is not installed:'
    """
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    extra = EXTRAS.get(package)
    return None if extra is None else f"The package {package} is not installed: {advice(extra)}"

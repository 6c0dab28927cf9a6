"""What can keep a judge from speaking.

None of these is ever a verdict: whoever settles a leaf turns them into ``not_judged`` with
:attr:`JudgeError.reason`. The hierarchy::

    JudgeError
    ├── LLMError                  the model was asked, or should have been
    │   ├── LLMUnavailable        transient fault that outlasted every try
    │   │   └── LLMTimeout        the reply did not come within the time allowed
    │   ├── LLMRejected           refused for good: wrong key, no access, unknown model, bad request
    │   │   ├── LLMQuotaExhausted the account has no money left
    │   │   └── LLMCircuitOpen    not even asked, because an earlier request was refused for good
    │   ├── LLMOutputUnusable     truncated, refused, filtered, empty, malformed, off-schema (``kind``)
    │   └── LLMBudgetExceeded     the spending limit of this run is reached
    ├── ExtractionFailed          values could not be read out of the answer or a page
    ├── ModelNotConfigured        a model name or a key that cannot lead to a client
    ├── PromptDamaged             a shipped prompt file is not what its front matter says
    ├── IsolationFailed           no process could be made for a judge file; no fault of the file
    └── JudgeBug                  the judge file itself failed; carries its traceback
        ├── JudgeNotLoadable      it does not import, or lacks its function
        └── ScriptStopped         it went beyond a limit, or took too long, and was ended
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from rubrics.verdict import Reason, Usage


class JudgeError(Exception):
    """Base of everything this package raises on purpose."""

    reason: Reason | None = None
    """Why a leaf that met this error is not judged; None where no leaf can be concerned."""


class LLMError(JudgeError):
    """A model gave no usable reply. ``usage`` is what was paid on the way there, ``unusable`` what it said there.

    ``shorter_page`` is set if it was asked once more with less of the page; ``unusable`` is then of that request.
    ``retried`` are the faults after which the same was sent again. ``key`` is the key of the request, empty if the
    client has no keys.
    """

    reason = Reason.LLM_UNAVAILABLE
    # These stay in the service's process: they are not sent to the process of a judge file.
    unusable: tuple[UnusableReply, ...] = ()
    shorter_page: ShorterPage | None = None
    retried: tuple[str, ...] = ()
    key: str = ""
    form: Any = None
    """How the request was sent (a ``judges.llm.dialects.Dialect``), if the provider knows several forms."""

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()

    def unpaid(self) -> Self:
        """A copy for a caller that joined the request of another caller, who pays for it."""
        copied = type(self).__new__(type(self), *self.args)
        copied.__dict__.update(self.__dict__, usage=Usage(), unusable=(), retried=())
        return copied


class LLMUnavailable(LLMError):
    """A connection error, 408, 409, 429 or 5xx.

    ``status`` is the HTTP status or None where there was no reply, ``retry_after_s`` what the provider
    asked us to wait, ``tries`` how many attempts were made before giving up.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        tries: int = 1,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message, usage=usage)
        self.status = status
        self.retry_after_s = retry_after_s
        self.tries = tries


class LLMTimeout(LLMUnavailable):
    """No reply within the time allowed for one attempt, or for all of them."""

    reason = Reason.TIMEOUT


class RejectionScope(StrEnum):
    """What a provider's refusal says about further requests."""

    ENDPOINT = "endpoint"
    """Every request to this endpoint would be refused: the key, the account."""
    MODEL = "model"
    """Every request for this model would be: no access to it, no such model, a parameter it does not take."""
    REQUEST = "request"
    """Only this request: too long, a schema the provider does not take."""


class LLMRejected(LLMError):
    """Permanent error of the provider: a retry cannot succeed.

    ``too_long``: a shorter request may be accepted. ``no_such_model``: the model is unknown there, or was retired.
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
    """The provider says the account's quota or credit is used up."""


class LLMCircuitOpen(LLMRejected):
    """Not sent: an earlier request to this provider was refused for good, and nothing was mended since."""


class LLMProviderPaused(LLMCircuitOpen):
    """Not sent: the operator wants this provider left alone for a while."""

    def __init__(self, message: str) -> None:
        super().__init__(message, scope=RejectionScope.ENDPOINT)


class UnusableKind(StrEnum):
    """In which way a reply could not be used."""

    TRUNCATED = "truncated"
    REFUSED = "refused"
    FILTERED = "filtered"
    EMPTY = "empty"
    MALFORMED = "malformed"
    OFF_SCHEMA = "off_schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableReply:
    """A reply that could not be used. ``detail`` is what the provider says of one without text, ``usage`` what it took,
    ``then`` the messages that were added to the request when it was sent again. ``form`` is how the request was sent,
    as ``LLMReply.form`` has it.
    """

    kind: UnusableKind
    text: str
    detail: str
    model: str
    usage: Usage
    then: tuple[Mapping[str, Any], ...] = ()
    form: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShorterPage:
    """That a request was refused for its length and sent again with less of its page.

    ``refusal`` is the provider's message and ``form`` how that request was sent. ``page_chars`` is how much of the
    page was left, from its beginning: with the request it determines what was sent then (``judges.llm.shrinking``).
    ``unusable`` are the replies to the whole request before it was refused. ``text`` is a reply by ``model`` to the
    shorter request that does not count, because the rest of the page was not seen.
    """

    refusal: str
    page_chars: int
    unusable: tuple[UnusableReply, ...] = ()
    text: str | None = None
    model: str = ""
    form: str = ""


class LLMOutputUnusable(LLMError):
    """The model replied, twice, and neither reply can be read as what was asked for."""

    reason = Reason.LLM_OUTPUT_UNUSABLE

    def __init__(self, kind: UnusableKind, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message, usage=usage)
        self.kind = kind


class LLMBudgetExceeded(LLMError):
    """The run has spent what it may spend."""

    reason = Reason.BUDGET


class ExtractionFailed(JudgeError):
    """Nothing could be read out of the answer or page. ``cause_reason`` is what lay behind it."""

    reason = Reason.EXTRACTION_FAILED

    def __init__(self, message: str, *, cause_reason: Reason | None = None, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.cause_reason = cause_reason
        self.usage = usage or Usage()


class ModelNotConfigured(JudgeError):
    """No client can be made from this model name with the keys given. The message names the remedy."""


class PromptDamaged(JudgeError):
    """A prompt file is missing, has no readable front matter, or was given the wrong variables."""


class JudgeBug(JudgeError):
    """The judge file raised, or described a tree that cannot be settled. ``traceback`` is text for its author."""

    def __init__(self, message: str, *, traceback: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback


class JudgeNotLoadable(JudgeBug):
    """The judge file cannot be imported or does not define what a judge file must define."""


class ScriptStopped(JudgeBug):
    """The judge file's process was ended for what it took. ``limit`` names it: "time" or another of its limits."""

    def __init__(self, message: str, *, limit: str, traceback: str = "") -> None:
        super().__init__(message, traceback=traceback)
        self.limit = limit


class IsolationFailed(JudgeError):
    """A process of its own could not be made for a judge file, or our side of it broke."""


class NotKept(Exception):
    """No reply to a question is kept that was to be answered by kept replies only. No fault, and never a verdict."""

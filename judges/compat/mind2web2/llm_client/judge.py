"""Judge of a run, its errors and the record of its requests, under the public toolkit's names.

::

    RuntimeError
    └── JudgeError                permanent error of the judge: the answer has no result
        ├── JudgeContentError     the judge gave no verdict on this content: one failed vote or an empty extraction
        │   └── ContextLengthError    the request was too long for the model
        └── HarnessError          tokenizer, browser or page cache cannot be used: there is no result for the answer

Every error is also a ``judges.errors.JudgeError``, so that none of them passes for a bug of the script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from judges import errors
from judges.llm.models import DEFAULT_EFFORT, DEFAULT_MODEL
from mind2web2.decisions import Decisions
from rubrics.verdict import Reason

__all__ = [
    "DEFAULT_JUDGE_MODEL",
    "DEFAULT_JUDGE_REASONING_EFFORT",
    "AnswerScope",
    "ContextLengthError",
    "HarnessError",
    "JudgeConfig",
    "JudgeContentError",
    "JudgeError",
    "JudgeUsage",
    "answer_scope",
    "current_scope",
]

DEFAULT_JUDGE_MODEL: Final = DEFAULT_MODEL
DEFAULT_JUDGE_REASONING_EFFORT: Final = DEFAULT_EFFORT


class JudgeError(RuntimeError, errors.JudgeError):
    """Permanent error of the judge: wrong key, unknown model, invalid request, quota, budget, outage.

    An answer has no result after this error, even if the script swallows it.
    """

    reason: Reason | None = Reason.LLM_UNAVAILABLE


class JudgeContentError(JudgeError):
    """The judge gave no verdict on this content: refusal, content filter, truncated or unstructured reply.

    It costs one vote, or empties one extraction. The answer is scored.
    """

    reason = Reason.LLM_OUTPUT_UNUSABLE


class ContextLengthError(JudgeContentError):
    """The request was longer than the model accepts."""

    reason = Reason.LLM_REJECTED


class HarnessError(JudgeError):
    """Tokenizer, browser or page cache cannot be used, so nothing can be judged."""

    reason = Reason.CAPTURE_FAILED


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """Judge model with its parameters. They replace those of every request of a client.

    Args:
        model: Model name as sent to the provider.
        reasoning_effort: None: the default effort for the default model; not sent for other models.
        temperature: None: not sent.
    """

    model: str
    reasoning_effort: str | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        if self.reasoning_effort is None and self.model == DEFAULT_JUDGE_MODEL:
            object.__setattr__(self, "reasoning_effort", DEFAULT_JUDGE_REASONING_EFFORT)

    def request_params(self) -> dict[str, Any]:
        """Return the arguments of a request: the model, and effort and temperature if they are set.

        >>> JudgeConfig("gpt-4.1", temperature=0.0).request_params()
        {'model': 'gpt-4.1', 'temperature': 0.0}
        """
        return {name: value for name, value in self.describe().items() if value is not None}

    def describe(self) -> dict[str, Any]:
        """Return model, reasoning effort and temperature as in results; None: not sent."""
        return asdict(self)


@dataclass(slots=True)
class JudgeUsage:
    """Record of judge requests: of a client, or of one answer.

    ``requests`` includes the ``failed_requests``, which ended with an error after all retries. ``input_tokens``
    includes the cached ones, ``output_tokens`` the reasoning ones. ``served_models`` counts the replies by the model
    that the provider names. ``rejections`` are the content errors: ``check`` is a node, an extraction or a claim.
    ``harness_failures`` are the messages of harness errors.
    """

    requests: int = 0
    failed_requests: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    served_models: dict[str, int] = field(default_factory=dict)
    rejections: list[dict[str, Any]] = field(default_factory=list)
    harness_failures: list[str] = field(default_factory=list)

    def add_request(self, tokens: Mapping[str, Any], *, failed: bool = False) -> None:
        """Count a request with ``tokens`` as returned for ``count_token``."""
        self.requests += 1
        self.failed_requests += failed
        for name in ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"):
            setattr(self, name, getattr(self, name) + (tokens.get(name) or 0))
        served = tokens.get("served_model")
        if served:
            self.served_models[served] = self.served_models.get(served, 0) + 1

    def add_rejection(self, check: str, url: str | None, reason: str) -> None:
        """Record a content error. ``url`` is the page that was shown, None for the answer alone."""
        self.rejections.append({"check": check, "url": url, "reason": reason})

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON value of ``judge_usage`` in results."""
        return asdict(self)


@dataclass(slots=True)
class AnswerScope:
    """Requests of one answer: their usage, and the error after which nothing more is asked for it.

    ``decisions`` are those of all evaluators, extractors and verifiers of the script.
    """

    usage: JudgeUsage = field(default_factory=JudgeUsage)
    failure: JudgeError | None = None
    decisions: Decisions = field(default_factory=Decisions)

    @contextmanager
    def count_request(self) -> Iterator[None]:
        """Count the block as one request, unless a client of this package sends it and counts it with its tokens."""
        counted: list[None] = []
        token = _counted.set(counted)
        try:
            yield
        except errors.JudgeError:
            if not counted:
                self.usage.add_request({}, failed=True)
            raise
        else:
            if not counted:
                self.usage.add_request({})
        finally:
            _counted.reset(token)

    def add_request(self, tokens: Mapping[str, Any], *, failed: bool = False) -> None:
        """Count a request that a client of this package has sent. Arguments as for ``JudgeUsage.add_request``."""
        self.usage.add_request(tokens, failed=failed)
        counted = _counted.get()
        if counted is not None:
            counted.append(None)

    def record(self, error: BaseException) -> None:
        """Remember the first error after which the answer has no result. Other errors do not count."""
        if self.failure is not None or not isinstance(error, JudgeError) or isinstance(error, JudgeContentError):
            return
        self.failure = error
        self.lose(str(error), error.reason or Reason.EXTRACTION_FAILED)
        if isinstance(error, HarnessError):
            self.usage.harness_failures.append(str(error))

    def lose_request(self, error: BaseException) -> None:
        """Record that a request of the script has no reply. A request of an evaluator has its own consequences."""
        if _counted.get() is not None:
            return
        if isinstance(error, asyncio.CancelledError):
            self.decisions.record_cancelled("a request of the script")
        else:
            self.lose(f"a request of the script has no reply: {error}", Reason.EXTRACTION_FAILED)

    def lose(self, explanation: str, reason: Reason) -> None:
        """Record that the script goes on without a reply, a verdict or a page, or after a fault of a tool.

        What it then decides says nothing about the answer.
        """
        self.decisions.record_failed_extraction(explanation, reason)

    def check(self) -> None:
        """Raise the remembered error, if there is one. Call it before each request and after the script.

        Raises:
            JudgeError: the answer can have no result.
        """
        if self.failure is not None:
            raise self.failure


_scope: ContextVar[AnswerScope | None] = ContextVar("mind2web2_answer_scope", default=None)
_counted: ContextVar[list[None] | None] = ContextVar("mind2web2_counted_requests", default=None)
"""Requests that clients of this package have counted inside ``AnswerScope.count_request``."""


@contextmanager
def answer_scope(scope: AnswerScope | None = None) -> Iterator[AnswerScope]:
    """Record the requests inside the block, and in tasks and threads started there, as those of one answer."""
    scope = scope or AnswerScope()
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


def current_scope(default: AnswerScope | None = None) -> AnswerScope:
    """Return the scope of the answer that is being judged. Outside of ``answer_scope``: ``default``, or a new one."""
    return _scope.get() or default or AnswerScope()

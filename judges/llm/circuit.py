"""One wrong key costs one call: after a refusal for good, no further request is sent until something is mended.

The first request to an endpoint goes ahead of the others by a moment, so that thirty requests that start
together do not all learn the same thing. An open circuit closes by ``reset`` (a new key was set) or when, once in
a while, a single request is let through and is not refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum

from judges.errors import LLMCircuitOpen, LLMError, LLMRejected, RejectionScope


class CircuitState(StrEnum):
    """What is to be expected of the next request."""

    UNTRIED = "untried"
    """Nothing was answered yet, and nothing refused."""
    ANSWERING = "answering"
    REFUSED = "refused"
    """It would not be sent."""
    PROBE_DUE = "probe_due"
    """Refused, and one request may find out whether it still is."""


@dataclass(slots=True)
class _Line:
    """What is known about one model of the endpoint, or (``None`` in the map) about the endpoint itself."""

    refusal: LLMRejected | None = None
    refused_at: float = 0.0
    proven: bool = False
    probe_wanted: bool = False
    probing: asyncio.Event | None = field(default=None, repr=False)


class Circuit:
    """The state of one provider endpoint, shared by every client that uses the same key.

    ``probe_wait_s``: how long the others wait for the very first reply. ``probe_after_s``: after how long an open
    circuit lets one request through to see whether it was mended; None: only ``reset`` closes it.
    """

    def __init__(
        self,
        *,
        probe_wait_s: float = 0.5,
        probe_after_s: float | None = 60.0,
        asked_probe_after_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probe_wait_s = probe_wait_s
        self._probe_after_s = probe_after_s
        self._asked_probe_after_s = asked_probe_after_s
        self._clock = clock
        self._endpoint = _Line()
        self._models: dict[str, _Line] = {}

    def refusal(self, model: str) -> LLMRejected | None:
        """Why requests for ``model`` are not sent at the moment; None while they are."""
        return self._endpoint.refusal or self._line(model).refusal

    def state(self, model: str) -> CircuitState:
        """What would become of a request for ``model``; books nothing."""
        line = self._line(model)
        closed = [each for each in (self._endpoint, line) if each.refusal is not None]
        if closed:
            due = all(self._is_due(each) for each in closed)
            return CircuitState.PROBE_DUE if due else CircuitState.REFUSED
        return CircuitState.ANSWERING if line.proven else CircuitState.UNTRIED

    def let_one_through(self, model: str) -> None:
        """Somebody says that it was mended: the next request for ``model`` may find out. Not more often than every
        ``asked_probe_after_s``, or a hundred such words would cost a hundred calls.
        """
        for line in (self._endpoint, self._line(model)):
            if line.refusal is not None and self._clock() - line.refused_at >= self._asked_probe_after_s:
                line.probe_wanted = True

    def reset(self) -> None:
        """Forget every refusal: a key, a model name or an account was mended."""
        self._endpoint = _Line()
        self._models.clear()

    async def ready(self, model: str) -> None:
        """Wait, a moment at most, while another request finds out whether ``model`` can be used at all."""
        line = self._line(model)
        if not line.proven and line.probing is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(line.probing.wait(), self._probe_wait_s)

    @asynccontextmanager
    async def attempt(self, model: str) -> AsyncIterator[None]:
        """One attempt inside; what it raises decides whether the circuit opens.

        Raises:
            LLMCircuitOpen: nothing may be sent now.
        """
        self._check(model)
        started = self._clock()
        line = self._line(model)
        probe = None
        if not line.proven and line.probing is None:
            probe = line.probing = asyncio.Event()
        try:
            yield
        except LLMRejected as error:
            self._refused(model, error, started)
            raise
        except LLMError:
            self._answered(model, started)
            raise
        else:
            self._answered(model, started)
        finally:
            if probe is not None:
                probe.set()
                line.probing = None

    def _check(self, model: str) -> None:
        for line in (self._endpoint, self._line(model)):
            if line.refusal is None or self._may_probe(line):
                continue
            raise not_sent(line.refusal) from line.refusal

    def _may_probe(self, line: _Line) -> bool:
        """Whether it is time for one request to find out if the refusal still holds; books the turn."""
        if not self._is_due(line):
            return False
        line.refused_at, line.probe_wanted = self._clock(), False
        return True

    def _is_due(self, line: _Line) -> bool:
        if line.probe_wanted:
            return True
        return self._probe_after_s is not None and self._clock() - line.refused_at >= self._probe_after_s

    def _refused(self, model: str, error: LLMRejected, started: float) -> None:
        if error.scope is RejectionScope.REQUEST:
            self._answered(model, started)
            return
        line = self._endpoint if error.scope is RejectionScope.ENDPOINT else self._line(model)
        line.refusal, line.refused_at, line.probe_wanted = error, self._clock(), False

    def _answered(self, model: str, started: float) -> None:
        """An answer to what was sent after a refusal shows that it was mended; an older one shows nothing."""
        line = self._line(model)
        line.proven = True
        for each in (self._endpoint, line):
            if each.refused_at <= started:
                each.refusal = None

    def _line(self, model: str) -> _Line:
        return self._models.setdefault(model, _Line())


def not_sent(refusal: LLMRejected) -> LLMCircuitOpen:
    """The error for a request that an earlier ``refusal`` keeps back."""
    return LLMCircuitOpen(
        f"not sent, since an earlier request was refused: {refusal}", status=refusal.status, scope=refusal.scope
    )

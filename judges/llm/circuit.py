"""One wrong key costs one call: after a refusal for good, no further request is sent until something is mended.

The first request to an endpoint goes ahead of the others by a moment, so that thirty requests that start
together do not all learn the same thing. An open circuit closes by ``reset`` (a new key was set) or when, once in
a while, a single request is let through and is not refused. Processes that use one key tell each other by a ``Board``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from judges.errors import LLMCircuitOpen, LLMError, LLMProviderPaused, LLMRejected, RejectionScope


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


class Board(Protocol):
    """Where processes that use the same key leave word for each other. ``model`` None: the endpoint as a whole.

    Nothing here raises: a process that cannot reach the others goes by what it knows itself.
    """

    async def ask_first(self, model: str) -> None:
        """Before this process's first request for ``model``: return when no other is just about to find out.

        What the others found out meanwhile has then been told to the circuit.
        """

    async def may_probe(self, model: str | None, *, after_s: float) -> bool:
        """Whether it falls to this process to see if a refusal still holds; not more often than every ``after_s``."""

    def refused(self, model: str | None, refusal: LLMRejected) -> None: ...

    def answered(self, model: str) -> None: ...


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
        board: Board | None = None,
    ) -> None:
        self._probe_wait_s = probe_wait_s
        self._probe_after_s = probe_after_s
        self._asked_probe_after_s = asked_probe_after_s
        self._clock = clock
        self.board = board
        self._endpoint = _Line()
        self._models: dict[str, _Line] = {}
        self._held: LLMProviderPaused | None = None

    def refusal(self, model: str) -> LLMRejected | None:
        """Why requests for ``model`` are not sent at the moment; None while they are."""
        return self._held or self._endpoint.refusal or self._line(model).refusal

    def state(self, model: str) -> CircuitState:
        """What would become of a request for ``model``; books nothing."""
        if self._held is not None:
            return CircuitState.REFUSED
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

    def learn_refused(self, model: str | None, refusal: LLMRejected, *, age_s: float, probe_wanted: bool) -> None:
        """Another process was refused ``age_s`` ago; ``probe_wanted``: somebody says that it was mended since."""
        line = self._endpoint if model is None else self._line(model)
        if line.refusal is None:
            line.refusal, line.refused_at = refusal, self._clock() - age_s
        line.probe_wanted = probe_wanted

    def learn_answered(self, model: str | None, *, age_s: float) -> None:
        """Another process was answered ``age_s`` ago; of refusals since then that says nothing."""
        line = self._endpoint if model is None else self._line(model)
        if line.refusal is not None and line.refused_at <= self._clock() - age_s:
            line.refusal, line.probe_wanted = None, False

    def hold(self, why: str | None) -> None:
        """Send nothing from now on, whatever is known of the provider; None: as before. What is under way goes on."""
        self._held = None if why is None else LLMProviderPaused(why)

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
        await self._check(model)
        line = self._line(model)
        probe = None
        if not line.proven and line.probing is None:
            probe = line.probing = asyncio.Event()
        started = self._clock()
        try:
            if probe is not None and self.board is not None and self.refusal(model) is None:
                await self.board.ask_first(model)
                await self._check(model)
                started = self._clock()
            yield
        except LLMCircuitOpen:
            raise
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

    async def _check(self, model: str) -> None:
        if self._held is not None:
            raise not_sent(self._held)
        for name, line in ((None, self._endpoint), (model, self._line(model))):
            refusal = line.refusal
            if refusal is None or await self._may_probe(name, line):
                continue
            raise not_sent(refusal) from refusal

    async def _may_probe(self, name: str | None, line: _Line) -> bool:
        """Whether it is time for one request to find out if the refusal still holds; books the turn."""
        if not self._is_due(line):
            return False
        after_s = self._asked_probe_after_s if line.probe_wanted else self._probe_after_s or 0.0
        line.refused_at, line.probe_wanted = self._clock(), False
        return self.board is None or await self.board.may_probe(name, after_s=after_s)

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
        if self.board is not None:
            self.board.refused(None if line is self._endpoint else model, error)

    def _answered(self, model: str, started: float) -> None:
        """An answer to what was sent after a refusal shows that it was mended; an older one shows nothing."""
        line = self._line(model)
        news = not line.proven
        line.proven = True
        for each in (self._endpoint, line):
            if each.refusal is not None and each.refused_at <= started:
                each.refusal = None
                news = True
        if news and self.board is not None:
            self.board.answered(model)

    def _line(self, model: str) -> _Line:
        return self._models.setdefault(model, _Line())


def not_sent(refusal: LLMRejected) -> LLMCircuitOpen:
    """The error for a request that an earlier ``refusal``, or the operator, keeps back."""
    if isinstance(refusal, LLMProviderPaused):
        return LLMProviderPaused(str(refusal))
    return LLMCircuitOpen(
        f"not sent, since an earlier request was refused: {refusal}",
        status=refusal.status,
        scope=refusal.scope,
        no_such_model=refusal.no_such_model,
    )

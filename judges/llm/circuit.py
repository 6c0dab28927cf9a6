"""Circuit breaker for one model provider: stops sending after a permanent error (authentication, quota, no such model).

The first request to an endpoint is sent shortly before concurrent ones, so that a wrong key costs one call and not
thirty. An open circuit closes when a single probe request, allowed from time to time, is not rejected. Processes that
use the same key share their status through a ``ProviderStatusStore``.
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

ASKED_PROBE_AFTER_S = 5.0


class CircuitState(StrEnum):
    """State of the circuit for one model."""

    UNTRIED = "untried"
    """No request has succeeded or been rejected yet."""
    CLOSED = "closed"
    OPEN = "open"
    """Requests are not sent."""
    HALF_OPEN = "half_open"
    """One probe request may be sent."""


@dataclass(slots=True)
class _Status:
    """Status of the endpoint, or of one of its models."""

    rejection: LLMRejected | None = None
    rejected_at: float = 0.0
    proven: bool = False
    probe_wanted: bool = False
    probing: asyncio.Event | None = field(default=None, repr=False)
    probed_at: float = 0.0
    """Start of the first request, in seconds of the event loop."""


class ProviderStatusStore(Protocol):
    """Provider status shared by processes that use the same key. ``model`` None: the whole endpoint.

    No method raises. A process that cannot reach the shared status uses its own.
    """

    async def wait_for_first_request(self, model: str) -> None:
        """Wait before this process's first request for ``model`` while another process sends its first request.

        On return, the circuit has the status that the other process found.
        """

    async def may_probe(self, model: str | None, *, after_s: float) -> bool:
        """Return whether this process may send the probe request. At most one process may, every ``after_s``."""

    def report_rejection(self, model: str | None, rejection: LLMRejected) -> None: ...

    def report_success(self, model: str) -> None: ...


class CircuitBreaker:
    """Circuit breaker of one provider endpoint, shared by all clients that use the same key.

    ``probe_wait_s``: time after the start of the first request for which other requests wait for its reply. Servers
    reject a key before the model runs. ``probe_after_s`` is the time after which an open circuit allows one probe
    request; None: only one that ``allow_probe`` requested.
    """

    def __init__(
        self,
        *,
        probe_wait_s: float = 0.3,
        probe_after_s: float | None = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probe_wait_s = probe_wait_s
        self._probe_after_s = probe_after_s
        self._clock = clock
        self.status_store: ProviderStatusStore | None = None
        self._endpoint = _Status()
        self._models: dict[str, _Status] = {}
        self._paused: LLMProviderPaused | None = None

    def rejection(self, model: str) -> LLMRejected | None:
        """Return the error that opened the circuit for ``model``; None if the circuit is closed."""
        return self._paused or self._endpoint.rejection or self._status_of(model).rejection

    def state(self, model: str) -> CircuitState:
        """Return the state for ``model`` without claiming a probe."""
        if self._paused is not None:
            return CircuitState.OPEN
        status = self._status_of(model)
        opened = [each for each in (self._endpoint, status) if each.rejection is not None]
        if opened:
            due = all(self._is_due(each) for each in opened)
            return CircuitState.HALF_OPEN if due else CircuitState.OPEN
        return CircuitState.CLOSED if status.proven else CircuitState.UNTRIED

    def allow_probe(self, model: str) -> None:
        """Allow one half-open probe for ``model``, because a user reports that the problem is fixed.

        Probes are at least ``ASKED_PROBE_AFTER_S`` apart, so that a hundred reports do not cost a hundred calls.
        """
        for status in (self._endpoint, self._status_of(model)):
            if status.rejection is not None and self._clock() - status.rejected_at >= ASKED_PROBE_AFTER_S:
                status.probe_wanted = True

    def apply_rejection(self, model: str | None, rejection: LLMRejected, *, age_s: float, probe_wanted: bool) -> None:
        """Apply the rejection that another process received ``age_s`` ago.

        ``probe_wanted``: a user has since reported that the problem is fixed.
        """
        status = self._endpoint if model is None else self._status_of(model)
        if status.rejection is None:
            status.rejection, status.rejected_at = rejection, self._clock() - age_s
        status.probe_wanted = probe_wanted

    def apply_success(self, model: str | None, *, age_s: float) -> None:
        """Apply the success of another process ``age_s`` ago. It does not clear a later rejection."""
        status = self._endpoint if model is None else self._status_of(model)
        if status.rejection is not None and status.rejected_at <= self._clock() - age_s:
            status.rejection, status.probe_wanted = None, False

    def set_pause(self, reason: str | None) -> None:
        """Pause sending, whatever the provider status is; None resumes. Requests in flight are not cancelled."""
        self._paused = None if reason is None else LLMProviderPaused(reason)

    async def wait_for_first_request(self, model: str) -> None:
        """Wait for the first request for ``model`` if it is in flight, until ``probe_wait_s`` after its start."""
        status = self._status_of(model)
        if not status.proven and status.probing is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(status.probed_at + self._probe_wait_s):
                    await status.probing.wait()

    @asynccontextmanager
    async def attempt(self, model: str) -> AsyncIterator[None]:
        """Run one attempt inside this context. The error that it raises decides whether the circuit opens.

        Raises:
            LLMCircuitOpen: the circuit is open.
        """
        await self._check(model)
        status = self._status_of(model)
        probe = None
        if not status.proven and status.probing is None:
            probe = status.probing = asyncio.Event()
            status.probed_at = asyncio.get_running_loop().time()
        started = self._clock()
        try:
            if probe is not None and self.status_store is not None and self.rejection(model) is None:
                await self.status_store.wait_for_first_request(model)
                await self._check(model)
                started = self._clock()
            yield
        except LLMCircuitOpen:
            raise
        except LLMRejected as error:
            self._record_rejection(model, error, started)
            raise
        except LLMError:
            self._record_success(model, started)
            raise
        else:
            self._record_success(model, started)
        finally:
            if probe is not None:
                probe.set()
                status.probing = None

    async def _check(self, model: str) -> None:
        if self._paused is not None:
            raise not_sent_error(self._paused)
        for name, status in ((None, self._endpoint), (model, self._status_of(model))):
            rejection = status.rejection
            if rejection is None or await self._may_probe(name, status):
                continue
            raise not_sent_error(rejection) from rejection

    async def _may_probe(self, name: str | None, status: _Status) -> bool:
        """Return whether a probe is due, and claim it."""
        if not self._is_due(status):
            return False
        after_s = ASKED_PROBE_AFTER_S if status.probe_wanted else self._probe_after_s or 0.0
        status.rejected_at, status.probe_wanted = self._clock(), False
        return self.status_store is None or await self.status_store.may_probe(name, after_s=after_s)

    def _is_due(self, status: _Status) -> bool:
        if status.probe_wanted:
            return True
        return self._probe_after_s is not None and self._clock() - status.rejected_at >= self._probe_after_s

    def _record_rejection(self, model: str, error: LLMRejected, started: float) -> None:
        if error.scope is RejectionScope.REQUEST:
            self._record_success(model, started)
            return
        status = self._endpoint if error.scope is RejectionScope.ENDPOINT else self._status_of(model)
        status.rejection, status.rejected_at, status.probe_wanted = error, self._clock(), False
        if self.status_store is not None:
            self.status_store.report_rejection(None if status is self._endpoint else model, error)

    def _record_success(self, model: str, started: float) -> None:
        """Record a success. It clears a rejection only if the request was sent after the rejection."""
        status = self._status_of(model)
        changed = not status.proven
        status.proven = True
        for each in (self._endpoint, status):
            if each.rejection is not None and each.rejected_at <= started:
                each.rejection = None
                changed = True
        if changed and self.status_store is not None:
            self.status_store.report_success(model)

    def _status_of(self, model: str) -> _Status:
        return self._models.setdefault(model, _Status())


def not_sent_error(rejection: LLMRejected) -> LLMCircuitOpen:
    """Return the error for a request that is not sent because of an earlier rejection or a pause by the operator."""
    if isinstance(rejection, LLMProviderPaused):
        return LLMProviderPaused(str(rejection))
    return LLMCircuitOpen(
        f"not sent, because an earlier request was rejected: {rejection}",
        status=rejection.status,
        scope=rejection.scope,
        no_such_model=rejection.no_such_model,
    )

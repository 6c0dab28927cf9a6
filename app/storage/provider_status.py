"""Provider status that all workers share: circuit breaker state per API key and model.

A row per key (and per model of a key) stores whether the provider accepts or rejects requests, and the time of the last
probe. A wrong key therefore costs one request, regardless of the number of workers. Times are those of the database.
Workers read the table once per second, not per model request.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy import delete, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.async_tools import cancellable_sleep
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.tables import provider_pauses
from judges.errors import LLMRejected, RejectionScope
from judges.llm.circuit import CircuitBreaker


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPause:
    """Pause of a provider, with its reason and the operator who set it."""

    provider: str
    reason: str
    paused_by: str
    paused_at: datetime


async def pause_provider(connection: AsyncConnection, pause: ProviderPause) -> None:
    """Pause a provider. If it is paused already, replace the reason and the operator."""
    query = insert(provider_pauses).values(**dataclasses.asdict(pause))
    changed = {"reason": query.excluded.reason, "paused_by": query.excluded.paused_by}
    await connection.execute(query.on_conflict_do_update(index_elements=["provider"], set_=changed))


async def resume_provider(connection: AsyncConnection, provider: str) -> None:
    """Resume a provider. Do nothing if it is not paused."""
    await connection.execute(delete(provider_pauses).where(provider_pauses.c.provider == provider))


async def paused_providers(connection: AsyncConnection) -> dict[str, ProviderPause]:
    """Return the pauses by provider."""
    rows = (await connection.execute(select(provider_pauses))).mappings()
    return {row["provider"]: ProviderPause(**row) for row in rows}


_INTERVAL_S: Final = 1.0
_FIRST_REQUEST_S: Final = 2.0
"""Time limit for the first request of a process, during which the others wait."""
_FRESH_S: Final = 10.0
"""Time after a success during which other processes need not send a first request one by one."""
_WAIT_S: Final = 0.5
_POLL_S: Final = 0.05
_MIN_PROBE_INTERVAL_S: Final = 5.0
"""Time after a rejection before a newly started process may send a probe."""
_LEEWAY: Final = 0.8
"""Factor on probe intervals. The database records a rejection slightly later than the process that received it. That
delay must not make the process miss its probe."""
_ENDPOINT: Final = ""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderStatusRow:
    """Status row. ``age_s`` and ``probed_s`` are the seconds since the last change and the last probe."""

    model: str
    state: str
    rejection: str | None
    age_s: float
    probed_s: float


class SharedProviderStatus:
    """Access of one process to the shared provider status. ``redact`` removes secrets from provider messages."""

    def __init__(self, database: Database, *, redact: Callable[[str], str]) -> None:
        self._database = database
        self.redact = redact
        self._keys: dict[str, tuple[CircuitBreaker, _CredentialStatus]] = {}
        self._pauses: dict[str, str] = {}
        self._writing: set[asyncio.Task[object]] = set()

    def register(self, key: str, circuit: CircuitBreaker) -> None:
        """Share the state of ``circuit`` with all processes that use the same ``key`` (provider:fingerprint)."""
        status = circuit.status_store = _CredentialStatus(self, key, circuit)
        self._keys[key] = circuit, status
        circuit.set_pause(self._pauses.get(_provider(key)))

    async def run(self) -> None:
        """Update the circuits from the shared status until cancelled."""
        while True:
            await self.update_pauses()
            for key, (circuit, status) in list(self._keys.items()):
                circuit.set_pause(self._pauses.get(_provider(key)))
                await status.update()
            await cancellable_sleep(_INTERVAL_S)

    async def update_pauses(self) -> None:
        """Read which providers the operator has paused. If the database is unavailable, keep the known pauses."""
        try:
            async with self._database.begin() as connection:
                pauses = await paused_providers(connection)
        except DatabaseUnavailable as error:
            _log.warning("provider pauses not updated", detail=str(error))
            return
        self._pauses = {
            name: f"{name} was paused by {pause.paused_by}: {self.redact(pause.reason)}"
            for name, pause in pauses.items()
        }

    def request_probe(self, provider: str) -> None:
        """Allow the next request to a rejected provider as a probe, at most once per ``_MIN_PROBE_INTERVAL_S``."""
        query = (
            "UPDATE provider_status SET state = 'probe_wanted' WHERE credential_id LIKE :keys AND state = 'rejected'"
            " AND probed_at <= clock_timestamp() - make_interval(secs => :after)"
        )
        self.execute_in_background(query, {"keys": f"{provider}:%", "after": _LEEWAY * _MIN_PROBE_INTERVAL_S})

    def execute_in_background(self, query: str, values: Mapping[str, Any]) -> None:
        task = asyncio.create_task(self.execute(query, values))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def execute(
        self, query: str, values: Mapping[str, Any], *, default: list[Mapping[str, Any]] | None = None
    ) -> list[Mapping[str, Any]]:
        """Run a query and return its rows, or ``default`` if the database is unavailable.

        Without the database each process relies on its own circuit state.
        """
        try:
            async with self._database.begin() as connection:
                rows = await connection.execute(text(query), values)
                return [dict(row) for row in rows.mappings()] if rows.returns_rows else []
        except DatabaseUnavailable as error:
            _log.warning("provider status not shared", detail=str(error))
            return default or []


def _provider(key: str) -> str:
    return key.partition(":")[0]


class _CredentialStatus:
    """Shared status of one API key. Implements ``ProviderStatusStore`` of ``judges.llm``."""

    def __init__(self, shared: SharedProviderStatus, key: str, circuit: CircuitBreaker) -> None:
        self._shared = shared
        self._key = key
        self._circuit = circuit

    async def update(self) -> None:
        """Update the circuit from the shared status."""
        for row in await self._read():
            apply_status(self._circuit, row)

    async def wait_for_first_request(self, model: str) -> None:
        """Wait until another process knows whether ``model`` accepts requests, or until this process may find out.

        A process that has just started may send a probe soon after a rejection, because operators fix keys by
        restarting the service.
        """
        for _ in range(round(_WAIT_S / _POLL_S)):
            rows = [row for row in await self._read() if row.model in (_ENDPOINT, model)]
            rejected = [row for row in rows if row.state in ("rejected", "probe_wanted")]
            if rejected:
                for row in rejected:
                    if not await self.may_probe(row.model, after_s=_MIN_PROBE_INTERVAL_S):
                        apply_status(self._circuit, row)
                return
            if await self._claim_first_request(model):
                return
            if any(row.model == model and row.state == "accepting" for row in rows):
                return
            await asyncio.sleep(_POLL_S)

    async def may_probe(self, model: str | None, *, after_s: float) -> bool:
        query = (
            "UPDATE provider_status SET state = 'rejected', probed_at = clock_timestamp()"
            " WHERE credential_id = :key AND model = :model AND (state = 'probe_wanted'"
            " OR (state = 'rejected' AND probed_at <= clock_timestamp() - make_interval(secs => :after))) RETURNING 1"
        )
        values = {"key": self._key, "model": model or _ENDPOINT, "after": _LEEWAY * after_s}
        return bool(await self._shared.execute(query, values, default=[{}]))

    def report_rejection(self, model: str | None, rejection: LLMRejected) -> None:
        details = {
            "message": self._shared.redact(str(rejection)),
            "status": rejection.status,
            "scope": rejection.scope.value,
            "no_such_model": rejection.no_such_model,
        }
        query = (
            "INSERT INTO provider_status (credential_id, model, state, rejection, changed_at, probed_at)"
            " VALUES (:key, :model, 'rejected', :rejection, clock_timestamp(), clock_timestamp())"
            " ON CONFLICT (credential_id, model) DO UPDATE SET state = 'rejected', rejection = excluded.rejection,"
            " changed_at = clock_timestamp(), probed_at = clock_timestamp()"
        )
        values = {"key": self._key, "model": model or _ENDPOINT, "rejection": json.dumps(details)}
        self._shared.execute_in_background(query, values)

    def report_success(self, model: str) -> None:
        query = (
            "INSERT INTO provider_status (credential_id, model, state, changed_at, probed_at)"
            " SELECT :key, name, 'accepting', clock_timestamp(), clock_timestamp()"
            " FROM unnest(ARRAY['', CAST(:model AS text)]) AS name ORDER BY name"
            " ON CONFLICT (credential_id, model) DO UPDATE"
            " SET state = 'accepting', rejection = NULL, changed_at = clock_timestamp(), probed_at = clock_timestamp()"
        )
        self._shared.execute_in_background(query, {"key": self._key, "model": model})

    async def _read(self) -> list[ProviderStatusRow]:
        """Return the status rows of the key; none if the database is unavailable."""
        query = (
            "SELECT model, state, rejection,"
            " extract(epoch FROM clock_timestamp() - changed_at)::float8 AS age_s,"
            " extract(epoch FROM clock_timestamp() - probed_at)::float8 AS probed_s"
            " FROM provider_status WHERE credential_id = :key"
        )
        return [ProviderStatusRow(**row) for row in await self._shared.execute(query, {"key": self._key})]

    async def _claim_first_request(self, model: str) -> bool:
        """Return whether this process may send the first request to ``model``, for which the other processes wait."""
        query = (
            "INSERT INTO provider_status AS known (credential_id, model, state, changed_at, probed_at)"
            " VALUES (:key, :model, 'first_request', clock_timestamp(), clock_timestamp())"
            " ON CONFLICT (credential_id, model) DO UPDATE"
            " SET state = 'first_request', rejection = NULL,"
            " changed_at = clock_timestamp(), probed_at = clock_timestamp()"
            " WHERE (known.state = 'first_request' AND known.changed_at < clock_timestamp() - "
            " make_interval(secs => :first_request))"
            " OR (known.state = 'accepting' AND known.changed_at < clock_timestamp() - make_interval(secs => :fresh))"
            " RETURNING 1"
        )
        values = {"key": self._key, "model": model, "first_request": _FIRST_REQUEST_S, "fresh": _FRESH_S}
        return bool(await self._shared.execute(query, values, default=[{}]))


def apply_status(circuit: CircuitBreaker, row: ProviderStatusRow) -> None:
    """Update a circuit from a status row."""
    model = row.model or None
    if row.rejection is not None:
        details = json.loads(row.rejection)
        rejection = LLMRejected(
            details["message"],
            status=details["status"],
            scope=RejectionScope(details["scope"]),
            no_such_model=details.get("no_such_model", False),
        )
        probe_wanted = row.state == "probe_wanted"
        circuit.apply_rejection(model, rejection, age_s=row.probed_s, probe_wanted=probe_wanted)
    elif row.state == "accepting":
        circuit.apply_success(model, age_s=row.age_s)

"""What one worker found out about a model's provider, told to all that use the same key.

A row for each key (and for each of its models) says whether it is answered or refused, and when somebody last went to
see. One wrong key so costs one call, however many workers there are. Times are the database's. Workers look once a
second: nothing here is worth a query for each model call.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog
from sqlalchemy import text

from app.background import until_next_round
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.provider_pauses import paused_providers
from judges.errors import LLMRejected, RejectionScope
from judges.llm.circuit import Circuit

_ROUND_S: Final = 1.0
_ASKING_S: Final = 2.0
"""How long a process is believed to be about to find out."""
_FRESH_S: Final = 10.0
"""How long an answer to one process tells the others that they need not go one by one."""
_WAIT_S: Final = 0.5
_LOOK_S: Final = 0.05
_REPEAT_S: Final = 5.0
"""How soon after a refusal a process that has just started may see for itself."""
_LEEWAY: Final = 0.8
"""Times here are a little later than those of the process that was refused, which must not cost it its turn."""
_ENDPOINT: Final = ""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row; ages in seconds, by the database's clock."""

    model: str
    state: str
    refusal: str | None
    age_s: float
    probed_s: float


class ModelLines:
    """The board of one process. ``redact`` takes secrets out of what providers say."""

    def __init__(self, database: Database, *, redact: Callable[[str], str]) -> None:
        self._database = database
        self._redact = redact
        self._circuits: dict[str, Circuit] = {}
        self._held: dict[str, str] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def join(self, key: str, circuit: Circuit) -> None:
        """Let ``circuit`` hear of, and tell, every process that joins with the same ``key`` (provider:fingerprint)."""
        circuit.board = _KeyBoard(self, key, circuit)
        self._circuits[key] = circuit
        circuit.hold(self._held.get(_provider(key)))

    async def run(self) -> None:
        """Tell the circuits what others found out, until cancelled."""
        while True:
            await self.look_for_pauses()
            for key, circuit in list(self._circuits.items()):
                circuit.hold(self._held.get(_provider(key)))
                for line in await self.look(key):
                    tell(circuit, line)
            await until_next_round(_ROUND_S)

    async def look_for_pauses(self) -> None:
        """Take over which providers the operator wants left alone; while the database is away, what was known holds."""
        try:
            async with self._database.begin() as connection:
                pauses = await paused_providers(connection)
        except DatabaseUnavailable as error:
            _log.warning("pauses of providers not looked at", detail=str(error))
            return
        self._held = {
            name: f"{name} was paused by {pause.paused_by}: {self._redact(pause.reason)}"
            for name, pause in pauses.items()
        }

    async def look(self, key: str) -> list[Line]:
        """What is known of a key; nothing while the database is away."""
        query = (
            "SELECT model, state, refusal,"
            " extract(epoch FROM clock_timestamp() - changed_at)::float8 AS age_s,"
            " extract(epoch FROM clock_timestamp() - probed_at)::float8 AS probed_s"
            " FROM model_lines WHERE circuit = :key"
        )
        return [Line(**row) for row in await self._execute(query, {"key": key})]

    async def ask_first(self, key: str, model: str) -> bool:
        """Whether it falls to the caller to find out about ``model``."""
        query = (
            "INSERT INTO model_lines AS line (circuit, model, state, changed_at, probed_at)"
            " VALUES (:key, :model, 'asking', clock_timestamp(), clock_timestamp())"
            " ON CONFLICT (circuit, model) DO UPDATE"
            " SET state = 'asking', refusal = NULL, changed_at = clock_timestamp(), probed_at = clock_timestamp()"
            " WHERE (line.state = 'asking' AND line.changed_at < clock_timestamp() - make_interval(secs => :asking))"
            " OR (line.state = 'answering' AND line.changed_at < clock_timestamp() - make_interval(secs => :fresh))"
            " RETURNING 1"
        )
        values = {"key": key, "model": model, "asking": _ASKING_S, "fresh": _FRESH_S}
        return bool(await self._execute(query, values, otherwise=[{}]))

    async def may_probe(self, key: str, model: str, *, after_s: float) -> bool:
        query = (
            "UPDATE model_lines SET state = 'refused', probed_at = clock_timestamp()"
            " WHERE circuit = :key AND model = :model AND (state = 'probe_wanted'"
            " OR (state = 'refused' AND probed_at <= clock_timestamp() - make_interval(secs => :after))) RETURNING 1"
        )
        values = {"key": key, "model": model, "after": _LEEWAY * after_s}
        return bool(await self._execute(query, values, otherwise=[{}]))

    def refused(self, key: str, model: str, refusal: LLMRejected) -> None:
        said = {
            "message": self._redact(str(refusal)),
            "status": refusal.status,
            "scope": refusal.scope.value,
            "no_such_model": refusal.no_such_model,
        }
        query = (
            "INSERT INTO model_lines (circuit, model, state, refusal, changed_at, probed_at)"
            " VALUES (:key, :model, 'refused', :refusal, clock_timestamp(), clock_timestamp())"
            " ON CONFLICT (circuit, model) DO UPDATE SET state = 'refused', refusal = excluded.refusal,"
            " changed_at = clock_timestamp(), probed_at = clock_timestamp()"
        )
        self._in_background(query, {"key": key, "model": model, "refusal": json.dumps(said)})

    def answered(self, key: str, model: str) -> None:
        query = (
            "INSERT INTO model_lines (circuit, model, state, changed_at, probed_at)"
            " SELECT :key, name, 'answering', clock_timestamp(), clock_timestamp()"
            " FROM unnest(ARRAY['', CAST(:model AS text)]) AS name ORDER BY name"
            " ON CONFLICT (circuit, model) DO UPDATE"
            " SET state = 'answering', refusal = NULL, changed_at = clock_timestamp(), probed_at = clock_timestamp()"
        )
        self._in_background(query, {"key": key, "model": model})

    def probe_wanted(self, provider: str) -> None:
        """Somebody says that a provider was mended: whoever is next may see, not more often than every few seconds."""
        query = (
            "UPDATE model_lines SET state = 'probe_wanted' WHERE circuit LIKE :keys AND state = 'refused'"
            " AND probed_at <= clock_timestamp() - make_interval(secs => :after)"
        )
        self._in_background(query, {"keys": f"{provider}:%", "after": _LEEWAY * _REPEAT_S})

    def _in_background(self, query: str, values: Mapping[str, Any]) -> None:
        task = asyncio.create_task(self._write(query, values))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, query: str, values: Mapping[str, Any]) -> None:
        await self._execute(query, values)

    async def _execute(
        self, query: str, values: Mapping[str, Any], *, otherwise: list[Mapping[str, Any]] | None = None
    ) -> list[Mapping[str, Any]]:
        """The rows, or ``otherwise`` while the database is away: then each process goes by what it knows itself."""
        try:
            async with self._database.begin() as connection:
                found = await connection.execute(text(query), values)
                return [dict(row) for row in found.mappings()] if found.returns_rows else []
        except DatabaseUnavailable as error:
            _log.warning("state of models not shared", detail=str(error))
            return otherwise or []


def _provider(key: str) -> str:
    return key.partition(":")[0]


class _KeyBoard:
    """Implements ``Board`` of judges.llm for one key."""

    def __init__(self, lines: ModelLines, key: str, circuit: Circuit) -> None:
        self._lines = lines
        self._key = key
        self._circuit = circuit

    async def ask_first(self, model: str) -> None:
        """A refusal a while ago may be seen to by whoever has just been started, since that is how keys are mended."""
        for _ in range(round(_WAIT_S / _LOOK_S)):
            lines = [line for line in await self._lines.look(self._key) if line.model in (_ENDPOINT, model)]
            refused = [line for line in lines if line.state in ("refused", "probe_wanted")]
            if refused:
                for line in refused:
                    if not await self._lines.may_probe(self._key, line.model, after_s=_REPEAT_S):
                        tell(self._circuit, line)
                return
            if await self._lines.ask_first(self._key, model):
                return
            if any(line.model == model and line.state == "answering" for line in lines):
                return
            await asyncio.sleep(_LOOK_S)

    async def may_probe(self, model: str | None, *, after_s: float) -> bool:
        return await self._lines.may_probe(self._key, model or _ENDPOINT, after_s=after_s)

    def refused(self, model: str | None, refusal: LLMRejected) -> None:
        self._lines.refused(self._key, model or _ENDPOINT, refusal)

    def answered(self, model: str) -> None:
        self._lines.answered(self._key, model)


def tell(circuit: Circuit, line: Line) -> None:
    """Make a circuit know what a row says."""
    model = line.model or None
    if line.refusal is not None:
        said = json.loads(line.refusal)
        refusal = LLMRejected(
            said["message"],
            status=said["status"],
            scope=RejectionScope(said["scope"]),
            no_such_model=said.get("no_such_model", False),
        )
        wanted = line.state == "probe_wanted"
        circuit.learn_refused(model, refusal, age_s=line.probed_s, probe_wanted=wanted)
    elif line.state == "answering":
        circuit.learn_answered(model, age_s=line.age_s)

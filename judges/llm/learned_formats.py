"""Learned request formats of one server, by model. Each error and each reply can change the format.

While the format of a model is unknown, the first request is sent before concurrent ones, so that only one request tries
the formats. The learned format is stored in a file, if one is configured, and expires after a day.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from judges.llm.client import LLMRequest
from judges.llm.request_formats import RequestFormat, SchemaMode, from_json, to_json

log = logging.getLogger(__name__)

FIRST_REQUEST_WAIT_S: Final = 1.0
"""Seconds that concurrent requests wait for the first one while it is not rejected."""
FORMAT_SEARCH_WAIT_S: Final = 20.0
"""Seconds that they wait while the first request tries other formats."""
MAX_AGE_S: Final = 24 * 3600.0
_AFTER_ERRORS: Final = (SchemaMode.OBJECT, SchemaMode.TOOL, SchemaMode.PROMPT)
"""Rungs to try after two errors 500 that name no cause."""
_ERRORS_BEFORE: Final = 2
_TIMES_HELPED: Final = 2


class Images(StrEnum):
    """Whether requests include the screenshots of pages (``ASSAY_IMAGES``)."""

    AUTO = "auto"
    """Include them until the server rejects images."""
    ON = "on"
    OFF = "off"


@dataclass(slots=True)
class ModelFormat:
    """Learned format of one model.

    ``settled``: a reply in this format was usable. ``trial`` is a format that worked after errors 500. Because they may
    have been an outage, the next request uses the previous format once more.
    """

    dialect: RequestFormat
    settled: bool = False
    proven: set[str] = field(default_factory=set)
    """Purposes of the requests whose replies were usable."""
    by_schema: dict[str, RequestFormat] = field(default_factory=dict)
    """Formats of the schemas for which the server rejects its usual format."""
    helped: int = 0
    errors: int = 0
    trial: RequestFormat | None = None
    climbing: bool = False
    tried: bool = False
    first: asyncio.Event | None = None


class FormatFile:
    """JSON file with learned formats. Several processes may write it."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def read(self, server: str, model: str) -> RequestFormat | None:
        """Return the format of a model; None if there is none, or it has expired or is unreadable."""
        try:
            entry = self._entries()[_entry_name(server, model)]
            return from_json(entry["dialect"]) if self._is_new(entry) else None
        except (LookupError, TypeError, ValueError):
            return None

    def write(self, server: str, model: str, dialect: RequestFormat) -> None:
        """Store the format of a model and remove expired entries. Blocks. Write errors are ignored."""
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                entries = {name: entry for name, entry in self._entries().items() if self._is_new(entry)}
                found = {"found_at": self._clock(), "dialect": to_json(dialect)}
                entries[_entry_name(server, model)] = found
                fresh = self._path.with_suffix(".new")
                fresh.write_text(json.dumps(entries, indent=1, sort_keys=True), "utf-8")
                fresh.replace(self._path)

    def _is_new(self, entry: Any) -> bool:
        try:
            return bool(0 <= self._clock() - entry["found_at"] < MAX_AGE_S)
        except (LookupError, TypeError):
            return False

    def _entries(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _entry_name(server: str, model: str) -> str:
    return f"{server} {model}"


class LearnedFormats:
    """Request formats of one server. ``images``: whether images are sent, and left out after a rejection."""

    def __init__(self, server: str, *, images: Images = Images.AUTO, file: FormatFile | None = None) -> None:
        self.images = images
        self._server = server
        self._file = file
        self._models: dict[str, ModelFormat] = {}

    def known(self, model: str) -> ModelFormat:
        """Return the learned format of a model. Reads the file on first use."""
        if model not in self._models:
            start = RequestFormat(images=self.images is not Images.OFF)
            kept = None if self._file is None else self._file.read(self._server, model)
            if kept is not None and self.images is not Images.AUTO:
                kept = replace(kept, images=start.images)
            self._models[model] = ModelFormat(kept or start, settled=kept is not None)
        return self._models[model]

    def forget(self, model: str) -> None:
        """Discard the learned format of a model."""
        self._models[model] = ModelFormat(RequestFormat(images=self.images is not Images.OFF))

    def format_for(self, request: LLMRequest) -> RequestFormat:
        """Return the format for a request."""
        known = self.known(request.model)
        own = request.form or known.by_schema.get(_schema_name(request))
        if own is not None:
            return replace(own, images=own.images and known.dialect.images)
        if not known.settled and known.trial is None and known.errors >= _ERRORS_BEFORE and request.schema is not None:
            place = min(known.errors - _ERRORS_BEFORE, len(_AFTER_ERRORS) - 1)
            return known.dialect.lower(to=_AFTER_ERRORS[place]) or known.dialect
        return known.dialect

    @asynccontextmanager
    async def exclusive_probe(self, model: str) -> AsyncIterator[None]:
        """Run one request inside this context. While the format is unknown, the first request is sent before others."""
        known = self.known(model)
        if not known.settled and known.first is not None:
            await _wait(known, known.first)
        if known.settled or known.tried or known.first is not None:
            yield
            return
        known.first = asyncio.Event()
        try:
            yield
        finally:
            known.first.set()
            known.first, known.climbing, known.tried = None, False, True

    def refused(self, request: LLMRequest, following: RequestFormat) -> None:
        """Record that the server named a part of the format that it rejects. ``following`` is the format without it."""
        known = self.known(request.model)
        known.climbing = True
        if not known.settled and request.form is None:
            known.dialect = replace(following, oversized=False)

    def failed(self, request: LLMRequest) -> RequestFormat | None:
        """Record an error 500 without a cause. Return the trial format if this error confirms it."""
        known = self.known(request.model)
        if known.settled:
            return None
        known.climbing = True
        if known.trial is not None and request.form is None:
            found, known.trial = known.trial, None
            self._learn(request, found)
            return found
        known.errors += 1
        return None

    def record_accepted(self, request: LLMRequest, form: RequestFormat) -> None:
        """Record that the server replied to a request in this format."""
        form = replace(form, oversized=False)
        known = self.known(request.model)
        if known.settled and form != self.format_for(request) and request.form is None:
            if replace(form, rung=known.dialect.rung, in_words=known.dialect.in_words) == known.dialect:
                known.by_schema[_schema_name(request)] = form
            else:
                self._learn(request, form)
        elif known.settled and not form.images and known.dialect.images:
            self._learn(request, replace(known.dialect, images=False))
        elif not known.settled and known.errors >= _ERRORS_BEFORE and form != known.dialect and known.trial is None:
            known.trial = form
        elif not known.settled and form == known.dialect:
            known.errors, known.trial = 0, None

    def usable(self, request: LLMRequest, form: RequestFormat) -> None:
        """Record that a reply in this format was usable."""
        own = None if request.form is None else replace(request.form, oversized=False)
        form = replace(form, oversized=False)
        known = self.known(request.model)
        is_first = request.purpose not in known.proven
        known.proven.add(request.purpose)
        if known.trial == form:
            return
        if request.schema is not None and not known.settled:
            self._learn(request, form)
        elif own is not None and own == form and not known.dialect.in_words:
            # Only the format with the schema in words led to a usable reply. A single success may be chance.
            known.helped += 1
            if is_first or known.helped >= _TIMES_HELPED:
                self._learn(request, form)

    def next_format(self, request: LLMRequest, form: RequestFormat) -> RequestFormat | None:
        """Return the format to try after an unusable reply; None if there is none left.

        If the format is known to work for this purpose, or the formats were tried before, only the schema in words is
        added.
        """
        known = self.known(request.model)
        is_known = request.purpose in known.proven or known.tried
        if is_known and form.in_words:
            return None
        following = form.more_explicit()
        known.climbing = True
        return following

    def set_output_limit(self, request: LLMRequest, form: RequestFormat, cap: int) -> None:
        """Request ``cap`` output tokens from now on, because the server's default limit truncates replies."""
        known = self.known(request.model)
        known.dialect = replace(known.dialect, cap=cap)
        if known.settled:
            self._learn(request, known.dialect)

    def _learn(self, request: LLMRequest, dialect: RequestFormat) -> None:
        known = self.known(request.model)
        if known.settled and known.dialect == dialect:
            return
        known.dialect, known.settled, known.errors, known.trial = dialect, True, 0, None
        if dialect != RequestFormat():
            log.info(
                "model server wants requests in another form", extra={"model": request.model, "form": str(dialect)}
            )
        if self._file is not None:
            self._file.write(self._server, request.model, dialect)


async def _wait(known: ModelFormat, first: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(first.wait(), FIRST_REQUEST_WAIT_S)
    if known.climbing and not first.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(first.wait(), FORMAT_SEARCH_WAIT_S - FIRST_REQUEST_WAIT_S)


def _schema_name(request: LLMRequest) -> str:
    return "" if request.schema is None else request.schema.__name__

"""What is known of how one server wants to be asked, by model, and what each refusal and reply adds to that.

The first request for a model goes ahead of the others while it finds out, so that thirty that start together do not
all climb down the ladder. What was found is kept in a file, if there is one, and expires after a day.
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
from judges.llm.dialects import Dialect, Rung, from_json, to_json

log = logging.getLogger(__name__)

WAIT_S: Final = 1.0
"""How long others wait for the first request, if it was not refused."""
CLIMB_WAIT_S: Final = 20.0
"""How long they wait while it is tried in other forms."""
MAX_AGE_S: Final = 24 * 3600.0
_AFTER_ERRORS: Final = (Rung.OBJECT, Rung.TOOL, Rung.PROMPT)
"""The rungs to try after two errors 500 that name no cause."""
_ERRORS_BEFORE: Final = 2
_TIMES_HELPED: Final = 2


class Images(StrEnum):
    """Whether models are shown the pictures of pages."""

    AUTO = "auto"
    """Until the server refuses them."""
    ON = "on"
    OFF = "off"


@dataclass(slots=True)
class Known:
    """What is known of one model. ``settled``: a reply in this form could be used. ``trial`` is a form that worked
    after errors 500, which may have been an outage: the next request asks in the old form once more.
    """

    dialect: Dialect
    settled: bool = False
    proven: set[str] = field(default_factory=set)
    """The purposes of the requests whose replies could be used."""
    by_schema: dict[str, Dialect] = field(default_factory=dict)
    """Schemas that the server does not take in its usual form."""
    helped: int = 0
    errors: int = 0
    trial: Dialect | None = None
    climbing: bool = False
    tried: bool = False
    first: asyncio.Event | None = None


class DialectFile:
    """Dialects that were found, in a JSON file that several processes may write."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def read(self, server: str, model: str) -> Dialect | None:
        """The dialect of a model; None if there is none, or none that is new enough and can be read."""
        try:
            entry = self._entries()[_entry_name(server, model)]
            return from_json(entry["dialect"]) if self._is_new(entry) else None
        except (LookupError, TypeError, ValueError):
            return None

    def write(self, server: str, model: str, dialect: Dialect) -> None:
        """Blocks. Entries that expired are removed. A disk that is full or read-only costs the entry."""
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


class Dialects:
    """The dialects of one server. ``images``: whether pictures are sent at all, and kept back if they are refused."""

    def __init__(self, server: str, *, images: Images = Images.AUTO, file: DialectFile | None = None) -> None:
        self.images = images
        self._server = server
        self._file = file
        self._models: dict[str, Known] = {}

    def known(self, model: str) -> Known:
        """What is known of a model. Reads the file the first time."""
        if model not in self._models:
            start = Dialect(images=self.images is not Images.OFF)
            kept = None if self._file is None else self._file.read(self._server, model)
            if kept is not None and self.images is not Images.AUTO:
                kept = replace(kept, images=start.images)
            self._models[model] = Known(kept or start, settled=kept is not None)
        return self._models[model]

    def forget(self, model: str) -> None:
        """Find out anew how to ask for a model."""
        self._models[model] = Known(Dialect(images=self.images is not Images.OFF))

    def form_of(self, request: LLMRequest) -> Dialect:
        """The form in which to send a request."""
        known = self.known(request.model)
        own = request.form or known.by_schema.get(_schema_name(request))
        if own is not None:
            return replace(own, images=own.images and known.dialect.images)
        if not known.settled and known.trial is None and known.errors >= _ERRORS_BEFORE and request.schema is not None:
            place = min(known.errors - _ERRORS_BEFORE, len(_AFTER_ERRORS) - 1)
            return known.dialect.lower(to=_AFTER_ERRORS[place]) or known.dialect
        return known.dialect

    @asynccontextmanager
    async def turn(self, model: str) -> AsyncIterator[None]:
        """One request inside. While nothing is known of the model, the first one goes ahead of the others."""
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

    def refused(self, request: LLMRequest, following: Dialect) -> None:
        """The server named what it does not take: ``following`` is the form without it."""
        known = self.known(request.model)
        known.climbing = True
        if not known.settled and request.form is None:
            known.dialect = replace(following, oversized=False)

    def failed(self, request: LLMRequest) -> Dialect | None:
        """The server answered 500 and named no cause. Return the form that worked before, if it is confirmed now."""
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

    def accepted(self, request: LLMRequest, form: Dialect) -> None:
        """The server replied to a request in this form."""
        form = replace(form, oversized=False)
        known = self.known(request.model)
        if known.settled and form != self.form_of(request) and request.form is None:
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

    def usable(self, request: LLMRequest, form: Dialect) -> None:
        """A reply in this form could be read."""
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
            # Only the form with the schema in words was understood: once may be chance.
            known.helped += 1
            if is_first or known.helped >= _TIMES_HELPED:
                self._learn(request, form)

    def next_form(self, request: LLMRequest, form: Dialect) -> Dialect | None:
        """The form in which to ask again after a reply that could not be read; None if there is nothing left to try.

        A form that was understood before is only made more explicit, and a server is searched once.
        """
        known = self.known(request.model)
        is_known = request.purpose in known.proven or known.tried
        if is_known and form.in_words:
            return None
        following = form.more_explicit()
        known.climbing = True
        return following

    def capped(self, request: LLMRequest, form: Dialect, cap: int) -> None:
        """Replies end early because of the server's own limit: ask for ``cap`` tokens from now on."""
        known = self.known(request.model)
        known.dialect = replace(known.dialect, cap=cap)
        if known.settled:
            self._learn(request, known.dialect)

    def _learn(self, request: LLMRequest, dialect: Dialect) -> None:
        known = self.known(request.model)
        if known.settled and known.dialect == dialect:
            return
        known.dialect, known.settled, known.errors, known.trial = dialect, True, 0, None
        if dialect != Dialect():
            log.info(
                "model server wants requests in another form", extra={"model": request.model, "form": str(dialect)}
            )
        if self._file is not None:
            self._file.write(self._server, request.model, dialect)


async def _wait(known: Known, first: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(first.wait(), WAIT_S)
    if known.climbing and not first.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(first.wait(), CLIMB_WAIT_S - WAIT_S)


def _schema_name(request: LLMRequest) -> str:
    return "" if request.schema is None else request.schema.__name__

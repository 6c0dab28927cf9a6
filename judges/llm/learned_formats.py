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

from cache.atomic_files import write_atomic
from judges.llm.client import LLMRequest
from judges.llm.request_formats import RequestFormat, SchemaMode, from_json, to_json

log = logging.getLogger(__name__)

FIRST_REQUEST_WAIT_S: Final = 0.3
"""Seconds after the start of the first request for which concurrent ones wait while it is not rejected.

Servers reject a format before the model runs. Later rejections cost time and requests, but no tokens.
"""
FORMAT_SEARCH_WAIT_S: Final = 20.0
"""Seconds for which they wait while the first request tries other formats."""
MAX_AGE_S: Final = 24 * 3600.0
_MODES_AFTER_ERRORS: Final = (SchemaMode.OBJECT, SchemaMode.TOOL, SchemaMode.PROMPT)
"""Schema modes to try after two errors 500 that name no cause."""
_MAX_ERRORS: Final = 2
_MIN_SUCCESSES: Final = 2


class Images(StrEnum):
    """Whether requests include the screenshots of pages (``ASSAY_IMAGES``)."""

    AUTO = "auto"
    """Include them until the server rejects images."""
    ON = "on"
    OFF = "off"


@dataclass(slots=True)
class ModelFormat:
    """What is known of the format of one model.

    ``is_final``: a reply in this format was usable. ``candidate`` is a format that worked after errors 500. Because
    they may have been an outage, the next request uses the previous format once more.
    """

    request_format: RequestFormat
    is_final: bool = False
    working_purposes: set[str] = field(default_factory=set)
    """Purposes of the requests whose replies were usable."""
    format_by_schema: dict[str, RequestFormat] = field(default_factory=dict)
    """Formats of the schemas for which the server rejects its usual format."""
    explicit_successes: int = 0
    """Usable replies to requests that were sent once more with the schema in the prompt."""
    errors: int = 0
    """Errors 500 that named no cause."""
    candidate: RequestFormat | None = None
    is_searching: bool = False
    """A request is trying other formats."""
    was_searched: bool = False
    """The first request ended, whether it found a format or not."""
    first_request_done: asyncio.Event | None = None
    first_request_at: float = 0.0
    """Start of the first request, in seconds of the event loop."""


class FormatFile:
    """JSON file with learned formats. Several processes may write it."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def read(self, server: str, model: str) -> RequestFormat | None:
        """Return the format of a model; None if there is none, or it has expired or is unreadable."""
        with suppress(LookupError, TypeError, ValueError):
            return from_json(self._entries()[_entry_name(server, model)]["request_format"])
        return None

    def write(self, server: str, model: str, request_format: RequestFormat) -> None:
        """Store the format of a model and remove expired entries. Blocks. Write errors are ignored."""
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                entries = self._entries()
                content = {"found_at": self._clock(), "request_format": to_json(request_format)}
                entries[_entry_name(server, model)] = content
                write_atomic(self._path, json.dumps(entries, indent=1, sort_keys=True).encode())

    def _entries(self) -> dict[str, Any]:
        """Return the entries that have not expired; none if the file cannot be read."""
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError):
            entries = json.loads(self._path.read_text("utf-8")).items()
            return {name: entry for name, entry in entries if 0 <= self._clock() - entry["found_at"] < MAX_AGE_S}
        return {}


def _entry_name(server: str, model: str) -> str:
    return f"{server} {model}"


class LearnedFormats:
    """Request formats of one server.

    ``images``: whether images are sent, and left out after a rejection. The other requests to a model wait
    ``first_request_wait_s`` for the reply to its first one.
    """

    def __init__(
        self,
        server: str,
        *,
        images: Images = Images.AUTO,
        file: FormatFile | None = None,
        first_request_wait_s: float = FIRST_REQUEST_WAIT_S,
    ) -> None:
        self.images = images
        self._server = server
        self._file = file
        self._first_request_wait_s = first_request_wait_s
        self._models: dict[str, ModelFormat] = {}

    def known(self, model: str) -> ModelFormat:
        """Return the learned format of a model. Reads the file on first use."""
        if model not in self._models:
            start = RequestFormat(images=self.images is not Images.OFF)
            stored = None if self._file is None else self._file.read(self._server, model)
            if stored is not None and self.images is not Images.AUTO:
                stored = replace(stored, images=start.images)
            self._models[model] = ModelFormat(stored or start, is_final=stored is not None)
        return self._models[model]

    def forget(self, model: str) -> None:
        """Discard the learned format of a model."""
        self._models[model] = ModelFormat(RequestFormat(images=self.images is not Images.OFF))

    def format_for(self, request: LLMRequest) -> RequestFormat:
        """Return the format for a request."""
        known = self.known(request.model)
        own = request.request_format or known.format_by_schema.get(request.schema_name)
        if own is not None:
            return replace(own, images=own.images and known.request_format.images)
        if (
            not known.is_final
            and known.candidate is None
            and known.errors >= _MAX_ERRORS
            and request.schema is not None
        ):
            place = min(known.errors - _MAX_ERRORS, len(_MODES_AFTER_ERRORS) - 1)
            return known.request_format.lower(to=_MODES_AFTER_ERRORS[place]) or known.request_format
        return known.request_format

    @asynccontextmanager
    async def exclusive_probe(self, model: str) -> AsyncIterator[None]:
        """Run one request inside this context. While the format is unknown, the first request is sent before others."""
        known = self.known(model)
        if not known.is_final and known.first_request_done is not None:
            await self._wait(known, known.first_request_done)
        if known.is_final or known.was_searched or known.first_request_done is not None:
            yield
            return
        known.first_request_done = asyncio.Event()
        known.first_request_at = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            known.first_request_done.set()
            known.first_request_done, known.is_searching, known.was_searched = None, False, True

    def record_rejected(self, request: LLMRequest, next_format: RequestFormat) -> None:
        """Record that the server rejects a part of the format. ``next_format`` is the format without this part."""
        known = self.known(request.model)
        known.is_searching = True
        if not known.is_final and request.request_format is None:
            known.request_format = replace(next_format, oversized=False)

    def record_failed(self, request: LLMRequest) -> RequestFormat | None:
        """Record an error 500 without a cause. Return the trial format if this error confirms it."""
        known = self.known(request.model)
        if known.is_final:
            return None
        known.is_searching = True
        if known.candidate is not None and request.request_format is None:
            candidate, known.candidate = known.candidate, None
            self._learn(request, candidate)
            return candidate
        known.errors += 1
        return None

    def record_accepted(self, request: LLMRequest, request_format: RequestFormat) -> None:
        """Record that the server replied to a request in this format."""
        request_format = replace(request_format, oversized=False)
        known = self.known(request.model)
        if known.is_final and request_format != self.format_for(request) and request.request_format is None:
            if (
                replace(
                    request_format,
                    schema_mode=known.request_format.schema_mode,
                    schema_in_words=known.request_format.schema_in_words,
                )
                == known.request_format
            ):
                known.format_by_schema[request.schema_name] = request_format
            else:
                self._learn(request, request_format)
        elif known.is_final and not request_format.images and known.request_format.images:
            self._learn(request, replace(known.request_format, images=False))
        elif (
            not known.is_final
            and known.errors >= _MAX_ERRORS
            and request_format != known.request_format
            and known.candidate is None
        ):
            known.candidate = request_format
        elif not known.is_final and request_format == known.request_format:
            known.errors, known.candidate = 0, None

    def record_usable(self, request: LLMRequest, request_format: RequestFormat) -> None:
        """Record that a reply in this format was usable."""
        own = None if request.request_format is None else replace(request.request_format, oversized=False)
        request_format = replace(request_format, oversized=False)
        known = self.known(request.model)
        is_first = request.purpose not in known.working_purposes
        known.working_purposes.add(request.purpose)
        if known.candidate == request_format:
            return
        if request.schema is not None and not known.is_final:
            self._learn(request, request_format)
        elif own is not None and own == request_format and not known.request_format.schema_in_words:
            # Only the format with the schema in words led to a usable reply. A single success may be chance.
            known.explicit_successes += 1
            if is_first or known.explicit_successes >= _MIN_SUCCESSES:
                self._learn(request, request_format)

    def next_format(self, request: LLMRequest, request_format: RequestFormat) -> RequestFormat | None:
        """Return the format to try after an unusable reply; None if there is none left.

        If the format is known to work for this purpose, or the formats were tried before, only the schema in words is
        added.
        """
        known = self.known(request.model)
        is_known = request.purpose in known.working_purposes or known.was_searched
        if is_known and request_format.schema_in_words:
            return None
        next_format = request_format.more_explicit()
        known.is_searching = True
        return next_format

    def set_output_limit(self, request: LLMRequest, cap: int) -> None:
        """Request ``cap`` output tokens from now on, because the server's default limit truncates replies."""
        known = self.known(request.model)
        known.request_format = replace(known.request_format, cap=cap)
        if known.is_final:
            self._learn(request, known.request_format)

    def _learn(self, request: LLMRequest, request_format: RequestFormat) -> None:
        known = self.known(request.model)
        if known.is_final and known.request_format == request_format:
            return
        known.request_format, known.is_final, known.errors, known.candidate = request_format, True, 0, None
        if request_format != RequestFormat():
            log.info(
                "model server wants requests in another form",
                extra={"model": request.model, "form": str(request_format)},
            )
        if self._file is not None:
            self._file.write(self._server, request.model, request_format)

    async def _wait(self, known: ModelFormat, first: asyncio.Event) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(known.first_request_at + self._first_request_wait_s):
                await first.wait()
        if known.is_searching and not first.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout_at(known.first_request_at + FORMAT_SEARCH_WAIT_S):
                    await first.wait()

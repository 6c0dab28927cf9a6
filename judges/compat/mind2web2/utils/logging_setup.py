"""Loggers that write the events of one run to separate files: ``.log`` for people, ``.jsonl`` for programs.

They are not in Python's global registry. Two answers judged concurrently may use the same logger name without mixing
their files, and a logger is garbage-collected with its owner.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Self

from cache.terminal_text import strip_controls

__all__ = ["cleanup_logger", "cleanup_shared_error_handler", "create_logger", "create_sub_logger", "log_files"]

_STAMP = "%Y%m%d_%H%M%S"
_READABLE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_SHARED_ERRORS = "shared_errors.jsonl"
_OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}

_shared_error_handlers: dict[Path, logging.FileHandler] = {}


class _RunLogger(logging.Logger):
    """Logger of a run, which is not in the registry, and neither are its children."""

    def getChild(self, suffix: str) -> Self:
        child = type(self)(f"{self.name}.{suffix}")
        child.parent = self
        return child


class _ReadableLines(logging.Formatter):
    """Lines for terminals. Control characters of answers, pages and replies are removed."""

    def format(self, record: logging.LogRecord) -> str:
        return strip_controls(super().format(record))


class _JsonLines(logging.Formatter):
    """Formatter for JSON lines: time (UTC), level, logger, message, the fields of ``extra``, and a traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        event |= {name: value for name, value in vars(record).items() if name not in _OWN_FIELDS and name not in event}
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False, default=str)


def create_logger(
    name: str,
    folder: str | Path,
    enable_console: bool = True,
    file_format: Literal["both", "jsonl", "readable"] = "both",
    enable_shared_errors: bool = False,
) -> tuple[logging.Logger, str]:
    """Create a logger that writes ``<stamp>_<name>.jsonl`` and/or ``.log`` in a folder. Return it with its stamp.

    The ``.log`` has events from INFO, the ``.jsonl`` all events. The stamp is the current time in the format
    ``YYYYmmdd_HHMMSS``. With ``enable_shared_errors``, errors of all such loggers of a folder are also written
    to one common file.

    Raises:
        ValueError: unknown ``file_format``.
    """
    if file_format not in ("both", "jsonl", "readable"):
        raise ValueError(f"file_format must be both, jsonl or readable, not {file_format!r}")
    place = Path(folder)
    stamp = datetime.now().astimezone().strftime(_STAMP)
    logger = _logger_with_files(name, place, stamp, file_format)
    if enable_console:
        console = logging.StreamHandler(sys.stderr)
        console.setLevel(logging.INFO)
        console.setFormatter(_ReadableLines(_READABLE))
        logger.addHandler(console)
    if enable_shared_errors:
        logger.addHandler(_shared_error_handler(place.resolve()))
    return logger, stamp


def _logger_with_files(name: str, folder: Path, stamp: str, file_format: str) -> logging.Logger:
    folder.mkdir(parents=True, exist_ok=True)
    logger = _RunLogger(name, logging.DEBUG)
    logger.propagate = False
    base = folder / f"{stamp}_{name.replace('/', '_')}"
    if file_format in ("both", "jsonl"):
        logger.addHandler(_file_handler(Path(f"{base}.jsonl"), _JsonLines()))
    if file_format in ("both", "readable"):
        readable = _file_handler(Path(f"{base}.log"), _ReadableLines(_READABLE))
        readable.setLevel(logging.INFO)
        logger.addHandler(readable)
    return logger


@contextmanager
def log_files(folder: str | Path, name: str, *, stamp: str | None = None) -> Iterator[logging.Logger]:
    """Log to ``<folder>/<stamp>_<name>.log`` and ``.jsonl``, which are closed at the end."""
    logger = _logger_with_files(name, Path(folder), stamp or datetime.now().astimezone().strftime(_STAMP), "both")
    try:
        yield logger
    finally:
        cleanup_logger(logger)


def create_sub_logger(logger: logging.Logger, name: str) -> logging.Logger:
    """Return a child logger that uses the handlers of its parent."""
    return logger.getChild(name)


def cleanup_logger(logger: logging.Logger) -> None:
    """Close a logger's files, except a shared error file."""
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        if handler not in _shared_error_handlers.values():
            handler.close()


def cleanup_shared_error_handler() -> None:
    """Close the shared error files."""
    while _shared_error_handlers:
        _shared_error_handlers.popitem()[1].close()


def _file_handler(path: Path, formatter: logging.Formatter) -> logging.FileHandler:
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(formatter)
    return handler


def _shared_error_handler(folder: Path) -> logging.FileHandler:
    handler = _shared_error_handlers.get(folder)
    if handler is None:
        handler = _file_handler(folder / _SHARED_ERRORS, _JsonLines())
        handler.setLevel(logging.ERROR)
        _shared_error_handlers[folder] = handler
    return handler

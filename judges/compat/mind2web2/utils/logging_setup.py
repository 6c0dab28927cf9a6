"""Loggers that write one run's events to files of their own.

They are not in Python's global registry: two answers that are judged side by side may use the same name without
writing into each other's files, and a logger is gone when its owner is.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

__all__ = ["cleanup_logger", "cleanup_shared_error_handler", "create_logger", "create_sub_logger"]

_STAMP = "%Y%m%d_%H%M%S"
_READABLE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_SHARED_ERRORS = "shared_errors.jsonl"
_OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}

_shared_error_handlers: dict[Path, logging.FileHandler] = {}


class _JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and whatever was given as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        event |= {name: value for name, value in vars(record).items() if name not in _OWN_FIELDS}
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False, default=str)


def create_logger(
    name: str,
    folder: str | Path,
    enable_console: bool = True,
    file_format: Literal["both", "jsonl", "readable"] = "both",
    enable_shared_errors: bool = False,
) -> tuple[logging.Logger, str]:
    """A logger that writes ``<stamp>_<name>.jsonl`` and/or ``.log`` in a folder, and its stamp ``YYYYmmdd_HHMMSS``.

    ``enable_shared_errors``: errors of all such loggers of one folder also go to one file there.

    Raises:
        ValueError: an unknown ``file_format``.
    """
    if file_format not in ("both", "jsonl", "readable"):
        raise ValueError(f"file_format must be both, jsonl or readable, not {file_format!r}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now().astimezone().strftime(_STAMP)
    logger = logging.Logger(name, logging.DEBUG)  # noqa: LOG001 - kept out of the registry
    logger.propagate = False
    base = place / f"{stamp}_{name.replace('/', '_')}"
    if file_format in ("both", "jsonl"):
        logger.addHandler(_file_handler(Path(f"{base}.jsonl"), _JsonLines()))
    if file_format in ("both", "readable"):
        logger.addHandler(_file_handler(Path(f"{base}.log"), logging.Formatter(_READABLE)))
    if enable_console:
        console = logging.StreamHandler(sys.stderr)
        console.setLevel(logging.INFO)
        console.setFormatter(logging.Formatter(_READABLE))
        logger.addHandler(console)
    if enable_shared_errors:
        logger.addHandler(_shared_error_handler(place.resolve()))
    return logger, stamp


def create_sub_logger(logger: logging.Logger, name: str) -> logging.Logger:
    """A child that writes through its parent's handlers."""
    child = logging.Logger(f"{logger.name}.{name}")  # noqa: LOG001 - kept out of the registry
    child.parent = logger
    return child


def cleanup_logger(logger: logging.Logger) -> None:
    """Close a logger's files; a shared error file stays open for the others."""
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        if handler not in _shared_error_handlers.values():
            handler.close()


def cleanup_shared_error_handler() -> None:
    """Close the shared error files."""
    while _shared_error_handlers:
        _shared_error_handlers.popitem()[1].close()


def _file_handler(path: Path, formatter: logging.Formatter) -> logging.FileHandler:
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(formatter)
    return handler


def _shared_error_handler(folder: Path) -> logging.FileHandler:
    handler = _shared_error_handlers.get(folder)
    if handler is None:
        handler = _file_handler(folder / _SHARED_ERRORS, _JsonLines())
        handler.setLevel(logging.ERROR)
        _shared_error_handlers[folder] = handler
    return handler

"""Loggers of one run: their files, their content and their isolation."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from mind2web2 import cleanup_logger, create_logger, create_sub_logger
from mind2web2.utils.logging_setup import cleanup_shared_error_handler


@pytest.fixture
def made() -> Iterator[list[logging.Logger]]:
    """List of loggers that are closed after the test."""
    loggers: list[logging.Logger] = []
    yield loggers
    for logger in loggers:
        cleanup_logger(logger)
    cleanup_shared_error_handler()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("file_format", "suffixes"), [("both", ["jsonl", "log"]), ("readable", ["log"])])
def test_log_files_are_named_by_timestamp_and_name(file_format, suffixes, tmp_path: Path, made: list[logging.Logger]):
    logger, stamp = create_logger("run", tmp_path / "logs", enable_console=False, file_format=file_format)
    made.append(logger)
    assert re.fullmatch(r"\d{8}_\d{6}", stamp)
    logger.info("hello")
    assert names(tmp_path / "logs") == [f"{stamp}_run.{suffix}" for suffix in suffixes]


def test_events_are_written_as_json_lines_and_as_text(tmp_path: Path, made: list[logging.Logger]):
    logger, stamp = create_logger("run", tmp_path, enable_console=False)
    made.append(logger)
    logger.warning("page %s is slow", "ü", extra={"url": "https://a.com"})
    try:
        raise ValueError("boom")
    except ValueError:
        logger.exception("it broke")
    slow, broke = lines(tmp_path / f"{stamp}_run.jsonl")
    assert list(slow) == ["time", "level", "logger", "message", "url"]
    assert datetime.fromisoformat(str(slow["time"])).tzinfo is not None
    assert (slow["level"], slow["message"], slow["url"]) == ("WARNING", "page ü is slow", "https://a.com")
    assert "boom" in str(broke["traceback"])
    assert "WARNING run: page ü is slow" in (tmp_path / f"{stamp}_run.log").read_text("utf-8")


def test_sub_logger_writes_to_the_files_of_its_parent(tmp_path: Path, made: list[logging.Logger]):
    logger, stamp = create_logger("run", tmp_path, enable_console=False)
    made.append(logger)
    child = create_sub_logger(logger, "verify")
    child.info("from below")
    create_sub_logger(child, "page").info("from further below")
    events = lines(tmp_path / f"{stamp}_run.jsonl")
    assert [(event["logger"], event["message"]) for event in events] == [
        ("run.verify", "from below"),
        ("run.verify.page", "from further below"),
    ]

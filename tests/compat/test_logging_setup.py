"""Loggers of one run: their files, their content and their isolation."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mind2web2 import cleanup_logger, create_logger, create_sub_logger
from mind2web2.utils.logging_setup import cleanup_shared_error_handler, log_files


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


@pytest.mark.parametrize(
    ("file_format", "suffixes"), [("both", ["jsonl", "log"]), ("jsonl", ["jsonl"]), ("readable", ["log"])]
)
def test_log_files_are_named_by_timestamp_and_name(file_format, suffixes, tmp_path: Path, made: list[logging.Logger]):
    logger, stamp = create_logger("run", tmp_path / "logs", enable_console=False, file_format=file_format)
    made.append(logger)
    assert re.fullmatch(r"\d{8}_\d{6}", stamp)
    logger.info("hello")
    assert names(tmp_path / "logs") == [f"{stamp}_run.{suffix}" for suffix in suffixes]


def test_unknown_format_is_rejected(tmp_path: Path):
    with pytest.raises(ValueError, match="file_format"):
        create_logger("run", tmp_path, file_format="xml")  # type: ignore[arg-type]


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


def test_extra_fields_do_not_replace_the_fields_of_the_event(tmp_path: Path, made: list[logging.Logger]):
    logger, stamp = create_logger("run", tmp_path, enable_console=False)
    made.append(logger)
    logger.info("hello", extra={"level": "none", "time": 1, "logger": "x"})
    [event] = lines(tmp_path / f"{stamp}_run.jsonl")
    assert (event["level"], event["logger"]) == ("INFO", "run")


def test_log_files_have_the_given_stamp_and_are_closed(tmp_path: Path):
    with log_files(tmp_path / "logs", "evaluate", stamp="20261101_120000") as logger:
        logger.info("hello")
    assert names(tmp_path / "logs") == ["20261101_120000_evaluate.jsonl", "20261101_120000_evaluate.log"]
    assert logger.handlers == []


def test_debug_events_go_only_to_the_json_lines(tmp_path: Path, made: list[logging.Logger], capsys):
    logger, stamp = create_logger("run", tmp_path)
    made.append(logger)
    logger.debug("detail")
    logger.info("fact")
    assert len(lines(tmp_path / f"{stamp}_run.jsonl")) == 2
    assert [line[-4:] for line in (tmp_path / f"{stamp}_run.log").read_text("utf-8").splitlines()] == ["fact"]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "fact" in shown.err
    assert "detail" not in shown.err


def test_nothing_reaches_the_root_logger(tmp_path: Path, made: list[logging.Logger], caplog):
    logger, _ = create_logger("run", tmp_path, enable_console=False)
    made.append(logger)
    logger.error("private")
    create_sub_logger(logger, "sub").error("private too")
    assert logger.propagate is False
    assert caplog.records == []


def test_two_loggers_with_the_same_name_stay_separate(tmp_path: Path, made: list[logging.Logger]):
    first, stamp_1 = create_logger("run", tmp_path / "1", enable_console=False)
    second, stamp_2 = create_logger("run", tmp_path / "2", enable_console=False)
    made += [first, second]
    first.info("one")
    second.info("two")
    assert [event["message"] for event in lines(tmp_path / "1" / f"{stamp_1}_run.jsonl")] == ["one"]
    assert [event["message"] for event in lines(tmp_path / "2" / f"{stamp_2}_run.jsonl")] == ["two"]


@pytest.mark.parametrize("sub_logger", [create_sub_logger, lambda logger, name: logger.getChild(name)])
def test_sub_logger_writes_to_the_files_of_its_parent(sub_logger: Any, tmp_path: Path, made: list[logging.Logger]):
    logger, stamp = create_logger("run", tmp_path, enable_console=False)
    made.append(logger)
    child = sub_logger(logger, "verify")
    assert isinstance(child, logging.Logger)
    child.info("from below")
    sub_logger(child, "page").info("from further below")
    events = lines(tmp_path / f"{stamp}_run.jsonl")
    assert [(event["logger"], event["message"]) for event in events] == [
        ("run.verify", "from below"),
        ("run.verify.page", "from further below"),
    ]


def test_text_that_is_not_unicode_is_escaped(tmp_path: Path, made: list[logging.Logger], capsys: Any):
    logger, stamp = create_logger("run", tmp_path, enable_console=False)
    made.append(logger)
    logger.info("claim %s", "\ud800")
    assert "claim \\ud800" in (tmp_path / f"{stamp}_run.log").read_text("utf-8")
    assert "Logging error" not in capsys.readouterr().err


def test_errors_are_also_written_to_the_shared_error_file(tmp_path: Path, made: list[logging.Logger]):
    first, _ = create_logger("one", tmp_path, enable_console=False, enable_shared_errors=True)
    second, _ = create_logger("two", tmp_path, enable_console=False, enable_shared_errors=True)
    made += [first, second]
    first.error("e1")
    cleanup_logger(first)
    second.error("e2")
    second.warning("w2")
    assert [event["message"] for event in lines(tmp_path / "shared_errors.jsonl")] == ["e1", "e2"]


def test_cleanup_closes_the_files(tmp_path: Path):
    logger, _ = create_logger("run", tmp_path, enable_console=False)
    files = [handler for handler in logger.handlers if isinstance(handler, logging.FileHandler)]
    cleanup_logger(logger)
    assert logger.handlers == []
    assert all(handler.stream is None for handler in files)
    logger.info("nobody hears this")


def test_name_with_a_slash_stays_in_the_log_folder(tmp_path: Path, made: list[logging.Logger]):
    logger, stamp = create_logger("agent/task", tmp_path, enable_console=False, file_format="readable")
    made.append(logger)
    assert names(tmp_path) == [f"{stamp}_agent_task.log"]

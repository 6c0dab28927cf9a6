from __future__ import annotations

import io
import json
import logging

import pytest
import structlog

from app.observability.logs import MASK, Redactor, configure_logging
from judges.settling import JUDGED_LEAF


@pytest.fixture
def log_stream() -> io.StringIO:
    stream = io.StringIO()
    configure_logging(Redactor(["canary"]), stream=stream)
    return stream


def lines(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_event_is_one_json_line_with_its_bound_values(log_stream: io.StringIO):
    with structlog.contextvars.bound_contextvars(job_id="job_1"):
        structlog.get_logger("app.jobs").info("job started", pages=3)
    [line] = lines(log_stream)
    assert (line["event"], line["job_id"], line["pages"], line["level"]) == ("job started", "job_1", 3, "info")
    assert line["timestamp"].endswith("Z")


def test_event_names_the_leaf_that_is_judged(log_stream: io.StringIO):
    token = JUDGED_LEAF.set("g1/name")
    logging.getLogger("judges.verifier").info("verdict reached")
    JUDGED_LEAF.reset(token)
    structlog.get_logger("app.jobs").info("job done")
    assert [line.get("leaf") for line in lines(log_stream)] == ["g1/name", None]


def test_secrets_are_masked_at_any_depth_for_every_logger(log_stream: io.StringIO):
    structlog.get_logger("ours").warning("a canary", nested={"list": ["canary", 1, None]}, thing=ValueError("canary"))
    logging.getLogger("theirs").error("their %s", "canary")
    try:
        raise RuntimeError("canary")
    except RuntimeError:
        structlog.get_logger("ours").exception("failed")
    assert "canary" not in log_stream.getvalue()
    first, second, third = lines(log_stream)
    assert first["nested"] == {"list": [MASK, 1, None]}
    assert second["event"] == f"their {MASK}"
    assert f"RuntimeError: {MASK}" in third["exception"]

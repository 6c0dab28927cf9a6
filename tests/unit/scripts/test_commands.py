"""External commands of the set-up script: time limit, log, progress."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from bootstrap.commands import Commands

pytestmark = pytest.mark.slow


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def commands(tmp_path: Path, messages: list[str]) -> Commands:
    return Commands(tmp_path, tmp_path / "logs", messages.append)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_failing_command_is_not_ok_and_shows_its_last_lines(commands: Commands):
    done = commands.run("bad", python("print(1); print(2); print(3); print(4); raise SystemExit(3)"), timeout_s=240)
    assert not done.ok
    assert done.tail == "2\n3\n4"


def test_command_past_its_deadline_is_terminated_with_its_children(commands: Commands, tmp_path: Path):
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('child', 'w').write(str(child.pid)); time.sleep(60)"
    )
    done = commands.run("slow", python(code), timeout_s=3)
    assert done.timed_out and not done.ok
    child = int((tmp_path / "child").read_text())
    assert _ended_within(child, 240.0)


def _ended_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]:
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False

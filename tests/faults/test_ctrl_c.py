"""Ctrl-C ends a command even if something that it waits for never returns."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.timeout(120)

SCRIPT = """
import os, time
with open({pipe!r}, "w") as pipe:
    pipe.write(f"{{os.getpid()}}\\n")
time.sleep(100_000)
async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="lexical"):
    return {{}}
"""
WITHOUT_IMPORT_LIMIT = """
import app.engine.import_check as check
check.SCRIPT_S = check.TOTAL_S = 100_000.0
from app.cli import main
main()
"""
"""The command line without a time limit on imports, so that only Ctrl-C can end one."""

RESOLVING = """
import socket, sys, threading
from app.console import event_loop
from cache.egress.resolver import SystemResolver

def look_up(host, port):
    print("asked", flush=True)
    threading.Event().wait()

async def resolve():
    resolver = SystemResolver(look_up)
    try:
        await resolver.resolve("a.test", 80)
    finally:
        resolver.close()

event_loop.run(resolve())
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Folder with an answer, and a judge file whose import writes its process id to a pipe and never returns."""
    (tmp_path / "answers" / "otter" / "hangs").mkdir(parents=True)
    (tmp_path / "answers" / "otter" / "hangs" / "answer_1.md").write_text("A bridge. See https://a.invalid/bridge.")
    (tmp_path / "judges").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "judges" / "hangs.py").write_text(SCRIPT.format(pipe=str(tmp_path / "pipe")))
    return tmp_path


@pytest.fixture
def importing(home: Path) -> Iterator[int]:
    pipe = os.open(home / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    yield pipe
    os.close(pipe)


@pytest.mark.parametrize(
    "arguments",
    [("evaluate", "--agent", "otter", "--model", "lexical"), ("capture", "--agent", "otter")],
    ids=lambda arguments: arguments[0],
)
def test_ctrl_c_ends_a_command_while_a_judge_file_is_imported(
    home: Path, importing: int, arguments: tuple[str, ...]
) -> None:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    mine = {"ASSAY_DATA_DIR": str(home / "data"), "ASSAY_JUDGES": str(home / "judges")}
    command = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_IMPORT_LIMIT, *arguments],
        cwd=home,
        env=outside | mine,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        select.select([importing], [], [], 60)
        judge = psutil.Process(int(os.read(importing, 100)))
        os.killpg(command.pid, signal.SIGINT)
        _, stderr_text = command.communicate(timeout=30)
    finally:
        command.kill()
        command.wait()
    assert command.returncode == 130, stderr_text
    assert stderr_text.splitlines()[-1].startswith("error: interrupted."), stderr_text
    assert "Traceback" not in stderr_text
    judge.wait(10)


def test_ctrl_c_ends_a_process_during_name_resolution() -> None:
    process = subprocess.Popen([sys.executable, "-c", RESOLVING], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"asked\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode not in (0, -signal.SIGKILL)

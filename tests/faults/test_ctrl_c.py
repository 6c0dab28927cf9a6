"""Ctrl-C ends a command even if something that it waits for never returns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

SCRIPT = """
import tempfile, time
tempfile.mkstemp()
time.sleep(100_000)
async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="lexical"):
    return {}
"""
WITHOUT_IMPORT_LIMIT = """
import app.engine.judge_files as check
check.SCRIPT_S = check.TOTAL_S = 100_000.0
from app.cli import main
main()
"""
"""The command line without a time limit on imports, so that only Ctrl-C can end one."""

RESOLVING = """
import socket, sys, threading
from app.console import event_loop
from cache.egress.proxy import SystemResolver

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
    """Folder with an answer, and a task file whose import creates a temporary file and never returns."""
    (tmp_path / "answers" / "otter" / "hangs").mkdir(parents=True)
    (tmp_path / "answers" / "otter" / "hangs" / "answer_1.md").write_text("A bridge. See https://a.invalid/bridge.")
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "hangs.py").write_text(SCRIPT)
    return tmp_path


def importing_process(command: subprocess.Popen[str]) -> psutil.Process:
    """Return the process that imports the task file, as soon as the file has created its temporary file."""
    while command.poll() is None:
        for server in psutil.Process(command.pid).children():
            with suppress(psutil.Error):
                arguments = server.cmdline()
                if "judges.isolation.fork_server" in arguments and any(Path(arguments[5]).glob("*/*")):
                    return server.children()[0]
        time.sleep(0.02)
    raise AssertionError(command.communicate()[1])


def test_ctrl_c_ends_a_command_while_a_judge_file_is_imported(home: Path) -> None:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    mine = {"ASSAY_DATA_DIR": str(home / "data"), "ASSAY_JUDGES": str(home / "judges")}
    command = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_IMPORT_LIMIT, "evaluate", "--agent", "otter", "--model", "lexical"],
        cwd=home,
        env=outside | mine,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        judge = importing_process(command)
        os.killpg(command.pid, signal.SIGINT)
        _, stderr_text = command.communicate(timeout=240)
    finally:
        command.kill()
        command.communicate()  # closes the pipe, which another test would report
    assert command.returncode == 130, stderr_text
    assert stderr_text.splitlines()[-1].startswith("Interrupted. Finished"), stderr_text
    assert "Traceback" not in stderr_text
    judge.wait(240)


def test_ctrl_c_ends_a_process_during_name_resolution() -> None:
    process = subprocess.Popen([sys.executable, "-c", RESOLVING], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"asked\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=240)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode not in (0, -signal.SIGKILL)

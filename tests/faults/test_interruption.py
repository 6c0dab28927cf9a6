"""Ctrl-C and SIGTERM end each command in each phase: once, with one message, and without a process left."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from tests.fakes.folders import service_folder
from tests.fakes.processes import kill_processes_of, left_after_a_while, processes_of
from tests.fakes.program import environment_for
from tests.fakes.sandbox import sandbox_variables
from tests.fakes.warm_start import COLD

pytestmark = [pytest.mark.browser, pytest.mark.postgres]

PATIENCE_S = 240.0
STUCK = """
import hashlib, subprocess, sys
from app.interruption import INTERRUPTION

INTERRUPTION.install()
child = subprocess.Popen(["sleep", "100000"])
print(child.pid, flush=True)
hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""
"""Process whose main thread is in a C function for minutes, so that it can handle no signal."""
IN_FUNCTION_S = 0.3
"""Processor time after the process ID was printed that only the C function can have used."""
FIRST_IMPORT = """
import signal, sys
from importlib.abc import MetaPathFinder

class Interrupting(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "app.interruption":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from app.cli import main
main()
"""
"""Command that gets Ctrl-C before it has imported what handles it."""


@dataclass
class Command:
    """Running command in its own process group, as in a terminal."""

    process: subprocess.Popen[bytes]
    log: Path
    home: Path

    def wait_until(self, is_reached: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_reached():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def interrupt(self, signum: int = signal.SIGINT, *, times: int = 1, is_group: bool = True) -> str:
        """Send the signal to the process group or the process, and return the output when the command has ended."""
        for _ in range(times):
            (os.killpg if is_group else os.kill)(self.process.pid, signum)
        self.process.wait(PATIENCE_S)
        return self.log.read_text()

    def left(self) -> list[psutil.Process]:
        """Return the processes that still use the folder of the command."""
        return processes_of(self.home)


@pytest.fixture
def home() -> Iterator[Path]:
    folder = service_folder("assay-interrupted-")
    yield folder
    kill_processes_of(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def start_command(*arguments: str, **variables: str) -> Command:
        env = environment_for(home, **{**sandbox_variables(), **variables})
        log = home / "log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [*COLD, *arguments], cwd=home, env=env, stdout=output, stderr=output, start_new_session=True
            )
        started.append(Command(process, log, home))
        return started[-1]

    yield start_command
    for command in started:
        command.process.kill()
        command.process.wait()


class SilentServer:
    """HTTP server that accepts requests and never responds."""

    def __init__(self) -> None:
        self.requested, self._ended = threading.Event(), threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requested.set()
                server._ended.wait()
                self.close_connection = True

            do_POST = do_GET

            def log_message(self, *_: object) -> None: ...

        return Handler

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def silent() -> Iterator[SilentServer]:
    server = SilentServer()
    yield server
    server.close()


def write_answer(home: Path, url: str) -> None:
    folder = home / "answers" / "otter" / "karrow_visit"
    folder.mkdir(parents=True)
    (folder / "answer_1.md").write_text(f"## Ferry\n- Leaves: 8:40\n- Arrives: 9:25\n- Source: {url}\n")


def assert_ended(command: Command, text: str, code: int) -> None:
    assert command.process.returncode == code, text
    assert len(re.findall("Interrupted", text)) == 1, text
    assert text.splitlines()[-1].startswith("Interrupted"), text
    assert "Traceback" not in text
    assert "Exception" not in text
    assert left_after_a_while(command.left) == []


@pytest.mark.parametrize(("signum", "code", "times"), [(signal.SIGINT, 130, 2), (signal.SIGTERM, 143, 1)])
def test_command_ends_while_a_browser_waits_for_a_page(
    home: Path, start: Callable[..., Command], silent: SilentServer, signum: int, code: int, times: int
) -> None:
    write_answer(home, f"{silent.url}/ferry")
    temporary = home / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    address = silent.url.removeprefix("http://")
    command = start("evaluate", "--agent", "otter", ASSAY_EGRESS_ALLOW=address, TMPDIR=str(temporary))
    command.wait_until(silent.requested.is_set)
    assert list(temporary.glob("assay-browser-*"))

    text = command.interrupt(signum, times=times)
    assert_ended(command, text, code)
    assert "Interrupted. Finished results are saved; run the same command to resume." in text
    assert list(temporary.glob("assay-*")) == []


def test_command_ends_while_a_model_does_not_reply(
    home: Path, start: Callable[..., Command], silent: SilentServer
) -> None:
    write_answer(home, f"{silent.url}/ferry")
    model = {"ASSAY_MODEL": "openai/gpt-6-luna", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{silent.url}/v1"}
    command = start("evaluate", "--agent", "otter", **model)
    command.wait_until(silent.requested.is_set)

    assert_ended(command, command.interrupt(), 130)


def test_worker_ends_with_its_database_and_browsers(start: Callable[..., Command]) -> None:
    command = start("serve", "--worker-only")
    command.wait_until(lambda: "worker is ready" in command.log.read_text())
    assert_ended(command, command.interrupt(), 130)


def test_service_ends_while_its_database_is_created(home: Path, start: Callable[..., Command]) -> None:
    command = start("serve", "--port", "0")
    command.wait_until(lambda: list((home / "data").glob("postgres*")))

    assert_ended(command, command.interrupt(is_group=False), 130)


def test_command_ends_quietly_before_it_handles_signals() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_IMPORT, "--version"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted\n")


def test_process_ends_although_its_main_thread_cannot_handle_signals() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        stuck = psutil.Process(process.pid)
        began_s = stuck.cpu_times().user
        while stuck.cpu_times().user < began_s + IN_FUNCTION_S:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (130, "Interrupted\n")
    child.wait(PATIENCE_S)

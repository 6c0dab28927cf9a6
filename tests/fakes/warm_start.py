"""Starts ``assay`` and ``mind2web2`` commands as forks of a process that has imported both programs already.

A command spends one to two seconds of CPU time on imports, and the tests start hundreds. A warm command differs from a
real one in nothing else: it is a process with its own files, environment, folder, arguments and signals. It starts the
trials of task files in the same way. Tests of kills, memory and imports start the real command.

``python -m tests.fakes.warm_start SOCKET`` serves ``warm_client`` until its standard input ends.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import io
import multiprocessing
import os
import pkgutil
import selectors
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

import app
import cache
from app import cli
from app.cli.program import run
from app.engine import judge_trials
from mind2web2 import cli as mind2web2_cli
from tests.fakes import warm_client

COLD = (sys.executable, "-m", "app.cli")
_ROOT = Path(__file__).parents[2]
_START_S = 240.0
_PROGRAMS: dict[str, Callable[[], int | None]] = {
    "assay": cli.main,
    "mind2web2": mind2web2_cli.main,
    "judge_trials": judge_trials.main,
}


@functools.cache
def _folder_of_programs() -> Path:
    """Start the process that forks, and return the folder of the warm programs."""
    folder = tempfile.mkdtemp(prefix="assay-warm-")
    address = Path(folder, "socket")
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.warm_start", str(address)], cwd=_ROOT, stdin=subprocess.PIPE
    )

    def stop() -> None:
        server.communicate()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    deadline = time.monotonic() + _START_S
    while not address.exists():
        assert server.poll() is None and time.monotonic() < deadline, "the process that forks did not start"
        time.sleep(0.01)
    for name in _PROGRAMS:
        program = Path(folder, name)
        program.write_text(f'#!/bin/sh\nexec {shlex.join(_client(str(address), name))} "$@"\n')
        program.chmod(0o755)
    return Path(folder)


def _client(address: str, name: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", warm_client.__file__, address, name)


def warm_assay() -> str:
    """Return the path of the warm ``assay``."""
    return str(_folder_of_programs() / "assay")


def warm_mind2web2() -> str:
    """Return the path of the warm ``mind2web2``."""
    return str(_folder_of_programs() / "mind2web2")


def warm_judge_trials() -> str:
    """Return the path of the program that commands start for a trial of a task file, warm."""
    return str(_folder_of_programs() / "judge_trials")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    folder: str
    arguments: list[str]
    environment: dict[str, str]
    files: list[int]

    def run(self) -> None:
        """Run in a child process that looks as if it had been started with the command."""
        for number, file in enumerate(self.files):
            os.dup2(file, number)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - until the process ends
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        time.tzset()
        sys.argv = self.arguments
        sys.exit(_PROGRAMS[sys.argv[0]]())


def _receive(connection: socket.socket) -> _Command | None:
    """Return the command of a client, or None if the client has been killed."""
    size, files, _, _ = socket.recv_fds(connection, warm_client.NUMBER_BYTES, 3)
    message = connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
    if len(files) < 3 or len(message) < int.from_bytes(size, "big"):
        return None
    folder, count, *texts = message.decode("utf-8", "surrogateescape").split("\0")
    arguments, environment = texts[: int(count)], texts[int(count) :]
    pairs = (text.partition("=") for text in environment)
    return _Command(
        folder=folder, arguments=arguments, environment={name: value for name, _, value in pairs}, files=files
    )


class _Server:
    """Forks a child for each connection, and sends its process id and later its exit code."""

    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{address}.new")
        self._listener.listen()
        os.rename(f"{address}.new", address)  # noqa: PTH104 - now that a client can connect
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Serve until standard input ends."""
        self._selector.register(self._listener, selectors.EVENT_READ, self._fork)
        self._selector.register(sys.stdin, selectors.EVENT_READ, sys.exit)
        while True:
            for key, _ in self._selector.select():
                key.data()

    def _fork(self) -> None:
        connection, _ = self._listener.accept()
        command = _receive(connection)
        if command is None:
            connection.close()
            return
        child = multiprocessing.get_context("fork").Process(target=command.run)
        child.start()
        for file in command.files:
            os.close(file)
        self._send(connection, child.pid or 0)
        self._selector.register(child.sentinel, selectors.EVENT_READ, lambda: self._end(child, connection))
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._kill(child, connection))

    def _kill(self, child: multiprocessing.process.BaseProcess, connection: socket.socket) -> None:
        """Kill the child of a client that has been killed."""
        with suppress(KeyError, ValueError):  # it has ended at the same time
            self._selector.unregister(connection)
            child.kill()

    def _end(self, child: multiprocessing.process.BaseProcess, connection: socket.socket) -> None:
        child.join()
        self._selector.unregister(child.sentinel)
        with suppress(KeyError):
            self._selector.unregister(connection)
        self._send(connection, child.exitcode or 0)
        connection.close()
        child.close()

    def _send(self, connection: socket.socket, number: int) -> None:
        with suppress(OSError):
            connection.sendall(number.to_bytes(warm_client.NUMBER_BYTES, "big", signed=True))


def _import_program() -> None:
    for package in (app, cache, mind2web2_cli):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__") and ".migrations." not in module.name:
                importlib.import_module(module.name)
    with redirect_stdout(io.StringIO()), suppress(SystemExit):
        run(["--version"])  # builds the command tree
    gc.freeze()


if __name__ == "__main__":
    _import_program()
    judge_trials.PROGRAM = _client(sys.argv[1], "judge_trials")
    _Server(sys.argv[1]).serve()

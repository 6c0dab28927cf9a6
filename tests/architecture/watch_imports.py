"""Import the modules named on standard input and print the side effects as JSON.

Only effects that are caused by the project's own code count, not those of the libraries that it imports.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

WATCHED = {
    "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.putenv",
    "socket.bind", "socket.connect", "socket.getaddrinfo", "sqlite3.connect", "subprocess.Popen", "tempfile.mkstemp",
    "tempfile.mkdtemp",
}  # fmt: skip
PROGRAM_FILES = (".py", ".pyc", ".so", ".zip")
STANDARD = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib"))
INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))


class Watch:
    """Recorder of side effects during the import of a module."""

    def __init__(self) -> None:
        self.module = ""
        self.effects: list[str] = []

    def record(self, effect: str) -> None:
        self.effects.append(f"{self.module}: {effect}")

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.module:
            return
        if event == "open":
            path = str(args[0])
            if not path.endswith(PROGRAM_FILES) and _is_project_code():
                self.record(f"opened {path}")
        elif event in WATCHED and _is_project_code():
            self.record(f"{event} {args}")


class WatchedEnvironment(os._Environ):
    """os.environ that records reads by the project's own code."""

    watch: Watch

    def __getitem__(self, key: str) -> str:
        if self.watch.module and _is_project_code():
            self.watch.record(f"read the environment variable {key}")
        value: str = super().__getitem__(key)
        return value


def _is_project_code() -> bool:
    """Return whether the innermost frame outside the standard library and this file is in the project's own code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(INSTALLED):
            return False
        if not file.startswith(("<", __file__, *STANDARD)):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def watching(watch: Watch, module: str) -> Iterator[None]:
    handlers, threads, output = len(logging.getLogger().handlers), set(threading.enumerate()), io.StringIO()
    with contextlib.redirect_stdout(output):
        watch.module = module
        yield
        watch.module = ""
    watch.module = module
    if output.getvalue():
        watch.record("wrote to standard output")
    if len(logging.getLogger().handlers) != handlers:
        watch.record("configured logging")
    watch.effects += [f"{module}: started thread {t.name}" for t in set(threading.enumerate()) - threads]
    watch.module = ""


def main() -> None:
    modules = json.load(sys.stdin)
    watch = Watch()
    os.environ.__class__ = WatchedEnvironment
    WatchedEnvironment.watch = watch
    sys.addaudithook(watch.audit)
    for module in modules:
        with watching(watch, module):
            importlib.import_module(module)
    json.dump(watch.effects, sys.stdout)


if __name__ == "__main__":
    main()

"""Fork server for workers: all modules are imported already, so a new worker starts in a tenth of a second.

``python -m tests.faults.fork_server`` reads one JSON object per line and answers each with a process id. When its input
ends, it kills the workers it started.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy.engine import make_url

from app.storage.database import Database

ROOT = Path(__file__).parents[2]


class WorkerForkServer:
    """Client of the fork server. The workers log to ``log``."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", "tests.faults.fork_server"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(240)
        self._process.stdout.close()

    def start(self, **options: Any) -> int:
        """Start a worker and return its process id, without waiting until it is ready."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(options) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def worker_url(database: Database) -> str:
    """Return the URL of a database with a worker's own session limits. Other tests raise those of this process, and a
    stopped worker would then block the others for a minute.
    """
    return make_url(database.url).difference_update_query(["options"]).render_as_string(hide_password=False)


def main() -> None:
    from tests.faults.worker import WorkerOptions, run_until_killed

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # reap killed children automatically
    children: list[int] = []
    for line in sys.stdin:
        options = WorkerOptions(**json.loads(line))
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(2, 1)
            try:
                asyncio.run(run_until_killed(options))
            except BaseException:  # noqa: BLE001 - the child must not go on as if it were the fork server
                traceback.print_exc()
            os._exit(1)
        children.append(child)
        print(child, flush=True)
    for child in children:
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main()

"""The real program in a separate process: ``assay serve`` on any free port, and other commands."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.fakes.prepared_database import prepare_database
from tests.fakes.warm_start import warm_assay

_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningService:
    """Running service at ``url`` that writes to ``log``."""

    process: subprocess.Popen[str]
    url: str
    port: int
    log: Path


def environment_for(home: Path, **variables: str) -> dict[str, str]:
    """Return a clean environment with the given variables; the data folder is in ``home``."""
    return clean_environment(**{"ASSAY_DATA_DIR": str(home / "data"), "ASSAY_MODEL": "lexical", **variables})


def clean_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without our settings and keys of models, plus the given variables."""
    ours = ("ASSAY_", "OPENAI_", "AZURE_", "AWS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | variables


@contextmanager
def running_service(
    home: Path,
    environment: Mapping[str, str],
    *arguments: str,
    program: Sequence[str] | None = None,
    creates_database: bool = False,
) -> Iterator[RunningService]:
    """Run ``assay serve`` during the block, then stop it normally. ``program``: ``COLD`` for tests of the process.

    ``creates_database``: the service creates its database itself, which takes two seconds of CPU time.
    """
    if not creates_database:
        prepare_database(home)
    command = [*(program or [warm_assay()]), "serve", "--port", "0", *arguments]
    log = home / "log"
    with log.open("a") as said:
        started = log.stat().st_size
        process = subprocess.Popen(command, env=dict(environment), cwd=home, stderr=said, stdout=said, text=True)
    try:
        url = _address(process, log, started)
        yield RunningService(process=process, url=url, port=int(url.rpartition(":")[2]), log=log)
    finally:
        process.terminate()
        try:
            process.wait(240)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_command(home: Path, environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run another command of the program to its end."""
    return subprocess.run(
        [warm_assay(), *arguments],
        env=dict(environment),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def private_database(home: Path) -> str:
    """Return the URL of the private database of the service that runs in ``home``."""
    folder = (home / "data/postgres/postmaster.pid").read_text().splitlines()[4].strip()
    return f"postgresql://postgres@/postgres?host={quote(folder, safe='')}"


def _address(process: subprocess.Popen[str], log: Path, started: int) -> str:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        said = re.findall(r"assay serves at (http://\S+?):? ", log.read_text()[started:])
        if said:
            return str(said[-1])
        time.sleep(0.05)
    raise AssertionError(f"assay serve did not start:\n{log.read_text()[started:]}")

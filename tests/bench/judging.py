"""Judging runs for measurement, each in a new process with a new model."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from tests.bench.inputs import answers_folder, cache_folder
from tests.bench.model import ROOT, Tally, running_model

MODEL = "gpt-4.1"
NO_LIMIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is judged and how. ``delay_s`` is the model's latency.

    ``route``: as ``assay evaluate``, or the public API with given page cache, client and semaphores and without a
    service. ``ticks``: measure the delay of the event loop, which uses processor time itself.
    """

    route: Literal["service", "toolkit"] = "service"
    answers: int = 23
    tiny: bool = False
    delay_s: float = 0.3
    max_tasks: int = 2
    max_answers: int = 3
    max_llm: int = 30
    ticks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Outcome of a run in seconds and bytes. ``late_s`` is the delay of the event loop, ``held_s`` the part in which
    its own thread was computing: maximum and 99th percentile.

    ``missing`` is the number of answers with a leaf that was not judged although its page is in the page cache. Memory
    is that above the start: at most, and at the end.
    """

    wall_s: float
    cpu_s: float
    memory_bytes: int
    end_bytes: int
    late_s: tuple[float, float]
    held_s: tuple[float, float]
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Measurements of a run by the process and by the model."""

    outcome: Outcome
    tally: Tally

    @property
    def cpu_ms_per_request(self) -> float:
        return 1000 * self.outcome.cpu_s / self.tally.requests


def measure(run: Run) -> Measured:
    """Execute a run.

    Raises:
        RuntimeError: The run failed or did not judge every answer; the message contains its output.
    """
    answers, pages = answers_folder(run.answers), cache_folder(tiny=run.tiny)
    with (
        running_model(delay_s=run.delay_s) as model,
        _folder() as place,
    ):
        # Linked instead of copied: existing files are replaced when they change, never modified in place.
        shutil.copytree(pages, Path(place) / "cache", copy_function=os.link)
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.judging_run", json.dumps(asdict(run)), str(answers), place],
            cwd=ROOT,
            env={**_environment(), "OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": model.base_url},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{run} failed:\n{done.stderr[-4000:]}")
        measured = Measured(outcome=Outcome(**json.loads(done.stdout.splitlines()[-1])), tally=model.tally())
    if measured.outcome.missing:
        raise RuntimeError(
            f"{run}: {measured.outcome.missing} answers were not judged to the end\n{done.stderr[-4000:]}"
        )
    return measured


@contextmanager
def _folder() -> Iterator[str]:
    """Yield a new folder. Its files are emptied after the block and removed when this process ends.

    ext4 does not reuse inodes that were freed in the last minutes, and processes that create files search past them:
    0.28 ms instead of 0.01 ms per file after 6,000 were removed, and a run creates 2,000.
    """
    place = tempfile.mkdtemp(prefix="assay-bench-run-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    yield place
    for file in Path(place).rglob("*"):
        if file.is_file() and file.stat().st_nlink == 1:  # pages are linked to those of other runs
            os.truncate(file, 0)


def _environment() -> dict[str, str]:
    """Return our environment with bytecode caching enabled, because compiling modules is not part of the measured
    work.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

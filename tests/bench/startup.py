"""Start-up of the commands: real processes, measured from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from app.storage.embedded import EmbeddedPostgres
from tests.bench.inputs import AGENT, TASKS, answers_folder, cache_folder, scripts_folder
from tests.bench.row import Row
from tests.bench.watching import family_cpu_s
from tests.fakes.folders import service_folder
from tests.fakes.sandbox import sandbox_variables

ASSAY = (sys.executable, "-m", "app.cli")
READY = "worker is ready"
_END_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Seconds until a command has reached a point, and the CPU time of all its processes until then."""

    wall_s: float
    cpu_s: float


def of_command(*arguments: str, env: Mapping[str, str]) -> Start:
    """Run a command to its end.

    Raises:
        RuntimeError: The command crashed.
    """
    before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([*ASSAY, *arguments], env=env, capture_output=True, text=True, check=False)
    wall_s, after = time.perf_counter() - began, getrusage(RUSAGE_CHILDREN)
    if "Traceback" in done.stderr:
        raise RuntimeError(done.stderr)
    return Start(wall_s=wall_s, cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def until_first_request(env: Mapping[str, str]) -> Start:
    """Judge one answer, whose pages are in a page cache, until its first model request.

    Raises:
        RuntimeError: The command ended without a model request.
    """
    task = TASKS[0].id
    asked, answer = threading.Event(), threading.Event()

    class FirstRequest(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.set()
            answer.wait(_END_S)  # the command computes nothing while its first request is measured
            self.send_error(400)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with (
        tempfile.TemporaryDirectory(prefix="assay-bench-") as place,
        ThreadingHTTPServer(("127.0.0.1", 0), FirstRequest) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        shutil.copytree(answers_folder(23) / AGENT / task, Path(place, "answers", AGENT, task))
        for path in Path(place, "answers", AGENT, task).glob("answer_[!1].md"):
            path.unlink()
        arguments = ["evaluate", "--agent", AGENT, "--model", "openai/gpt-4.1", "--judges", str(scripts_folder())]
        arguments += ["--answers", f"{place}/answers", "--out", f"{place}/out", "--cache", f"{place}/cache"]
        shutil.copytree(cache_folder(tiny=True), Path(place, "cache"), copy_function=os.link)
        model = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1"}
        began = time.perf_counter()
        with subprocess.Popen(
            [*ASSAY, *arguments], env={**env, **model, "ASSAY_DATA_DIR": f"{place}/data"},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            try:
                while not asked.wait(0.01):
                    if process.poll() is not None:
                        raise RuntimeError(f"no model request:\n{process.stderr.read() if process.stderr else ''}")
                return Start(wall_s=time.perf_counter() - began, cpu_s=family_cpu_s(process.pid))
            finally:
                answer.set()
                process.terminate()
                server.shutdown()


def until_worker_is_ready(env: Mapping[str, str]) -> Start:
    """Start a worker on a database that exists.

    Raises:
        RuntimeError: The worker ended before it was ready.
    """
    began = time.perf_counter()
    with subprocess.Popen([*ASSAY, "serve", "--worker-only"], env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        try:
            for line in process.stderr:
                if READY in line:
                    return Start(wall_s=time.perf_counter() - began, cpu_s=family_cpu_s(process.pid))
                said += line
            raise RuntimeError(f"the worker is not ready:\n{said}")
        finally:
            process.terminate()


@contextmanager
def _environment() -> Iterator[dict[str, str]]:
    """Yield an environment with a data folder of its own and bytecode files, as after ``make setup``."""
    folder = service_folder("assay-bench-")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "OPENAI_"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        yield {**kept, **sandbox_variables(), "ASSAY_DATA_DIR": str(folder / "data"), "ASSAY_MODEL": "lexical"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def startup() -> Iterator[Row]:
    with _environment() as env:
        of_command("--help", env=env)  # reads the files from disk once
        yield _wall_row("assay --help", of_command("--help", env=env), 0.3)
        seen = until_first_request(env)
        yield Row(
            what="CPU of assay evaluate, one answer with cached pages, before the first model request",
            toolkit="",
            target="<= 1.5 s",
            ours=f"{seen.cpu_s:.2f} s",
            met=seen.cpu_s <= 1.5,
            note=f"all processes; {seen.wall_s:.1f} s in all",
        )
        yield _wall_row("assay admin doctor", of_command("admin", "doctor", env=env), 3.0)
        server = EmbeddedPostgres(Path(env["ASSAY_DATA_DIR"]))
        try:
            shared = {**env, "ASSAY_DATABASE_URL": server.start()}
            until_worker_is_ready(shared)  # creates the tables
            yield _wall_row("assay serve --worker-only, until it is ready", until_worker_is_ready(shared), 2.0)
        finally:
            server.stop()


def _wall_row(what: str, seen: Start, target_s: float) -> Row:
    return Row(
        what=what,
        toolkit="",
        target=f"<= {target_s:g} s",
        ours=f"{seen.wall_s:.2f} s",
        met=seen.wall_s <= target_s,
        note=f"{seen.cpu_s:.2f} s of CPU in all processes",
    )

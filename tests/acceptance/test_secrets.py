"""Search for secrets: no artefact of the service contains one of the canaries."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from tests.acceptance.conftest import COOKIE
from tests.fakes.loop_thread import entered_in_thread
from tests.fakes.patient_http import PatientTransport
from tests.fakes.program import environment_for, private_database, run_command, running_service
from tests.fakes.sandbox import sandbox_variables
from tests.standin.llm import StandInLLM

pytestmark = [pytest.mark.postgres, pytest.mark.browser]

MIN_CANARY_CHARS = 16
"""Minimum length of a canary; shorter texts can occur by chance."""
MODEL_KEY = "sk-canary4f1e9c77ab0253d6e8"
CONFIGURED = "canary-configured-55c0e1d9b3"
AWS_SECRET = "canary-aws-secret-a83f20c4"
MAPS_KEY = "canary-maps-18d2fe60c5"

JUDGE = """
from judges.registry import judge

@judge(task="sky", description="Say what colour the sky is.", version="1")
async def sky(ctx):
    ctx.verify("blue", "The sky is blue", sources=["SITE/sky"])
"""
RAISES = """
import os
from judges.registry import judge

@judge(task="raises", description="x", version="1")
async def raises(ctx):
    print(dict(os.environ))
    raise RuntimeError(f"all I know: {dict(os.environ)}")
"""


@pytest.fixture
def home(sky: str, service_home: Path) -> Path:
    for name, mode in (("judges", 0o755), ("temporary", 0o777)):
        (service_home / name).mkdir()
        (service_home / name).chmod(mode)
    (service_home / "judges" / "sky.py").write_text(JUDGE.replace("SITE", sky))
    (service_home / "judges" / "raises.py").write_text(RAISES)
    return service_home


@contextmanager
def model() -> Iterator[StandInLLM]:
    """Stand-in model in a separate thread that accepts only one key."""
    with entered_in_thread(server := StandInLLM(api_key=MODEL_KEY, rule=lambda call: True)):
        yield server


class Search:
    """Searches for canaries and records where they occur."""

    def __init__(self, *canaries: str) -> None:
        assert all(len(canary) >= MIN_CANARY_CHARS for canary in canaries)
        self._canaries = [canary.encode() for canary in canaries]
        self.searched = 0
        self.found: list[str] = []

    def bytes(self, where: str, data: bytes) -> None:
        self.searched += 1
        self.found += [f"{where}: {canary[:12].decode()}..." for canary in self._canaries if canary in data]

    def folder(self, folder: Path) -> None:
        for inside, _, names in os.walk(folder):  # os.walk skips folders that disappear meanwhile
            for path in (Path(inside, name) for name in names):
                try:
                    if path.is_file() and not path.is_symlink():
                        self.bytes(str(path), path.read_bytes())
                except OSError:
                    pass  # deleted meanwhile

    def database(self, url: str) -> None:
        """Search every row of every table, as text."""
        with psycopg.connect(url) as connection:
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            for (table,) in tables:
                for (row,) in connection.execute(f"SELECT t::text FROM {table} t").fetchall():
                    self.bytes(f"table {table}", row.encode())

    def processes(self, service: psutil.Process) -> None:
        """Search every command line, and the environment of the processes below the service.

        The browser's driver is our own program and inherits our environment; the processes that it starts do not.
        """
        for process in service.children(recursive=True):
            try:
                command = process.cmdline()
                self.bytes(f"command line of {command[:3]}", " ".join(command).encode())
                if "run-driver" not in command:
                    self.bytes(f"environment of {command[:3]}", json.dumps(process.environ()).encode())
            except psutil.Error:
                pass  # ended meanwhile, or not accessible
        self.bytes("our own command line", " ".join(service.cmdline()).encode())


def test_no_secret_is_in_any_artefact(home: Path, sky: str):
    with model() as llm:
        environment = environment_for(
            home,
            ASSAY_JUDGES=str(home / "judges"),
            ASSAY_MODEL="openai/some-model",
            ASSAY_EGRESS_ALLOW=sky.removeprefix("http://"),
            ASSAY_API_KEYS=CONFIGURED,
            ASSAY_LOG_LEVEL="debug",
            OPENAI_API_KEY=MODEL_KEY,
            OPENAI_BASE_URL=llm.base_url,
            AWS_SECRET_ACCESS_KEY=AWS_SECRET,
            GOOGLE_MAPS_API_KEY=MAPS_KEY,
            TMPDIR=str(home / "temporary"),
            **sandbox_variables(),
        )
        stored = json.loads(
            run_command(
                home, environment, "admin", "keys", "create", "--owner", "a", "--scope", "admin", "--json"
            ).stdout
        )
        _, _, secret_part = stored["key"].split("_", 2)  # the secret part may contain further underscores
        search = Search(MODEL_KEY, CONFIGURED, AWS_SECRET, MAPS_KEY, COOKIE, stored["key"], secret_part)
        with (
            running_service(home, environment, "--workers", "1") as service,
            httpx.Client(base_url=service.url, trust_env=False, transport=PatientTransport(), timeout=240) as api,
        ):
            process = psutil.Process(service.process.pid)
            api.headers["Authorization"] = f"Bearer {CONFIGURED}"
            jobs = [submitted(api, task, sky) for task in ("sky", "raises")]
            read: list[dict] = []
            while not read or any(job["finished_at"] is None for job in read):
                search.processes(process)
                search.folder(home / "temporary")  # browser profiles, while they exist
                time.sleep(0.05)
                read = [api.get(url).json() for url in jobs]
            assert [job["status"] for job in read] == ["succeeded", "failed"], read
            assert llm.calls
            for path in (
                *jobs,
                f"/v1/results/{read[0]['result_id']}",
                "/v1/results",
                "/v1/pages",
                "/metrics",
                "/openapi.json",
            ):
                search.bytes(path, api.get(path).content)
            for page in api.get("/v1/pages").json()["items"]:
                search.bytes("page", api.get(f"/v1/pages/{page['id']}").content)
            stored_headers = {"Authorization": f"Bearer {stored['key']}"}
            search.bytes("figures", api.get("/metrics", headers=stored_headers).content)
            search.bytes("refusal", api.get("/v1/jobs", headers={"Authorization": f"Bearer {CONFIGURED}x"}).content)
            search.database(private_database(home))
            made = run_command(home, environment, "admin", "backup", str(home / "backup"))
            search.bytes("command", (made.stdout + made.stderr).encode())
            # Bundles are not compressed, so the search of the folder covers their content.
            bundle = ("bundle", "export", "--agent", "a", "--out", str(home / "bundle.zip"))
            made = run_command(home, environment, *bundle)
            assert made.returncode == 0, made.stderr
            search.bytes("command", (made.stdout + made.stderr).encode())
        search.folder(home)
    assert search.searched > 200
    assert sorted(set(search.found)) == []


def submitted(api: httpx.Client, task: str, site: str) -> str:
    body = {"agent": "a", "task_id": task, "answers": [{"name": "answer_1", "text": f"Blue, see {site}/sky"}]}
    response = api.post("/v1/submissions", json=body, headers={"Idempotency-Key": f"once-{task}"})
    assert response.status_code == 202, response.text
    url: str = response.json()["jobs"][0]["url"]
    return url

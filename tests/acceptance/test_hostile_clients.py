"""Hostile clients of the real service, and mistakes of an operator."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.fakes.folders import service_folder
from tests.fakes.program import environment_for, run_command, running_service

pytestmark = pytest.mark.postgres


@pytest.fixture
def home() -> Iterator[Path]:
    folder = service_folder("assay-acceptance-")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_public_address_requires_an_api_key(home: Path):
    environment = environment_for(home)
    refused = run_command(home, environment, "serve", "--host", "0.0.0.0", "--port", "0", "--workers", "0")
    assert refused.returncode == 1
    assert "assay admin keys create" in refused.stderr
    made = run_command(home, environment, "admin", "keys", "create", "--owner", "team", "--scope", "read", "--json")
    key = json.loads(made.stdout)
    with running_service(home, environment, "--host", "0.0.0.0", "--workers", "0") as service:
        url = f"http://127.0.0.1:{service.port}/v1/jobs"
        headers = {"Authorization": f"Bearer {key['key']}"}
        assert httpx.get(url, trust_env=False).status_code == 401
        assert httpx.get(url, headers=headers, trust_env=False).status_code == 200
        listed = run_command(home, environment, "admin", "keys", "list", "--json")
        assert [item["state"] for item in json.loads(listed.stdout)["items"]] == ["good"]
        assert key["key"] not in listed.stdout
        unknown = run_command(home, environment, "admin", "keys", "revoke", "nothing")
        assert (unknown.returncode, len(unknown.stderr.splitlines())) == (2, 1), unknown.stderr
        assert run_command(home, environment, "admin", "keys", "revoke", key["id"]).returncode == 0
        revoked = time.monotonic()
        while httpx.get(url, headers=headers, trust_env=False).status_code == 200:
            assert time.monotonic() - revoked <= 240
            time.sleep(0.1)
        with_key = environment | {"ASSAY_API_KEY": key["key"]}
        asked_by_command = run_command(home, with_key, "admin", "jobs", "--url", service.url)
        assert asked_by_command.returncode == 2
        assert "ASSAY_API_KEY" in asked_by_command.stderr

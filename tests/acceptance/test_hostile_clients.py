"""Hostile clients of the real service, and mistakes of an operator."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.fakes.folders import service_folder
from tests.fakes.program import RunningService, environment_for, run_command, running_service
from tests.fakes.warm_start import COLD

pytestmark = pytest.mark.postgres

MB = 1_000_000
HUNDRED_MB = 100 * MB


@pytest.fixture
def home() -> Iterator[Path]:
    folder = service_folder("assay-acceptance-")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


class Memory:
    """Records how far the memory of a process exceeds its initial memory."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._stop = threading.Event()
        self._before = self._most = self._process.memory_info().rss
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            with suppress(psutil.NoSuchProcess):
                self._most = max(self._most, self._process.memory_info().rss)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_ended: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def grown(self) -> int:
        return self._most - self._before


def pour(service: RunningService, head: str, *, chunked: bool) -> bytes:
    """Send 100 MB until the server closes the connection, and return its response.

    The response is read while sending, because the server resets the connection a while after its response.
    """
    part, received = b"x" * MB, bytearray()

    def read() -> None:
        with suppress(OSError):
            while more := client.recv(65536):
                received.extend(more)

    with socket.create_connection(("127.0.0.1", service.port), timeout=240) as client:
        client.sendall(head.encode())
        reader = threading.Thread(target=read)
        reader.start()
        with suppress(OSError):  # the server has closed the connection
            for _ in range(HUNDRED_MB // MB):
                client.sendall(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
        reader.join()
    return bytes(received)


def test_hundred_megabytes_are_rejected_without_using_memory(home: Path):
    with running_service(home, environment_for(home), "--workers", "0", program=COLD) as service:
        httpx.post(
            f"{service.url}/v1/submissions", json={}, trust_env=False
        )  # warm up, so that one-time imports do not count
        start = f"POST /v1/submissions HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Type: application/json\r\n"
        for length, chunked in ((f"Content-Length: {HUNDRED_MB}", False), ("Transfer-Encoding: chunked", True)):
            with Memory(service.process.pid) as memory:
                answer = pour(service, f"{start}{length}\r\n\r\n", chunked=chunked)
            assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "TOO_LARGE"
            assert memory.grown < 32 * 1024 * 1024, (length, memory.grown)
        assert httpx.get(f"{service.url}/readyz", trust_env=False).status_code == 200


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
        for command in (("revoke",), ("create", "--replaces")):
            unknown = run_command(home, environment, "admin", "keys", *command, "nothing")
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

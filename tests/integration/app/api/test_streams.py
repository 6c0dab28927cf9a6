"""Event streams over real sockets: many concurrent, aborted, slow and resumed clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI

from app.progress import Progress, Stage
from app.server.application import create_app
from app.storage import jobs as rows
from app.storage.database import Database
from app.storage.records import Job
from assay_client.wire import EventReader
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.fakes.web_server import served
from tests.integration.app.api.api_calls import submission_body

pytestmark = pytest.mark.postgres

MANY = 30


@pytest.fixture
def app(database_url: str, judges: Path, tmp_path: Path) -> FastAPI:
    chosen = settings_for_tests(data_dir=tmp_path / "data", database_url=database_url)
    return create_app(chosen, workers=0, runtime=scripted_runtime(judges))


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    with served(app) as url:
        yield url


@pytest.fixture
async def api(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=240) as client:
        yield client


class Stream:
    """One open event stream, read from a raw socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def events(self) -> list[tuple[str, dict]]:
        """Return (id, job) of each event until the stream ends."""
        found, reader = [], EventReader()
        async with asyncio.timeout(240):
            async for raw in self.reader:
                line = raw.decode().strip()
                if line == "0":  # the last chunk
                    break
                event = reader.feed(line)
                if event is not None:
                    found.append((event.id or "", event.data))
        return found

    async def vanish(self) -> None:
        """Abort the connection, like a killed client."""
        self.writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


OpenStream = Callable[..., Awaitable[Stream]]


@pytest.fixture
async def open_stream(url: str) -> AsyncIterator[OpenStream]:
    """Return a factory for streams, which are closed after the test."""
    streams: list[Stream] = []

    async def one(job_id: str, *, after: str = "") -> Stream:
        host = urlsplit(url)
        reader, writer = await asyncio.open_connection(host.hostname, host.port, limit=4096)
        resume = f"Last-Event-ID: {after}\r\n" if after else ""
        writer.write(f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: {host.netloc}\r\n{resume}\r\n".encode())
        streams.append(Stream(reader, writer))
        return streams[-1]

    yield one
    for stream in streams:
        await stream.vanish()


async def open_many(open_stream: OpenStream, job_id: str) -> list[Stream]:
    """Open ``MANY`` streams one after the other, because a busy server rejects concurrent connections."""
    streams = []
    for _ in range(MANY):
        streams.append(await open_stream(job_id))
        head = await asyncio.wait_for(streams[-1].reader.readuntil(b"\r\n\r\n"), 240)
        assert head.startswith(b"HTTP/1.1 200 "), head
    return streams


async def new_job(api: httpx.AsyncClient) -> str:
    response = await api.post("/v1/submissions", json=submission_body())
    job_id: str = response.json()["jobs"][0]["id"]
    return job_id


async def claim_job(database: Database, job_id: str) -> Job:
    async with database.begin() as connection:
        job = await rows.get_job(connection, job_id)
        assert job is not None
        assert job.queue_id is not None
        running = await rows.claim(connection, job_id, job.queue_id, now=job.created_at)
    assert running is not None
    return running


async def write_progress(database: Database, job: Job, leaves: int) -> None:
    async with database.begin() as connection:
        await rows.write_progress(connection, job.fence, Progress(stage=Stage.JUDGING, leaves_done=leaves))


async def wait_until(condition) -> None:
    async with asyncio.timeout(240):
        while not condition():  # noqa: ASYNC110 - changed by another thread
            await asyncio.sleep(0.05)


async def test_aborted_clients_are_removed(app: FastAPI, open_stream: OpenStream, api: httpx.AsyncClient):
    job_id = await new_job(api)
    service = app.state.service
    streams = await open_many(open_stream, job_id)
    await wait_until(lambda: service.events.followers == MANY)
    for stream in streams:
        await stream.vanish()
    await wait_until(lambda: service.events.followers == 0)
    assert not service.streams._open
    assert (await api.get(f"/v1/jobs/{job_id}")).status_code == 200


async def test_resumed_stream_starts_with_current_state(
    open_stream: OpenStream, api: httpx.AsyncClient, database: Database
):
    job_id = await new_job(api)
    first = await open_stream(job_id)
    line = b""
    while not line.startswith(b"id: "):
        line = await first.reader.readline()
    await first.vanish()
    job = await claim_job(database, job_id)
    await write_progress(database, job, 3)
    again = await open_stream(job_id, after=line[4:].decode().strip())
    await api.post(f"/v1/jobs/{job_id}/cancel")
    events = await again.events()
    assert events[0][1]["progress"]["leaves_done"] == 3
    assert events[-1][1]["status"] == "cancelled"

"""Life cycle of the embedded PostgreSQL. Each test starts its own server."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from app.storage.embedded import EmbeddedPostgres
from app.storage.errors import DataFolderRefused
from tests.fakes.folders import service_folder

pytestmark = pytest.mark.postgres

HOLD = """
import sys
from pathlib import Path
from app.storage.embedded import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.start()
print("started", flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    path = service_folder("assay-test-")
    yield path
    leftover = EmbeddedPostgres(path)
    if (path / "postgres").exists():
        # Joining and leaving as the last process stops a server that a failed test left running.
        leftover.start()
        leftover.stop()
    shutil.rmtree(path, ignore_errors=True)


def is_running(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=240) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def start_in_other_process(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert "started\n" in iter(process.stdout.readline, "")
    return process


def test_server_keeps_data_across_restart_and_listens_only_on_a_private_socket(folder: Path):
    (folder / "postgres.new").mkdir()  # an interrupted first start
    (folder / "postgres.new" / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(folder)
    url = server.start()
    assert server.exclusive
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert connection.execute("SHOW unix_socket_permissions").fetchone() == ("0700",)
    pgdata = folder / "postgres"
    assert pgdata.stat().st_mode & 0o077 == 0
    second = EmbeddedPostgres(folder)
    second.start()
    assert not second.exclusive
    second.stop()
    assert is_running(url)
    server.stop()
    assert not is_running(url)
    (pgdata / "PG_VERSION").write_text("15\n")
    with pytest.raises(DataFolderRefused, match="created by PostgreSQL 15"):
        server.start()
    (pgdata / "PG_VERSION").write_text("18\n")
    url = server.start()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    server.stop()
    if os.geteuid() == 0:  # only root can give a folder to somebody else
        owner = pgdata.stat().st_uid
        os.chown(pgdata, 12345, 12345)
        with pytest.raises(DataFolderRefused, match="belongs to user 12345"):
            server.start()
        assert pgdata.stat().st_uid == 12345
        os.chown(pgdata, owner, -1)


def test_server_of_killed_process_is_adopted_and_stopped(folder: Path):
    with start_in_other_process(folder) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
    server = EmbeddedPostgres(folder)
    url = server.start()
    assert server.exclusive
    with start_in_other_process(folder) as other:
        server.stop()
        assert is_running(url)
        other.communicate("")
    assert other.returncode == 0
    assert not is_running(url)  # the last process stops the server


async def test_server_that_was_killed_is_started_again_at_the_same_address(folder: Path):
    subfolder = "x" * 100 + "/it's a folder"  # too long for a socket
    async with EmbeddedPostgres(folder / subfolder).running() as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept (value int)")
        lines = (folder / subfolder / "postgres" / "postmaster.pid").read_text().splitlines()
        os.kill(int(lines[0]), signal.SIGKILL)
        async with asyncio.timeout(240):
            while not is_running(url):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    assert not is_running(url)


def test_server_restarts_while_old_child_processes_are_running(folder: Path):
    server = EmbeddedPostgres(folder)
    server.start()
    postmaster = psutil.Process(int((folder / "postgres" / "postmaster.pid").read_text().splitlines()[0]))
    helper = postmaster.children()[0]
    helper.suspend()  # so that it does not notice the end of the other processes
    postmaster.kill()
    woken = threading.Timer(0.5, helper.resume)
    woken.start()
    again = EmbeddedPostgres(folder)
    assert is_running(again.start())
    woken.join()
    again.stop()
    server.stop()

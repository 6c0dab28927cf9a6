"""The Python environment in ``.venv``, filled from the hashed locks and nothing else.

Works without ensurepip, which Debian keeps in a package of its own, and without uv, which does not read pip's
configuration and so may not reach an index that pip does.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bootstrap.commands import Commands, Finished
from bootstrap.errors import SetupFailed
from bootstrap.system_packages import SystemPackages

BOOTSTRAP_LOCK = "requirements-bootstrap.lock"
SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

CREATE_TIMEOUT_S = 180.0
ASK_TIMEOUT_S = 60.0
UV_TIMEOUT_S = 600.0
PIP_TIMEOUT_S = 1200.0

INDEX_REMEDY = (
    "check that this machine reaches a Python package index (try 'python3 -m pip download uv'); behind a proxy or with "
    "an index of your own, set it in pip's configuration: set-up follows it. Then run the same command again"
)


class Environment:
    """``.venv`` of one checkout. ``has_module`` tells which modules the running Python can import."""

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

    def is_sound(self) -> bool:
        """Whether it was made here, by an interpreter of the version that runs now, and still starts."""
        try:
            made_here = str(self.folder) in (self.folder / "bin" / "activate").read_text("utf-8")
        except OSError:
            return False
        version = f"import sys; raise SystemExit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
        return made_here and self._commands.run("python", [str(self.python), "-c", version], timeout_s=30).ok

    def create(self) -> None:
        """Make the environment anew.

        Raises:
            SetupFailed: nothing on this machine can make one.
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
                f"the environment {self.folder} could not be made", remedy=f"see the log; {_disk_hint()}", log=made.log
            )

    def _clear(self) -> None:
        """Remove what an earlier environment left, but not the logs of this very run."""
        if not self.folder.is_dir():
            return
        for child in self.folder.iterdir():
            if child.is_symlink() or child.is_file():
                child.unlink()
            elif child.name != "setup":
                shutil.rmtree(child)

    def _install_ensurepip(self) -> None:
        """Debian and Ubuntu split it off python3; as root we may fetch it, else we say what to type."""
        wanted = [f"python{sys.version_info.major}.{sys.version_info.minor}-venv"]
        remedy = self._packages.remedy(wanted)
        if not self._packages.usable:
            raise SetupFailed("this Python cannot make environments: its module ensurepip is missing", remedy=remedy)
        done = self._packages.install("python-venv", wanted)
        if not done.ok:
            raise SetupFailed(f"{wanted[0]} could not be installed", remedy=remedy, log=done.log)

    def install(self, lock: str) -> str:
        """Install everything in ``lock`` (a file name) and the project itself; returns which installer did it.

        Raises:
            SetupFailed: neither uv nor pip could; the log names the package.
        """
        pip = self._pip()
        uv = self._bring_build_tools(pip)
        if uv is not None:
            install, env = [uv, "pip", "install", "--python", str(self.python)], self._uv_environment(pip)
            command = [*install, *_locked(lock)]
            done = self._commands.run("packages-uv", command, timeout_s=UV_TIMEOUT_S, env=env)
            if done.ok or pip is None:
                _demand(done, f"the packages of {lock}")
                self._install_project(install, env)
                return "uv"
        assert pip is not None  # noqa: S101 - without pip there was uv, or we would not be here
        done = self._commands.run("packages-pip", [*pip, "install", *_locked(lock)], timeout_s=PIP_TIMEOUT_S)
        _demand(done, f"the packages of {lock}")
        self._install_project([*pip, "install"], {})
        return "pip"

    def _install_project(self, install: list[str], env: Mapping[str, str]) -> None:
        command = [*install, "--no-deps", "--no-build-isolation", "--editable", str(self.folder.parent)]
        _demand(self._commands.run("project", command, timeout_s=UV_TIMEOUT_S, env=env), "the project itself")

    def _bring_build_tools(self, pip: list[str] | None) -> str | None:
        """Install what builds packages, and uv with it; returns the uv to go on with, None to go on with pip."""
        if pip is None:
            uv = shutil.which("uv")
            if uv is None:
                raise SetupFailed("there is neither pip nor uv", remedy=self._packages.remedy(["python3-venv"]))
            command = [uv, "pip", "install", "--python", str(self.python), *_locked(BOOTSTRAP_LOCK)]
            _demand(self._commands.run("tools-uv", command, timeout_s=UV_TIMEOUT_S), "the build tools")
            return uv
        if self._commands.run("tools", [*pip, "install", *_locked(BOOTSTRAP_LOCK)], timeout_s=PIP_TIMEOUT_S).ok:
            return str(self.folder / "bin" / "uv")
        fewer = self.folder / "setup" / "without-uv.lock"  # an index may lack uv, or a wheel of it for this machine
        fewer.write_text(without((self.folder.parent / BOOTSTRAP_LOCK).read_text("utf-8"), "uv"), "utf-8")
        done = self._commands.run("tools-pip", [*pip, "install", *_locked(str(fewer))], timeout_s=PIP_TIMEOUT_S)
        _demand(done, "the build tools")
        return None

    def _pip(self) -> list[str] | None:
        """How to call a pip that installs into the environment: its own, or the system's on its behalf."""
        own = [str(self.python), "-m", "pip"]
        quiet = ["--disable-pip-version-check", "--no-input"]
        if self._commands.run("pip", [*own, "--version"], timeout_s=ASK_TIMEOUT_S).ok:
            return [*own, *quiet]
        if self._has_module("pip"):  # 22.3 or newer can install for another environment
            return [sys.executable, "-m", "pip", "--python", str(self.python), *quiet]
        return None

    def _uv_environment(self, pip: list[str] | None) -> dict[str, str]:
        """What the person configured for pip, in uv's words. What was set for uv itself wins."""
        settings = {}
        if pip is not None:
            asked = self._commands.run("pip-config", [*pip, "config", "list"], timeout_s=ASK_TIMEOUT_S)
            settings = parse_pip_configuration(asked.log.read_text("utf-8", "replace")) if asked.ok else {}
        env = uv_environment(settings, system_certificates=SYSTEM_CERTIFICATES.exists())
        if not os.access(Path.home(), os.W_OK):  # service users have no home to keep a cache in
            env["UV_CACHE_DIR"] = str(self.folder / "setup" / "uv-cache")
        return {name: value for name, value in env.items() if name not in os.environ}


def parse_pip_configuration(listing: str) -> dict[str, str]:
    """Read the lines of ``pip config list``; of several sections the last one counts, as it does for pip.

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
    """The variables that make uv trust and ask whom pip does; ``settings`` by pip's names."""
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


def without(lock: str, package: str) -> str:
    """The lock text less the entry of one package.

    >>> without("a==1 --hash=x\\n    # via b\\nuv==2 --hash=y\\n    # via b\\n", "uv")
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
    """The arguments that install exactly what the lock files hold: every byte hashed, no build tool fetched aside."""
    files = [argument for lock in locks for argument in ("-r", lock)]
    return ["--require-hashes", "--no-build-isolation", *files]


def _demand(done: Finished, what: str) -> None:
    if not done.ok:
        end = "took too long" if done.timed_out else "could not be installed"
        raise SetupFailed(f"{what} {end}: {done.tail}", remedy=INDEX_REMEDY, log=done.log)


def _disk_hint() -> str:
    return "is the folder writable and is there space left?"

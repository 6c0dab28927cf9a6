"""Browser launch: sandboxed, as an unprivileged user, and never outliving this process.

The launched program is a start script. If the service runs as root, the script gives the browser profile to an
unprivileged user. It drops all privileges and starts a watchdog. The watchdog kills the browser's process group when
the pipe that this process holds open is closed, however this process ends.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

from cache.errors import BrowserUnavailable, SandboxUnavailable

FLAGS: tuple[str, ...] = (
    # Allow only traffic through the proxy: no UDP, no prefetching, no vendor services.
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--no-pings",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-speech-api",
    "--disable-print-preview",
    "--deny-permission-prompts",
    "--block-new-web-contents",  # no popups: closing one while it opens can block its opener forever
    # Limit the resources of a page.
    "--js-flags=--max-old-space-size=768",
    "--disk-cache-size=1",
    "--media-cache-size=1",
)
SANDBOX_ERRORS = (
    "No usable sandbox",
    "Running as root without --no-sandbox",
    "Failed to move to new namespace",
    "namespace sandbox",
    "setuid sandbox",
)
_UNPRIVILEGED_USER = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A prepared launch: start script, environment, and the folder that contains both.

    ``lifeline``: writing end of the watchdog's pipe. Closing it kills the browser.
    """

    script: Path
    folder: Path
    environment: dict[str, str]
    lifeline: RawIOBase

    def browser_pid(self) -> int:
        """Return the process id of the browser. Call this only after the browser has responded."""
        return int((self.folder / "pid").read_text(encoding="ascii"))

    def cut(self) -> None:
        """Kill the browser and remove the folder."""
        self.lifeline.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def prepare_launch(executable: Path, *, allow_unsandboxed: bool) -> Launch:
    """Write the start script for this machine and user.

    Raises:
        BrowserUnavailable: the executable is missing.
        SandboxUnavailable: the service runs as root and cannot change to another user, unless ``allow_unsandboxed``.
    """
    if not executable.is_file():
        raise BrowserUnavailable(f"browser not found: {executable}")
    drop = _privilege_drop(allow_unsandboxed=allow_unsandboxed)
    folder = Path(tempfile.mkdtemp(prefix="assay-browser-"))
    pipe = folder / "owner"
    os.mkfifo(pipe, 0o600)
    home = folder / "home"
    home.mkdir(mode=0o700)
    if drop.account is not None:
        folder.chmod(0o711)
        os.chown(home, drop.account.pw_uid, drop.account.pw_gid)
    script = folder / "browser"
    script.write_text(_script(executable, pipe, drop), encoding="utf-8")
    script.chmod(0o755)
    # Opened for reading and writing, so that neither this call nor the watchdog blocks.
    lifeline = pipe.open("r+b", buffering=0)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": tempfile.gettempdir()}
    return Launch(script=script, folder=folder, environment=environment, lifeline=lifeline)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PrivilegeDrop:
    """How to drop privileges: the command prefix, and the user to change to, if any."""

    command: tuple[str, ...]
    account: pwd.struct_passwd | None


def _privilege_drop(*, allow_unsandboxed: bool) -> _PrivilegeDrop:
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin:/usr/sbin:/sbin")
    always = ("--no-new-privs", "--pdeathsig", "KILL")
    if os.geteuid() != 0:
        return _PrivilegeDrop(command=(setpriv, *always) if setpriv else (), account=None)
    try:
        account = pwd.getpwnam(_UNPRIVILEGED_USER)
    except KeyError:
        account = None
    if setpriv is None or account is None:
        if allow_unsandboxed:
            return _PrivilegeDrop(command=(), account=None)
        missing = "the program setpriv (package util-linux)" if setpriv is None else f"the user {_UNPRIVILEGED_USER}"
        raise SandboxUnavailable(
            f"the service runs as root, the browser needs an unprivileged user, and {missing} is missing: "
            "install it, run the service as another user, or allow an unsandboxed browser"
        )
    change_user = (f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups")
    return _PrivilegeDrop(
        command=(setpriv, *change_user, "--inh-caps=-all", "--bounding-set=-all", *always), account=account
    )


def _script(executable: Path, pipe: Path, drop: _PrivilegeDrop) -> str:
    """Return the start script. The watchdog closes descriptors 3 and 4, the browser's control pipe."""
    chown_profile = ":"
    if drop.account is not None:
        chown_profile = f'chown -R {drop.account.pw_uid}:{drop.account.pw_gid} "$profile"'
    # The watchdog runs in its own session, so that it survives killing the group and can remove the profile. It kills
    # the group only while its leader is still the browser with this profile, because process ids are reused.
    watchdog = 'read -r _ <"$0"; grep -qsF -e "$1" "/proc/$2/cmdline" && kill -KILL "-$2"; sleep 1; rm -rf "$1" "$3"'
    folder, owner = shlex.quote(str(pipe.parent)), shlex.quote(str(pipe))
    return f"""#!/bin/sh
echo "$$" >{folder}/pid
profile=
for argument in "$@"; do case "$argument" in --user-data-dir=*) profile=${{argument#*=}} ;; esac; done
{chown_profile}
setsid sh -c {shlex.quote(watchdog)} {owner} "$profile" "$$" {folder} </dev/null >/dev/null 2>&1 3<&- 4>&- &
exec {shlex.join([*drop.command, str(executable)])} "$@"
"""

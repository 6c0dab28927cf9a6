"""Attack: a browser that a page has taken over reads evidence, keys or memory of the service, or its network."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from cache.backends.browser_process import Launch, own_network_problem, prepare_launch, start_command
from cache.confinement.landlock import landlock_version
from cache.confinement.privileges import DEFAULT_UID

UID = DEFAULT_UID + 1
TAKEN_OVER = """#!/bin/sh
read -r PROXY_PORT
try() { if "$@" >/dev/null 2>&1; then echo "$name done"; else echo "$name refused"; fi; }
name=evidence try cat EVIDENCE
name=list try ls DATA
name=dot_env try cat DOT_ENV
name=environ try cat /proc/SERVICE/environ
name=memory try sh -c ': </proc/SERVICE/mem'
name=overwrite try dd if=/dev/null of=EVIDENCE conv=notrunc
name=create try touch DATA/new
name=database try bash -c ': </dev/tcp/127.0.0.1/LOW_PORT'
name=other_server try bash -c ': </dev/tcp/127.0.0.1/HIGH_PORT'
name=proxy try bash -c ": </dev/tcp/127.0.0.1/$PROXY_PORT"
name=datagram try bash -c 'echo attack >/dev/udp/127.0.0.1/UDP_PORT'
name=profile try touch "$HOME/new"
name=temporary try mktemp
grep -E '^(Uid|Gid|CapEff|CapPrm|CapBnd|NoNewPrivs|Groups):' /proc/self/status
"""
FILES = ("evidence", "list", "dot_env", "environ", "memory", "overwrite", "create")
ANOTHER_USER, SAME_USER = "another user, own network", "same user, own network"
NO_LANDLOCK, SHARED_NETWORK = "own network without Landlock", "Landlock without own network"
OWN_NETWORK = (ANOTHER_USER, SAME_USER, NO_LANDLOCK)


@pytest.fixture(scope="module", params=[*OWN_NETWORK, SHARED_NETWORK])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What a browser that was taken over could do, by attempt, and its ``/proc/self/status``."""
    case = request.param
    if case == ANOTHER_USER and os.geteuid() != 0:
        pytest.skip("only root can change to another user")
    if case in (SAME_USER, SHARED_NETWORK) and not landlock_version():
        pytest.skip("the kernel has no Landlock")
    if case != SHARED_NETWORK and (problem := own_network_problem(UID if case == ANOTHER_USER else None)):
        pytest.skip(f"no network namespaces: {problem}")
    data, programs = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("programs")
    (data / "evidence").write_text("what a page said")
    (data / ".env").write_text("OPENAI_API_KEY=sk-x")
    with (
        server_on_a_low_port() as database,
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(("127.0.0.1", 0))
        values = {"EVIDENCE": data / "evidence", "DATA": data, "DOT_ENV": data / ".env", "SERVICE": os.getpid()} | {
            name: each.getsockname()[1]
            for name, each in (("LOW_PORT", database), ("HIGH_PORT", other), ("UDP_PORT", datagrams))
        }
        text = TAKEN_OVER
        for word, value in sorted(values.items(), key=lambda each: -len(each[0])):
            text = text.replace(word, str(value))
        browser = programs / "browser"
        browser.write_text(text)
        for folder in (data, programs, *programs.parents[:-2]):
            folder.chmod(0o755)  # so that only the permissions of the files count
        browser.chmod(0o755)
        (data / "evidence").chmod(0o600)
        (data / ".env").chmod(0o600)
        data.chmod(0o700)
        seen = {**run_browser(browser, case), "case": case}
        datagrams.setblocking(False)
        with suppress(BlockingIOError):
            seen["datagram received"] = datagrams.recv(100).decode()
        yield seen


def server_on_a_low_port() -> socket.socket:
    """Return a server on a port below those that the kernel chooses, as a database has."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    for port in range(first - 1, 1024, -1):
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", port))
    pytest.fail("no free port")


def run_browser(browser: Path, case: str) -> dict[str, str]:
    """Return what the program printed, by its first word."""
    with capture_logs():
        launch = prepare_launch(browser, allow_unsandboxed=case != ANOTHER_USER, pages=2)
    try:
        command = [str(launch.script)]
        if case != ANOTHER_USER:
            command = start_command(None, 0 if case == SHARED_NETWORK else 2, launch.folder / "ports")
            if case == NO_LANDLOCK:
                command[3] = command[3].replace(
                    "; from",
                    "; import cache.backends.browser_start as start; "
                    "start.restrict_files = lambda **rules: False; from",
                    1,
                )
            command += [str(os.getpid()), str(launch.folder / "home"), str(browser)]
            os.chown(launch.folder / "home", os.geteuid(), -1)
        running = subprocess.Popen(
            command,
            env=launch.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with proxy_port(launch, case) as proxy:
            printed, errors = running.communicate(f"{proxy.getsockname()[1]}\n", timeout=240)
    finally:
        launch.kill()
    assert running.returncode == 0, errors
    return dict(line.replace(":\t", " ").split(" ", 1) for line in printed.splitlines())


def proxy_port(launch: Launch, case: str) -> socket.socket:
    """Return a listening socket, as the egress proxy opens it for a page."""
    if case == SHARED_NETWORK:
        return socket.create_server(("127.0.0.1", 0))
    assert launch.receiver is not None
    launch.receiver.settimeout(240)
    launch.receive_ports()
    port = launch.next_port()
    assert port is not None
    port.listen()
    return port


@pytest.mark.parametrize("attempt", FILES)
def test_browser_is_refused_files(report: dict[str, str], attempt: str) -> None:
    if report["case"] == NO_LANDLOCK:
        pytest.skip("Landlock protects the files if the user is the same")
    assert report[attempt] == "refused"


def test_browser_reaches_only_the_proxy(report: dict[str, str]) -> None:
    if report["case"] in OWN_NETWORK:
        assert (report["database"], report["other_server"], report["proxy"]) == ("refused", "refused", "done")
    elif landlock_version() >= 4:
        assert (report["database"], report["proxy"]) == ("refused", "done")


def test_browser_sends_no_datagrams(report: dict[str, str]) -> None:
    # In a shared network they arrive, which also shows that this test can fail.
    assert report.get("datagram received") == (None if report["case"] in OWN_NETWORK else "attack\n")


def test_browser_has_a_home_and_no_privileges(report: dict[str, str]) -> None:
    assert report["profile"] == report["temporary"] == "done"
    assert (int(report["CapEff"], 16), int(report["CapPrm"], 16), report["NoNewPrivs"]) == (0, 0, "1")
    user = UID if report["case"] == ANOTHER_USER else os.geteuid()
    assert report["Uid"].split() == [str(user)] * 4

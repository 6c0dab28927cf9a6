"""Isolation of captured pages: no access to internal addresses, sandbox, no leftover processes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cache.backends.patchright import BrowserCapturer
from cache.capture import CaptureOutcome
from cache.confinement.privileges import DEFAULT_UID
from cache.egress.proxy import EgressProxy
from cache.errors import SandboxUnavailable
from tests.browser.conftest import Rig, counting_packets
from tests.fakes.processes import command_line, is_running
from tests.fakes.sandbox import browser_without_sandbox, is_sandbox_missing, sandbox_problem
from tests.standin.web import Reply, StandInWeb, Visit

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PROSE = "<h1>A page</h1><p>" + "Words that can be read by anybody. " * 20 + "</p>"

# All ways in which a page can make its browser send a request to {inside} (host:port).
WAYS_INSIDE = """
<img src="http://{inside}/img"><link rel="stylesheet" href="http://{inside}/css"><script src="http://{inside}/js"></script>
<iframe src="http://{inside}/frame"></iframe><object data="http://{inside}/object"></object>
<embed src="http://{inside}/embed"><video src="http://{inside}/video" autoplay></video>
<audio src="http://{inside}/audio" autoplay></audio><link rel="preload" as="image" href="http://{inside}/preload">
<link rel="prefetch" href="http://{inside}/prefetch"><link rel="preconnect" href="http://{inside}">
<link rel="dns-prefetch" href="http://{inside}"><link rel="icon" href="http://{inside}/icon">
<link rel="manifest" href="http://{inside}/manifest"><a ping="http://{inside}/ping" id="a" href="#x">x</a>
<form id="f" action="http://{inside}/form" method="post" target="t"></form><iframe name="t"></iframe>
<svg><image href="http://{inside}/svg"/></svg><input type="image" src="http://{inside}/input">
<style>@import "http://{inside}/import"; @font-face {{ font-family: f; src: url(http://{inside}/font) }}
body {{ background: url(http://{inside}/background); font-family: f }}</style>
<script>
const quietly = (work) => {{ try {{ const p = work(); if (p && p.catch) p.catch(() => 0) }} catch (e) {{}} }};
const http = "http://{inside}";
quietly(() => fetch(http + "/fetch")); quietly(() => fetch(http + "/no-cors", {{ mode: "no-cors" }}));
quietly(() => {{ const x = new XMLHttpRequest(); x.open("GET", http + "/xhr"); x.send() }});
quietly(() => navigator.sendBeacon(http + "/beacon")); quietly(() => new EventSource(http + "/events"));
quietly(() => new WebSocket("ws://{inside}/ws")); quietly(() => open(http + "/popup"));
quietly(() => new Worker(URL.createObjectURL(new Blob([`fetch("${{http}}/worker")`]))));
quietly(() => import(http + "/module")); quietly(() => document.getElementById("a").click());
quietly(() => document.getElementById("f").submit()); quietly(() => navigator.serviceWorker.register("/sw.js"));
quietly(() => {{ const f = document.createElement("iframe"); f.src = "/to-inside"; document.body.append(f) }});
quietly(() => {{ const i = new Image(); i.src = "/to-inside" }});
quietly(() => {{ const pc = new RTCPeerConnection({{ iceServers: [{{ urls: "stun:127.0.0.1:{udp}" }}] }});
  pc.createDataChannel("c"); pc.createOffer().then((o) => pc.setLocalDescription(o)) }});
setTimeout(() => {{ location.href = http + "/navigate" }}, 1000);
</script>
"""


async def test_page_cannot_send_requests_to_internal_addresses(rig: Rig) -> None:
    async with StandInWeb() as inside, counting_packets() as (udp, packets):
        place = f"localhost:{inside.port}"
        rig.site.pages["/to-inside"] = Reply.redirect(f"http://{place}/redirected")
        seen = await rig.show("/attack", Reply.html(PROSE + WAYS_INSIDE.format(inside=place, udp=udp)))
        # On a slow machine, the page is partial, or its navigation is denied before it is held.
        assert seen.is_evidence or (seen.outcome is CaptureOutcome.EGRESS_DENIED and place in seen.detail), seen.detail
        assert (inside.connections, packets.received) == (0, 0)


async def test_internal_page_and_redirect_to_it_are_denied(rig: Rig) -> None:
    async with StandInWeb({"/": Reply.html(PROSE)}) as inside:
        for target in (inside.url("/"), f"http://localhost:{inside.port}/", f"http://[::1]:{inside.port}/"):
            direct = await rig.capturer.capture(target)
            redirected = await rig.show("/hop", Reply.redirect(target))
            assert {direct.outcome, redirected.outcome} == {CaptureOutcome.EGRESS_DENIED}
        assert inside.connections == 0


async def test_renderer_is_sandboxed_and_does_not_run_as_root(rig: Rig) -> None:
    if problem := sandbox_problem():
        pytest.skip(problem)
    others = set(_browser_processes())
    capturer = _new_capturer(rig, rig.proxy)
    states: list[str] = []
    commands: list[str] = []

    def look(visit: Visit) -> Reply:
        for process in set(_browser_processes()) - others:
            commands.append(command_line(process))
            if "--type=renderer" in commands[-1]:
                with suppress(OSError):  # it ended after it was listed
                    states.append(Path(f"/proc/{process.pid}/status").read_text())
        return Reply(body=b"seen")

    rig.site.pages |= {"/look": look, "/looked-at": Reply.html(PROSE + "<img src='/look'>")}
    try:
        await capturer.capture(rig.site.url("/looked-at"))
        assert capturer.sandboxed
    finally:
        await capturer.aclose()
    assert states
    for state in states:
        fields = dict(line.split(":", 1) for line in state.splitlines() if ":" in line)
        assert int(fields["Uid"].split()[0]) != 0
        assert fields["Seccomp"].strip() == "2"
        assert fields["NoNewPrivs"].strip() == "1"
    assert not [command for command in commands if "--no-sandbox" in command]


async def test_closing_leaves_no_processes(rig: Rig) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    async with EgressProxy(frozenset({rig.site.host_port})) as proxy:
        capturer = _new_capturer(rig, proxy, pages_per_browser=2, deadline_s=120)
        rig.site.pages["/page"] = Reply.html(PROSE)
        seen = await asyncio.gather(*(capturer.capture(rig.site.url("/page")) for _ in range(5)))
        await capturer.aclose()
        assert all(page.is_evidence for page in seen), seen
    await _until(lambda: {process.pid for process in psutil.Process().children(recursive=True)} <= before)


@pytest.fixture
def without_sandbox(browser_program: Path) -> Iterator[Path]:
    with browser_without_sandbox(browser_program) as program:
        yield program


async def test_without_a_sandbox_pages_are_opened_only_if_allowed(rig: Rig, without_sandbox: Path) -> None:
    rig.site.pages["/page"] = Reply.html(PROSE)
    asked = rig.site.hits["/page"]
    slots = asyncio.Semaphore(1)
    strict = BrowserCapturer(without_sandbox, rig.proxy, semaphore=slots)
    with pytest.raises(SandboxUnavailable, match="user namespaces"):
        await strict.capture(rig.site.url("/page"))
    await strict.aclose()
    assert rig.site.hits["/page"] == asked

    permissive = BrowserCapturer(without_sandbox, rig.proxy, semaphore=slots, allow_unsandboxed=True)
    try:
        assert (await permissive.capture(rig.site.url("/page"))).outcome is CaptureOutcome.OK
        assert permissive.sandboxed is False
    finally:
        await permissive.aclose()


OWNER = """
import asyncio, sys
from pathlib import Path
from cache.backends.patchright import BrowserCapturer
from cache.confinement.privileges import DEFAULT_UID
from cache.egress.proxy import EgressProxy

async def main():
    async with EgressProxy() as proxy:
        slots, unsandboxed = asyncio.Semaphore(1), sys.argv[2] == "True"
        capturer = BrowserCapturer(Path(sys.argv[1]), proxy, semaphore=slots, allow_unsandboxed=unsandboxed)
        await capturer.start()
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_browser_ends_when_its_owner_is_killed(browser_program: Path) -> None:
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OWNER, str(browser_program), str(is_sandbox_missing())), stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout is not None
    while b"ready" not in (line := await owner.stdout.readline()):
        assert line, "the owner ended before its browser was ready"
    offspring = psutil.Process(owner.pid).children(recursive=True)
    assert [process for process in offspring if "--type=" in command_line(process)]
    owner.kill()
    await owner.wait()
    await _until(lambda: not [process for process in offspring if is_running(process)])


def _new_capturer(
    rig: Rig, proxy: EgressProxy, *, pages_per_browser: int = 50, deadline_s: float = 90
) -> BrowserCapturer:
    return BrowserCapturer(
        rig.capturer.executable,
        proxy,
        semaphore=asyncio.Semaphore(2),
        deadline_s=deadline_s,
        pages_per_browser=pages_per_browser,
        allow_unsandboxed=is_sandbox_missing(),
    )


def _browser_processes() -> list[psutil.Process]:
    """Return all browser processes that this process has started."""
    children = psutil.Process().children(recursive=True)
    return [
        process
        for process in children
        if "--user-data-dir" in command_line(process) or "--type=" in command_line(process)
    ]


async def _until(holds: Callable[[], bool], *, seconds: float = 120.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - processes have no event to wait for
            await asyncio.sleep(0.05)


async def _of_browser_processes(rig: Rig, value: Callable[[psutil.Process], object]) -> set[object]:
    """Show a page, and return the different values of the processes of the browser."""
    await rig.show("/process", Reply.html(f"<title>process</title>{PROSE}"))
    # The browser of that page is closed if it was its last one; this returns that of the next page.
    browser = await rig.capturer._pool.ensure_started()
    main = psutil.Process(browser.launch.browser_pid())
    values = [value(main)]
    for process in main.children(recursive=True):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):  # it ended after it was listed
            if process.name() == main.name():  # the watchdog is a shell of ours
                values.append(value(process))
    assert len(values) > 1
    return set(values)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change to another user")
async def test_all_processes_of_the_browser_have_a_user_of_their_own(rig: Rig) -> None:
    users = await _of_browser_processes(rig, lambda process: process.uids())
    assert users == {(DEFAULT_UID + 1,) * 3}

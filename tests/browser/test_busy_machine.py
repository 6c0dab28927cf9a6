"""Captures while other processes use all processors: late content is not lost because the machine is busy."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cache.capture import CaptureOutcome, Observation
from tests.browser.conftest import Rig
from tests.standin.documents import image_bytes
from tests.standin.web import Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

HOGS = 4
"""Two for each of two processors."""
PROSE = "<p>" + "The harbour board met on the first of March and elected its chair for two years. " * 8 + "</p>"
SHOW = "const show = (text) => out.insertAdjacentHTML('beforeend', `<li>${text}</li>`);"
FETCH = "const part = async (n) => (await fetch('/part?' + n)).text();"
LATE: dict[str, tuple[str, str]] = {
    "timers": (
        "let n = 0; const tick = () => { show('TIMER ' + n); if (++n < 12) setTimeout(tick, 400) }; tick()",
        "TIMER 11",
    ),
    "requests-and-timers": (
        FETCH + "(async () => { for (let n = 0; n < 5; n++) { const text = await part(n);"
        "await new Promise((done) => setTimeout(done, 300)); show(text + n) } })()",
        "PART 4",
    ),
    "computation": (
        FETCH + "(async () => { for (let n = 0; n < 5; n++) { const text = await part(n); let sum = 0;"
        "for (let i = 0; i < 2e7; i++) sum += Math.sqrt(i); show(text + n) } })()",
        "PART 4",
    ),
    "lazy-images": (
        "for (let n = 0; n < 8; n++) document.body.insertAdjacentHTML('beforeend', `<div style='height:900px'><img "
        "loading=lazy width=300 height=200 src='/picture?${n}' onload='show(\"PICTURE ${n}\")'></div>`)",
        "PICTURE 7",
    ),
    "worker": (
        "const code = `let n = 0; const step = () => { for (let i = 0, sum = 0; i < 5e6; i++) sum += Math.sqrt(i);"
        "postMessage(n); if (++n < 6) setTimeout(step, 50) }; step()`;"
        "new Worker(URL.createObjectURL(new Blob([code]))).onmessage = (event) => show('WORKER ' + event.data)",
        "WORKER 5",
    ),
}
"""Script and last text of a page, by name."""
LENGTHS = {"long": PROSE * 4}


@contextmanager
def busy_processors() -> Iterator[None]:
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(HOGS)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
        for hog in hogs:
            hog.wait()


async def test_pages_have_the_same_content_while_the_machine_is_busy(rig: Rig) -> None:
    picture = Reply(headers={"Content-Type": "image/jpeg"}, body=image_bytes(300, 200, kind="JPEG"))
    rig.site.pages.update({"/part": Reply(body=b"PART ", delay_s=0.1), "/picture": picture})
    last_texts = {f"/{length}-{name}": LATE[name][1] for length in LENGTHS for name in LATE}
    for path in last_texts:
        length, _, name = path[1:].partition("-")
        body = f"<h1>Harbour</h1>{LENGTHS[length]}<ol id=out></ol><script>{SHOW}{LATE[name][0]}</script>"
        rig.site.pages[path] = Reply.html(f"<!doctype html><title>Harbour</title>{body}")

    async def capture_all() -> dict[str, Observation]:
        seen = await asyncio.gather(*(rig.capturer.capture(rig.site.url(path)) for path in last_texts))
        return dict(zip(last_texts, seen, strict=True))

    quiet = await capture_all()
    with busy_processors():
        busy = await capture_all()
    assert {path: seen.outcome for path, seen in busy.items() if seen.outcome is not CaptureOutcome.OK} == {}
    assert [path for path, text in last_texts.items() if text not in busy[path].text] == []
    assert {path: items(seen.text) for path, seen in busy.items()} == {
        path: items(seen.text) for path, seen in quiet.items()
    }


def items(text: str) -> list[str]:
    """Return the lines without their numbers, sorted: pictures that load at the same time are listed in any order."""
    return sorted(re.sub(r"^\d+\. ", "", line) for line in text.splitlines())

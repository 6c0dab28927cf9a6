"""Rendering of answers with a limit of CPU time, in a child process for long ones, and a cache of the HTML.

The Markdown parser needs 10 ms per kilobyte for some texts (unmatched brackets, wide tables), so a hostile answer of
1 MB would occupy a processor for many seconds at each view. If an answer exceeds the limit, its plain text is shown.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import structlog

from answers.markdown import MAX_CHARS
from app.dashboard.answer_html import RenderedAnswer, render_answer
from cache.single_flight import LRUCache, SingleFlight

SHORT_CHARS: Final = 20_000
"""Answers up to this length are rendered in a thread: 0.2 s in the worst case."""
CPU_S: Final = 1.0
"""CPU time limit of a child, without its start."""
MEMORY_BYTES: Final = 1024**3
_WALL_S: Final = 20.0
"""Time limit of a child on a busy machine, with the wait for a slot."""
_CHILDREN: Final = 2
_CACHE_BYTES: Final = 32 * 1024 * 1024
_log = structlog.get_logger(__name__)


class AnswerRenderer:
    """Renders answers to safe HTML, each text once as long as it is in the cache."""

    def __init__(self, *, wall_s: float = _WALL_S) -> None:
        self._wall_s = wall_s
        self._cache: LRUCache[str, RenderedAnswer] = LRUCache(_CACHE_BYTES)
        self._running: SingleFlight[str, RenderedAnswer] = SingleFlight()
        self._slots = asyncio.Semaphore(_CHILDREN)

    async def render(self, text: str) -> RenderedAnswer:
        """Return the HTML of an answer, or of its plain text if it cannot be rendered within the limits."""
        text = text[:MAX_CHARS]
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        cached = self._cache.get(key)
        return cached or await self._running.run(key, lambda: self._render(key, text))

    async def _render(self, key: str, text: str) -> RenderedAnswer:
        if len(text) <= SHORT_CHARS:
            rendered = await asyncio.to_thread(render_answer, text)
        else:
            try:
                async with self._slots, asyncio.timeout(self._wall_s):
                    rendered = await _render_in_child(text) or plain_answer(text)
            except TimeoutError:  # the machine is busy; not stored, so that the next view tries again
                return plain_answer(text)
        self._cache.put(key, rendered, len(rendered.html))
        return rendered


def plain_answer(text: str) -> RenderedAnswer:
    """Return the text of an answer without formatting and links."""
    return RenderedAnswer(html=f'<pre class="plain">{html.escape(text)}</pre>', marks=frozenset())


async def _render_in_child(text: str) -> RenderedAnswer | None:
    document = await run_in_child(__name__, text)
    if document is None:
        _log.warning("answer shown as plain text", chars=len(text))
        return None
    return RenderedAnswer(html=document["html"], marks=frozenset(document["marks"]))


async def run_in_child(module: str, value: object) -> Any:
    """Call ``main`` of a module, which calls ``answer_child``, in a child process without our environment.

    Returns:
        The JSON value that it printed; None if it exceeded a limit.
    """
    program = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main()"
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-c", program),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
    )
    try:
        output, _ = await child.communicate(json.dumps(value).encode())
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await asyncio.shield(child.wait())  # a second cancellation must not leave it unreaped
    return None if child.returncode or not output else json.loads(output)


def answer_child(function: Callable[[Any], object]) -> None:
    """Apply a function to the JSON value on stdin within the limits of a child, and print its result as JSON."""
    signal.setitimer(signal.ITIMER_PROF, CPU_S)  # SIGPROF ends the process
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.stdout.write(json.dumps(function(json.loads(sys.stdin.buffer.read()))))


def main() -> None:
    """Render the answer on stdin to stdout, both as JSON."""
    answer_child(_rendered)


def _rendered(text: str) -> object:
    rendered = render_answer(text)
    return {"html": rendered.html, "marks": sorted(rendered.marks)}

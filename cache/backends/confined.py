"""Runs the document child and collects its frames, up to a deadline and a number of bytes."""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cache.backends import document_child

MAX_OUTPUT_BYTES = 200 * 1024 * 1024
MAX_FRAME_BYTES = 32 * 1024 * 1024
_LAST = frozenset({"end", "rejected"})
_CHILD = Path(document_child.__file__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message of the child: its header, and the JPEG that came with it or nothing."""

    header: dict[str, Any]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReport:
    """What the child managed to say. ``cut`` says why it was ended early, empty when it finished."""

    frames: tuple[Frame, ...]
    cut: str


async def decode_confined(
    kind: Literal["pdf", "image"], data: bytes, *, deadline_s: float = 50.0, frame_s: float = 20.0
) -> ChildReport:
    """Let a child decode a document. ``frame_s`` bounds each page. The child is gone when this returns or raises."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_CHILD),
        kind,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    feeding = asyncio.create_task(_feed(child, data))
    try:
        return await _collect(child, deadline_s, frame_s)
    finally:
        feeding.cancel()
        if child.returncode is None:
            child.kill()
        await asyncio.wait([feeding])
        if child.stdout is not None:
            await child.stdout.read()
        await child.wait()


async def _collect(child: asyncio.subprocess.Process, deadline_s: float, frame_s: float) -> ChildReport:
    frames: list[Frame] = []
    total = 0
    try:
        async with asyncio.timeout(deadline_s):
            while total <= MAX_OUTPUT_BYTES:
                async with asyncio.timeout(frame_s):
                    frame = await _next_frame(child)
                if frame is None:
                    return ChildReport(frames=tuple(frames), cut="a crash or its limits")
                frames.append(frame)
                total += len(frame.body)
                if frame.header["type"] in _LAST:
                    return ChildReport(frames=tuple(frames), cut="")
    except TimeoutError:
        return ChildReport(frames=tuple(frames), cut="the time limit")
    return ChildReport(frames=tuple(frames), cut="the output limit")


async def _feed(child: asyncio.subprocess.Process, data: bytes) -> None:
    if child.stdin is None:
        return
    try:
        child.stdin.write(data)
        await child.stdin.drain()
    except OSError:
        return  # it stopped reading: what it says, or that it died, is the answer
    finally:
        child.stdin.close()


async def _next_frame(child: asyncio.subprocess.Process) -> Frame | None:
    """The next frame, or None when the child has gone silent for good."""
    if child.stdout is None:
        return None
    try:
        head_bytes, body_bytes = struct.unpack(">II", await child.stdout.readexactly(8))
        if head_bytes + body_bytes > MAX_FRAME_BYTES:
            return None
        header = json.loads(await child.stdout.readexactly(head_bytes))
        return Frame(header=header, body=await child.stdout.readexactly(body_bytes))
    except asyncio.IncompleteReadError:
        return None

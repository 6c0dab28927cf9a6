"""A finished check with evidence: the example document, texts that contain its quotes, and blank screenshots."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from app.features.check.report import CheckDocument

_LINE, _UNIT = 100, 10_000
_WIDTH, _HEIGHT = 1100, 1600


class Evidence:
    """Bodies by SHA-256."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    def add(self, body: bytes) -> str:
        digest = hashlib.sha256(body).hexdigest()
        self.bodies[digest] = body
        return digest

    async def read(self, digest: str) -> bytes | None:
        return self.bodies.get(digest)


def checked_report(**changes: Any) -> tuple[CheckDocument, Evidence]:
    """Return the example check, with ``changes`` to its fields, and the evidence of its sources."""
    document = json.loads(Path(__file__).with_name("example.json").read_text("utf-8")) | changes
    evidence = Evidence()
    verdicts = [
        verdict
        for statement in document["statements"]
        for claim in statement["claims"]
        for verdict in claim["verdicts"]
    ]
    for number, source in enumerate(document["sources"]):
        if source["page"]:
            quotes = [quote for each in verdicts if each["source"] == number for quote in each["quotes"]]
            source["page"]["bodies"] = _bodies(quotes, evidence)
    return CheckDocument.model_validate(document), evidence


def _bodies(quotes: list[dict[str, Any]], evidence: Evidence) -> dict[str, str]:
    text = "The tide comes in twice a day at the bar. " * 60
    for quote in quotes:
        text = text[: quote["start"]] + quote["text"] + text[quote["end"] :]
    image = Image.new("RGB", (_WIDTH, _HEIGHT), "white")
    lines = []
    for start in range(0, len(text), _LINE):
        top = 60 + start // _LINE * 28
        box = (60 / _WIDTH, top / _HEIGHT, 600 / _WIDTH, 16 / _HEIGHT)
        lines.append([start, start + _LINE, 0, *(round(share * _UNIT) for share in box)])
    screenshot = io.BytesIO()
    image.save(screenshot, "JPEG")
    places = json.dumps({"unit": _UNIT, "lines": lines}).encode()
    bodies = {"text": text.encode(), "places": places, "screenshot-0": screenshot.getvalue()}
    return {name: evidence.add(body) for name, body in bodies.items()}

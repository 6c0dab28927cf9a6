"""Processor time of a Mind2Web step: preparing its prompts, and scoring it from predictions."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from app.features.suites.mindact_run import MindActOptions, score_file
from judges.suites.mind2web.page import Page, show_page
from judges.suites.mind2web.tournament import GROUP_SIZE
from tests.fakes.mind2web import action, items, task

PAGE_BYTES = 300_000
CANDIDATES = 50
STEPS = 10_000
STEPS_PER_TASK = 8
ITEMS = 30
ROUNDS = 5
_WORDS = ("search", "find", "details", "product", "cart", "home", "garden", "account", "travel", "flight", "guests")


def preparing_ms() -> tuple[float, int]:
    """Return milliseconds to parse a page of 300 KB and render 50 of its candidates in groups of five, and the page's
    bytes.

    Best of several rounds, because other load on the machine can only add time.
    """
    html, ids = page()
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.thread_time()
        parsed = Page.parse(html)
        for start in range(0, CANDIDATES, GROUP_SIZE):
            show_page(parsed, tuple(ids[start : start + GROUP_SIZE]))
        best = min(best, time.thread_time() - began)
    return 1000 * best, len(html)


def scoring_s() -> tuple[float, float]:
    """Return seconds of processor time to read and score 10,000 steps with predictions, and the data's megabytes."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as place:
        folder = Path(place)
        data, predictions = folder / "bench.json", folder / "predictions.json"
        ids = _write_tasks(data)
        predictions.write_text(json.dumps([[id, str(1 + number % 3), "CLICK "] for number, id in enumerate(ids)]))
        began = time.process_time()
        options = MindActOptions(data=data, split="bench", predictions=predictions)
        metrics, _ = score_file(options, options.open_input())
        spent = time.process_time() - began
        assert (metrics["n_steps"], metrics["status"]) == (STEPS, "complete")
        return spent, data.stat().st_size / 1e6


def page(seed: int = 0) -> tuple[str, list[str]]:
    """Return a page of nested boxes, links, buttons and fields, and the ids of 50 of them."""
    random = Random(seed)
    maker = _PageMaker(random)
    body = ""
    while len(body) < PAGE_BYTES:
        body += maker.box(3)
    html = f'<html backend_node_id="1">\n  <body backend_node_id="2">\n{body}  </body>\n</html>'
    return html, random.sample(maker.ids, CANDIDATES)


class _PageMaker:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._last = 2
        self.ids: list[str] = []

    def box(self, depth: int) -> str:
        indent, id = "  " * depth, self._new()
        inner = "".join(
            self.box(depth + 1) if depth < 11 and self._random.random() < 0.5 else self._leaf(indent + "  ")
            for _ in range(self._random.randint(2, 5))
        )
        return f'{indent}<div backend_node_id="{id}">\n{inner}{indent}</div>\n'

    def _leaf(self, indent: str) -> str:
        id = self._new()
        self.ids.append(str(id))
        tag = self._random.choice(["a", "button", "input", "span"])
        if tag == "input":
            return f'{indent}<input backend_node_id="{id}" type="text" placeholder="{self._words(3)}"/>\n'
        said = f' role="button" aria_label="{self._words(3)}"' if self._random.random() < 0.5 else ""
        text = f'<text backend_node_id="{self._new()}">{self._words(self._random.randint(1, 8))}</text>'
        return f'{indent}<{tag} backend_node_id="{id}"{said}>\n{indent}  {text}\n{indent}</{tag}>\n'

    def _words(self, count: int) -> str:
        return " ".join(self._random.choice(_WORDS) for _ in range(count))

    def _new(self) -> int:
        self._last += 1
        return self._last


def _write_tasks(file: Path) -> list[str]:
    """Write a file of tasks one by one; return the ids of their steps."""
    ids: list[str] = []
    with file.open("w") as out:
        out.write("[")
        for number, size in enumerate(_sizes()):
            one = task(f"task-{number}", [action(f"a{n}", items("click", count=ITEMS)) for n in range(size)])
            out.write((",\n" if number else "") + json.dumps(one))
            ids += [f"task-{number}_a{n}" for n in range(size)]
        out.write("]")
    return ids


def _sizes() -> Iterator[int]:
    left = STEPS
    while left:
        size = min(STEPS_PER_TASK, left)
        left -= size
        yield size

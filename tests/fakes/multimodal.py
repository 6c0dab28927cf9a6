"""Small Multimodal-Mind2Web data set: source rows in the official format, and a model with scripted answers."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.standin.call import Call
from tests.standin.faults import Fault

LABELS = ("Home", "Search", "Where to", "Guests", "Book now", "Help", "Sign in", "Deals")
"""Elements of every page, in order; an element's id is 100 plus ten times its position."""


def picture(width: int = 400, height: int = 300) -> bytes:
    """Return a white PNG."""
    drawn = io.BytesIO()
    Image.new("RGB", (width, height), "white").save(drawn, "PNG")
    return drawn.getvalue()


def colour(image: Image.Image, at: tuple[int, int]) -> tuple[int, int, int]:
    """Return red, green and blue of a pixel."""
    red, green, blue = image.convert("RGB").crop((*at, at[0] + 1, at[1] + 1)).tobytes()
    return red, green, blue


def element_id(label: str) -> str:
    return str(100 + 10 * LABELS.index(label))


def page(*, without: Sequence[str] = ()) -> str:
    """Return a page with an element for each label, in the format of ``cleaned_html``."""
    elements = "\n".join(
        f'    <a backend_node_id="{element_id(label)}" title="{label}">'
        f'<text backend_node_id="{int(element_id(label)) + 1}">{label}</text></a>'
        for label in LABELS
        if label not in without
    )
    return f'<html backend_node_id="1">\n  <body backend_node_id="2">\n{elements}\n  </body>\n</html>'


def candidate(label: str) -> str:
    """Return a candidate in the format of the rows: JSON text whose attributes are JSON text again."""
    place = LABELS.index(label)
    attributes = {"backend_node_id": element_id(label), "bounding_box_rect": f"10,{10 + 30 * place},80,20"}
    return json.dumps({"tag": "a", "attributes": json.dumps(attributes), "backend_node_id": element_id(label)})


def source_row(
    task: str,
    step: int,
    op: str,
    value: str = "",
    *,
    right: Sequence[str] = ("Search",),
    website: str = "inn",
    screenshot: bytes | None = b"draw one",
    **changes: Any,
) -> dict[str, Any]:
    """Return one row of Multimodal-Mind2Web. ``right`` are the labels of the positive candidates."""
    shown = picture() if screenshot == b"draw one" else screenshot
    row = {
        "action_uid": f"{task}-{step}",
        "raw_html": page(),
        "cleaned_html": page(),
        "operation": json.dumps({"original_op": op, "op": op, "value": value}),
        "pos_candidates": [candidate(label) for label in right],
        "neg_candidates": [candidate(label) for label in LABELS if label not in right],
        "website": website,
        "domain": "Travel",
        "subdomain": "Hotel",
        "annotation_id": task,
        "confirmed_task": f"Do what {task} says",
        "screenshot": None if shown is None else {"bytes": shown, "path": None},
        "action_reprs": [f"[link]  Step {nth} -> CLICK" for nth in range(4)],
        "target_action_index": str(step),
        "target_action_reprs": "",
    }
    return row | changes


STEPS = (
    source_row("t1", 0, "CLICK", right=("Search", "Where to")),
    source_row("t1", 1, "TYPE", "new york city", right=("Where to",)),
    source_row("t1", 2, "CLICK", right=()),
    source_row("t2", 0, "CLICK", right=("Book now",), website="rail"),
    source_row("t2", 1, "SELECT", "2 guests", right=("Guests",), website="rail"),
    source_row("t3", 0, "CLICK", screenshot=None),
    source_row("t4", 0, "CLICK", right=("Help",), website="rail"),
)
"""Four tasks: t1 with an invalid third step, t3 with nothing valid (no screenshot)."""

REPLIES = {
    ("t1", 0): "right CLICK None",
    ("t1", 1): "right TYPE New York",
    ("t2", 0): "wrong CLICK None",
    ("t2", 1): "none SELECT 2 Guests",
    ("t4", 0): "right CLICK None",
}
"""Scripted answer to each step: option, action, value."""

EXPECTED = {
    # elements 1 1 0 0 1; operations 1, 6/7 (three of four tokens), 1, 1, 1; steps 1 0 0 0 1
    "element_accuracy_micro": 3 / 5,
    "operation_token_f1_micro": (4 + 6 / 7) / 5,
    "step_success_micro": 2 / 5,
    "element_accuracy_macro": (1 + 0 + 1) / 3,
    "operation_token_f1_macro": ((1 + 6 / 7) / 2 + 1 + 1) / 3,
    "step_success_macro": (1 / 2 + 0 + 1) / 3,
    "task_success": 1 / 3,
}
"""Computed manually from STEPS and SAID: t1 has one of two steps correct, t2 none, t4 its only one."""

RIGHT = {("t1", 0): ("Search", "Where to"), ("t1", 1): ("Where to",), ("t2", 0): ("Book now",)}
RIGHT |= {("t2", 1): ("Guests",), ("t4", 0): ("Help",)}


def multimodal_reply(call: Call, said: Mapping[tuple[str, int], str] = REPLIES) -> Fault:
    """Return the scripted reply: a thought to the first request, the answer to the second."""
    if len(call.messages) == 2:
        return Fault(content="I have looked at the page.")
    task = re.search(r"Do what (\w+) says", call.text)
    assert task is not None
    step = len(re.findall(r"^\[link\]", call.text, re.MULTILINE))
    return Fault(content=final_answer(call.text, (task[1], step), said))


def final_answer(question: str, step: tuple[str, int], said: Mapping[tuple[str, int], str] = REPLIES) -> str:
    """Return an answer in the requested form, with the letter of the matching option."""
    options = re.findall(r"^([A-Z]{1,2})\. (.*)$", question, re.MULTILINE)
    which, action, value = said[step].split(" ", 2)

    def is_right(text: str) -> bool:
        return any(f">{label}<" in text for label in RIGHT[step])

    letters = {
        "none": options[-1][0],
        "right": next((letter for letter, text in options if is_right(text)), "?"),
        "wrong": next(letter for letter, text in options if not is_right(text)),
    }
    return f"I mean it.\n\nELEMENT: {letters[which]}\n\nACTION: {action}\n\nVALUE: {value}"


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as Parquet or JSON lines, by the suffix."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
        return path
    plain = [dict(row) for row in rows]
    for row in plain:
        if isinstance(row.get("screenshot"), dict):
            row["screenshot"] = {"bytes": base64.b64encode(row["screenshot"]["bytes"]).decode()}
    path.write_text("".join(json.dumps(row) + "\n" for row in plain), "utf-8")
    return path

"""Small Mind2Web data set in the published format: pages, tasks, ranks, and a stand-in model for them.

The model picks the option that contains ``blue`` and performs the action that follows that word: ``blue type boston
ma``. So the text of a page determines the outcome of its step.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.standin.call import Call
from tests.standin.faults import Fault

_OPTION = re.compile(r"^(?P<letter>[B-F])\. .*?\bblue (?P<op>click|type|select)(?: (?P<value>[^<]*?))? <", re.MULTILINE)


def page(texts: Sequence[str]) -> str:
    """Return a page with a button for each text; its ``backend_node_id`` is its position, counted from 1."""
    items = "\n".join(
        f'      <div backend_node_id="{1000 + place}">\n'
        f'        <button backend_node_id="{place}" type="button">\n'
        f'          <text backend_node_id="{2000 + place}">{text}</text>\n'
        "        </button>\n      </div>"
        for place, text in enumerate(texts, start=1)
    )
    return (
        '<html backend_node_id="900">\n  <body backend_node_id="901">\n    <div backend_node_id="902">\n'
        f"{items}\n    </div>\n  </body>\n</html>"
    )


def items(blue: str = "", *, at: int = 1, count: int = 7) -> list[str]:
    """Return the texts of a page; the text at position ``at`` is ``blue`` and the given action."""
    return [f"blue {blue}" if blue and place == at else f"item {place}" for place in range(1, count + 1)]


def candidate(id: str) -> dict[str, Any]:
    attributes = {"backend_node_id": id, "bounding_box_rect": f"10,{20 * int(id)},100,18", "type": "button"}
    return {"tag": "button", "backend_node_id": id, "attributes": json.dumps(attributes)}


def action(
    uid: str, texts: Sequence[str], *, positives: Iterable[str] = ("1",), op: str = "CLICK", value: str = ""
) -> dict[str, Any]:
    """Return a step on a page of ``texts``; every item is a candidate, and ``positives`` are correct."""
    right = [str(id) for id in positives]
    wrong = [str(place) for place in range(1, len(texts) + 1) if str(place) not in right]
    mark = {"is_original_target": True, "is_top_level_target": True}
    return {
        "action_uid": uid,
        "raw_html": "<html><body>raw</body></html>",
        "cleaned_html": page(texts),
        "operation": {"op": op, "original_op": op, "value": value},
        "pos_candidates": [candidate(id) | mark for id in right],
        "neg_candidates": [candidate(id) for id in wrong],
    }


def task(
    id: str, actions: Sequence[dict[str, Any]], *, website: str = "alpha", domain: str = "Travel"
) -> dict[str, Any]:
    return {
        "annotation_id": id,
        "website": website,
        "domain": domain,
        "subdomain": "Other",
        "confirmed_task": f"Do what {id} asks for",
        "action_reprs": [f"[button]  {one['action_uid']} -> {one['operation']['op']}" for one in actions],
        "actions": list(actions),
    }


def nine_steps() -> list[dict[str, Any]]:
    """Return five tasks with known figures, see ``FIGURES_SCORED_ZERO`` and ``FIGURES_SKIPPED``."""
    lost = action("b", items("click"), positives=())
    return [
        task(
            "T1",
            [action("a", items("click", count=12)), action("b", items("type boston ma"), op="TYPE", value="boston ma")],
        ),
        task(
            "T2", [action("a", items("click")), action("b", items("type new york"), op="TYPE", value="new york city")]
        ),
        task(
            "T3",
            [action("a", items("click")), lost, action("c", items("click"))],
            website="beta",
            domain="Shopping",
        ),
        task("T4", [action("a", items("click", at=2))], website="beta", domain="Shopping"),
        task("T5", [action("a", items("click", count=1))], website="gamma", domain="Shopping"),
    ]


def ranks_of_nine_steps() -> dict[str, dict[str, int]]:
    """Return the ranks as listed, except that the correct element of T3_c is ranked last."""
    ranks = {
        f"{one['annotation_id']}_{act['action_uid']}": {
            each["backend_node_id"]: place for place, each in enumerate(act["pos_candidates"] + act["neg_candidates"])
        }
        for one in nine_steps()
        for act in one["actions"]
    }
    return ranks | {"T3_c": {str(id): id - 2 for id in range(2, 8)} | {"1": 60}}


def write_split(folder: Path, tasks: Sequence[Mapping[str, Any]], *, split: str = "test_task", files: int = 2) -> Path:
    """Write the tasks to ``files`` files in a folder named after the split; return the parent folder."""
    inner = folder / split
    inner.mkdir(parents=True, exist_ok=True)
    size = -(-len(tasks) // files)
    for number in range(files):
        (inner / f"{split}_{number}.json").write_text(json.dumps(tasks[number * size : (number + 1) * size]))
    return folder


def write_scores(file: Path, ranks: Mapping[str, Mapping[str, int]]) -> Path:
    """Write a scores pickle in the published format."""
    scores = {name: {id: 1.0 / (1 + rank) for id, rank in by_id.items()} for name, by_id in ranks.items()}
    file.write_bytes(pickle.dumps({"scores": scores, "ranks": {name: dict(by_id) for name, by_id in ranks.items()}}))
    return file


def stand_in_reply(text: str) -> str:
    """Return the stand-in model's reply to a question."""
    found = _OPTION.search(text.rpartition("A. None of the above")[2])
    if found is None:
        return "Answer: A."
    value = f"\nValue: {found['value']}" if found["value"] else ""
    return f"Answer: {found['letter']}.\nAction: {found['op'].upper()}{value}"


def mind2web_reply(call: Call) -> Fault:
    """Return the reply to a call; ``fault_for`` of a stand-in server for Mind2Web."""
    return Fault(content=stand_in_reply(call.text))


NINE_RANKS = ranks_of_nine_steps()
FIGURES_SCORED_ZERO = {
    "element_acc": 5 / 9,
    "action_f1": (5 + 6 / 7) / 9,
    "step_acc": 4 / 9,
    "marco_element_acc": (1 + 1 + 1 / 3) / 5,
    "marco_action_f1": (1 + (1 + 6 / 7) / 2 + 1 / 3 + 1) / 5,
    "marco_step_acc": (1 + 1 / 2 + 1 / 3) / 5,
    "error_ratio": {"0": 0.2, "1": 0.6, "2": 0.2},
    "acc_per_website": {"alpha": [0.75, 2], "beta": [(1 / 3) / 2, 2], "gamma": [0.0, 1]},
}
"""``nine_steps`` with the published keys, computed manually: T1 all correct; T2 one value truncated (F1 6/7); T3 the
first step correct, the second without a positive, the third's outside the top 50; T4 the wrong element, correct
operation; T5 a single candidate, for which no request is sent."""
FIGURES_SKIPPED = {
    "micro": {"element_accuracy": 5 / 7, "operation_f1": (5 + 6 / 7) / 7, "step_success": 4 / 7},
    "macro": {
        "element_accuracy": (1 + 1 + 1) / 5,
        "operation_f1": (1 + (1 + 6 / 7) / 2 + 1 + 1) / 5,
        "step_success": (1 + 1 / 2 + 1) / 5,
    },
    "task_success": 2 / 5,
}
"""The same without the two steps that have no positive within the top 50."""

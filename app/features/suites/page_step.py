"""View of one benchmark step: questions with options, the reply of the model and the gold answer. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_FIRST = ord("B")
"""Letter of the first option. In Mind2Web, A is "none of the above"."""
_ROLES = {"gold": "correct", "picked": "picked", "both": "correct and picked"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    letter: str
    text: str
    right: bool
    picked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One question. ``prompt`` contains (role, text) pairs."""

    options: Sequence[Option]
    output: str
    letter: str | None
    prompt: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxDescription:
    """Description of an element on the screenshot, in pixels."""

    what: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDetails:
    """Step for display. ``wanted`` is the gold operation, ``said`` the operation of the model."""

    step: Mapping[str, Any]
    page: str | None
    page_problem: str | None
    rounds: Sequence[Round]
    history: Sequence[str]
    wanted: str
    said: str
    right: Sequence[str]
    boxes: Sequence[BoxDescription]
    has_picture: bool


def step_details(found: Mapping[str, Any]) -> StepDetails:
    """Convert the API response for a step of either suite."""
    step = found["step"]
    gold = step.get("gold") or {}
    rounds = _tournament(step) if "rounds" in step else _single(step)
    prediction = step.get("prediction") or ["", ""]
    said = f"{step.get('action')} {_value(step.get('value'))}" if step.get("action") else str(prediction[-1] or "")
    return StepDetails(
        step=step,
        page=found["page"],
        page_problem=found["page_problem"],
        rounds=rounds,
        history=[str(one) for one in step.get("history") or ()],
        wanted=f"{gold.get('op', '')} {_value(gold.get('value'))}".strip(),
        said=said.strip(),
        right=[str(one) for one in gold.get("elements") or ()],
        boxes=[_box(box) for box in found["boxes"]],
        has_picture=found["screenshot"] is not None,
    )


def _tournament(step: Mapping[str, Any]) -> list[Round]:
    """Return the rounds of Mind2Web: up to five options each, until one is left."""
    right = {str(one) for one in (step.get("gold") or {}).get("elements") or ()}
    prompts, outputs = step.get("prompt") or (), step.get("raw_output") or ()
    return [
        Round(
            options=[
                Option(letter=chr(_FIRST + nth), text=text, right=id in right, picked=id == one.get("picked"))
                for nth, (id, text) in enumerate(one.get("options") or ())
            ],
            output=str(outputs[place]) if place < len(outputs) else "",
            letter=one.get("letter"),
            prompt=[("prompt", str(prompts[place]))] if place < len(prompts) else [],
        )
        for place, one in enumerate(step["rounds"])
    ]


def _single(step: Mapping[str, Any]) -> list[Round]:
    """Return the question of Multimodal-Mind2Web~. It has all options and follows a description of the screenshot."""
    if not step.get("options"):
        return []
    right = set((step.get("gold") or {}).get("elements") or ())
    options = [
        Option(letter=str(letter), text=str(text), right=text in right, picked=text == step.get("picked"))
        for letter, text in step["options"]
    ]
    prompt = [(str(one.get("role")), str(one.get("text"))) for one in step.get("prompt") or ()]
    return [Round(options=options, output=str(step.get("raw_output") or ""), letter=step.get("element"), prompt=prompt)]


def _value(value: object) -> str:
    return "" if value in (None, "", "None") else str(value)


def _box(box: Mapping[str, Any]) -> BoxDescription:
    place = f"{box['width']:.0f} by {box['height']:.0f} pixels at {box['x']:.0f}, {box['y']:.0f}"
    return BoxDescription(what=_ROLES.get(str(box["role"]), str(box["role"])), place=place)

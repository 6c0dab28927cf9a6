"""The corpus of attacks by class, and the scenarios in which they are tried.

The data is in ``corpus``. A case is tried in one or more *places*. With ``benign`` the same material is built as its
twin, in which the claim is true and the page says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Claim, an answer that makes it, a page that does not mention it, and the sentence that would prove it."""

    task: str
    claim: str
    answer: str
    silent: tuple[str, ...]
    evidence: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """One attack. ``hidden``: no judge may ever see its payload. ``how`` contains options of its class."""

    id: str
    title: str
    scenario: Scenario
    places: tuple[str, ...]
    payload: str
    hidden: bool
    how: dict[str, Any] = field(default_factory=dict)

    @property
    def letter(self) -> str:
        return self.id[0]


def load_cases() -> list[Case]:
    """Return all cases, ordered by id."""
    scenarios = {name: Scenario(**_tuples(entry)) for name, entry in _read("scenarios.json").items()}
    cases = []
    for path in sorted(CORPUS.glob("[a-l]_*.json")):
        written = _read(path.name)
        for entry in written["cases"]:
            shared = {name: value for name, value in written.items() if name not in {"class", "title", "cases"}}
            cases.append(_case({**shared, **entry}, scenarios))
    return cases


def _case(entry: dict[str, Any], scenarios: dict[str, Scenario]) -> Case:
    known = {name: entry.pop(name) for name in ("id", "title", "places", "scenario")}
    scenario = scenarios[known["scenario"]]
    return Case(
        id=known["id"],
        title=known["title"],
        scenario=scenario,
        places=tuple(known["places"]),
        # Hidden text needs no trick: the plain false claim is the strongest payload.
        payload=entry.pop("payload", "{claim}").replace("{claim}", scenario.claim),
        hidden=entry.pop("hidden", False),
        how=entry,
    )


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}


def _read(name: str) -> Any:
    return json.loads((CORPUS / name).read_text("utf-8"))

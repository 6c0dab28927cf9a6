"""Dashboard pages of step sessions: their list, scores and steps of one, and single steps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from app.csv_tables import Cell
from app.dashboard.downloads import Format, csv_file
from app.dashboard.html_route import HtmlRoute
from app.dashboard.jobs import IdPath, IdQuery
from app.dashboard.viewer import Viewer, ViewerDep
from app.features.suites.page_figures import BREAKDOWN_CSV, MEASURES, breakdown, breakdown_cells
from app.features.suites.pages import NAMES, Position, options_file, step_details
from app.features.suites.service_suite import SuiteName

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)


class Table(StrEnum):
    """Tables of a session's page."""

    STEPS = "steps"
    FIGURES = "figures"


_SESSIONS_PER_PAGE = 20
_STEPS_PER_PAGE = 50
_MAX_CSV_SESSIONS = 1000
_MAX_CSV_STEPS = 50_000
_PHASES: Mapping[str, str] = {"train": "training", "test": "test"}
_SESSION_CSV = ("id", "label", "data", "state", "steps_done", "steps_total", "step_success_train", "step_success_test",
                "task_success_test", "created_at", "updated_at")  # fmt: skip
_STEP_CSV = ("position", "id", "task_id", "website", "domain", "phase", "status", "reason", "element_acc", "action_f1",
             "step_acc", "predicted_element", "predicted_operation", "gold_elements", "gold_operation")  # fmt: skip


@router.get("/suites/{suite}/sessions")
async def sessions(
    suite: SuiteName, viewer: ViewerDep, cursor: IdQuery = None, format: Format = Format.HTML
) -> Response:
    """Show the sessions of a suite, newest first."""
    base = f"/v1/suites/{suite}/sessions"
    if format is Format.CSV:
        every = await viewer.api.items(base, at_most=_MAX_CSV_SESSIONS)
        return await csv_file(f"{suite}-sessions", _SESSION_CSV, [_row(await _session(viewer, one)) for one in every])
    page = await viewer.api.get(base, limit=_SESSIONS_PER_PAGE, cursor=cursor)
    return await viewer.page(
        "suite_sessions.html", title=f"Sessions of {NAMES[suite]}", here="suites", json=base,
        csv=f"/suites/{suite}/sessions?format=csv", suite=suite, names=NAMES, phases=_PHASES, cursor=cursor,
        sessions=[await _session(viewer, one) for one in page["items"]], following=page["next_cursor"],
        label=_label, data_of=_data_of, state_of=_state_of,
    )  # fmt: skip


@router.get("/suites/{suite}/sessions/{session_id}")
async def session(
    suite: SuiteName,
    session_id: IdPath,
    viewer: ViewerDep,
    cursor: Annotated[str | None, Query(pattern="^[0-9]{1,9}$")] = None,
    table: Table = Table.STEPS,
    format: Format = Format.HTML,
) -> Response:
    """Show one session: scores by phase and a page of its finished steps. As CSV: one of its tables."""
    base = f"/v1/suites/{suite}/sessions/{session_id}"
    found = await viewer.api.get(base, question="false")
    phases = {_PHASES[phase]: value for phase, value in found["figures"].items() if value["steps"]}
    figures = breakdown({"phases": phases}, "phases")
    if format is Format.CSV and table is Table.FIGURES:
        return await csv_file(f"{suite}-{session_id}-figures", BREAKDOWN_CSV, map(breakdown_cells, figures))
    if format is Format.CSV:
        steps = await viewer.api.items(f"{base}/steps", at_most=_MAX_CSV_STEPS)
        return await csv_file(f"{suite}-{session_id}", _STEP_CSV, map(_step_row, steps))
    page = await viewer.api.get(f"{base}/steps", limit=_STEPS_PER_PAGE, cursor=cursor)
    return await viewer.page(
        "suite_session.html", title=_label(found), here="suites", json=base,
        csv=f"/suites/{suite}/sessions/{session_id}?format=csv", suite=suite, names=NAMES, session=found,
        phases=_PHASES, figures=figures, measures=MEASURES, steps=page["items"], following=page["next_cursor"],
        cursor=cursor, label=_label, state_of=_state_of, operation=_operation,
    )  # fmt: skip


@router.get("/suites/{suite}/sessions/{session_id}/steps/{position}")
async def session_step(
    suite: SuiteName, session_id: IdPath, position: Position, viewer: ViewerDep, format: Format = Format.HTML
) -> Response:
    """Show one finished step: every question with its reply, and the gold answer."""
    base = f"/v1/suites/{suite}/sessions/{session_id}"
    document, found = await asyncio.gather(
        viewer.api.get(f"{base}/steps/{position}"), viewer.api.get(base, question="false")
    )
    details = await asyncio.to_thread(step_details, document)
    if format is Format.CSV:
        return await options_file(f"{suite}-{session_id}-{position}", details)
    here = f"/suites/{suite}/sessions/{session_id}"
    return await viewer.page(
        "suite_step.html", title=f"Step {details.step['id']}", here="suites", json=f"{base}/steps/{position}",
        csv=f"{here}/steps/{position}?format=csv", base=here, crumb=_label(found), suite=suite, position=position,
        shown=details, step=details.step, before=position - 1 if position else None,
        after=position + 1 if position + 1 < found["steps_done"] else None,
    )  # fmt: skip


async def _session(viewer: Viewer, listed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a listed session with its figures."""
    path = f"/v1/suites/{listed['suite']}/sessions/{listed['id']}"
    found: Mapping[str, Any] | None = await viewer.api.get_or_none(path, question="false")
    # A session that was deleted since it was listed is shown without figures.
    return found or {**listed, "figures": {phase: {"micro": None, "task_success": None} for phase in _PHASES}}


def _label(session: Mapping[str, Any]) -> str:
    return str(session["options"].get("run") or f"Session {session['id']}")


def _data_of(session: Mapping[str, Any]) -> str:
    options = session["options"]
    shown = [str(options[name]) for name in ("data", "train_split", "split", "protocol") if options.get(name)]
    return " · ".join([*shown, *(["own history"] if options.get("history") == "own" else [])])


def _state_of(session: Mapping[str, Any]) -> tuple[str, str]:
    """Return state and words of a state tag."""
    if session["status"] == "done":
        return "succeeded", "done"
    return ("running", "in progress") if session["steps_done"] else ("queued", "not started")


def _operation(action: Mapping[str, Any]) -> str:
    value = action["value"]
    return f"{action['op']} {'' if value == 'None' else value}".strip()


def _row(session: Mapping[str, Any]) -> list[Cell]:
    figures = session["figures"]
    success = [(figures[phase]["micro"] or {}).get("step") for phase in _PHASES]
    return [
        session["id"], _label(session), _data_of(session), _state_of(session)[1], session["steps_done"],
        session["steps_total"], *success, figures["test"]["task_success"], session["created_at"],
        session["updated_at"],
    ]  # fmt: skip


def _step_row(step: Mapping[str, Any]) -> list[Cell]:
    return [*(step[name] for name in _STEP_CSV[:11]), *_action_cells(step["prediction"]), *_action_cells(step["gold"])]


def _action_cells(action: Mapping[str, Any] | None) -> Iterator[Cell]:
    yield None if action is None else "; ".join(action["elements"])
    yield None if action is None else _operation(action)

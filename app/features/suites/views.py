"""Dashboard pages of suite runs: figures by split, and single steps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response

from app.dashboard.downloads import Format, csv_file
from app.dashboard.errors import NotFound
from app.dashboard.html_route import HtmlRoute
from app.dashboard.jobs import TERMINAL
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import IdPath, IdQuery, Viewer, ViewerDep
from app.features.suites.page_figures import (
    BREAKDOWN_CSV,
    FIGURES_CSV,
    MEANS,
    MEASURES,
    RUNS_CSV,
    SuiteRun,
    breakdown,
    breakdown_cells,
    by_split,
    figure_rows,
    published,
    run_rows,
    suite_run,
)
from app.features.suites.run_options import SuiteName
from judges.suites.questions import option_name

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)


class Table(StrEnum):
    """Tables of a run's page."""

    STEPS = "steps"
    FIGURES = "figures"
    WEBSITES = "websites"
    DOMAINS = "domains"
    POLICIES = "policies"
    READINGS = "readings"


NAMES: Mapping[str, str] = {SuiteName.MIND2WEB: "Mind2Web", SuiteName.MM_MIND2WEB: "Multimodal-Mind2Web~"}
_MAX_RUNS = 50
_STEPS_PER_PAGE = 50
_MAX_CSV_RUNS = 10_000
_MAX_CSV_STEPS = 50_000
_SEARCHED_POSITIONS = 200
_OPTION_CSV = ("question", "letter", "option", "right", "picked")
_STEP_CSV = ("position", "id", "task_id", "website", "domain", "status", "reason", "element_acc", "action_f1",
             "step_acc")  # fmt: skip
_STATUSES = ("scored", "skipped", "not_judged")
Position = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("/suites")
async def suites(viewer: ViewerDep, format: Format = Format.HTML) -> Response:
    """Show the newest runs of every suite, by split."""
    if format is Format.CSV:
        every = {suite.value: by_split(await list_runs(viewer, suite, at_most=_MAX_CSV_RUNS)) for suite in SuiteName}
        return await csv_file("suites", RUNS_CSV, run_rows(every))
    newest = {suite: by_split(await list_runs(viewer, suite, at_most=_MAX_RUNS)) for suite in SuiteName}
    return await viewer.page(
        "suites.html", title="Step benchmarks", here="home", tab="suites", json=f"/v1/suites/{SuiteName.MIND2WEB}/runs",
        csv="/suites?format=csv", suites=newest, names=NAMES, measures=MEASURES, published=published,
    )  # fmt: skip


async def _filters(
    status: Annotated[str | None, Query(pattern=f"^({'|'.join(_STATUSES)})?$")] = None,
    success: Annotated[str | None, Query(pattern="^(true|false)?$")] = None,
    task_id: Annotated[str | None, Query(max_length=200)] = None,
) -> dict[str, str | None]:
    """Return the filters of the steps of a run."""
    return {"status": status or None, "success": success or None, "task_id": task_id or None}


@router.get("/suites/{suite}/runs/{run_id}")
async def run(
    suite: SuiteName,
    run_id: IdPath,
    viewer: ViewerDep,
    filters: Annotated[dict[str, str | None], Depends(_filters)],
    cursor: IdQuery = None,
    table: Table = Table.STEPS,
    format: Format = Format.HTML,
) -> Response:
    """Show one run: figures and a page of its steps. As CSV: one of its tables."""
    base = f"/v1/suites/{suite}/runs/{run_id}"
    if format is Format.CSV and table is not Table.STEPS:
        run = suite_run(document := await viewer.api.get(base), await _result(viewer, document))
        rows = figure_rows(run) if table is Table.FIGURES else map(breakdown_cells, breakdown(run.result or {}, table))
        header = FIGURES_CSV if table is Table.FIGURES else BREAKDOWN_CSV
        return await csv_file(f"{suite}-{run_id}-{table}", header, rows)
    if format is Format.CSV:
        steps = await viewer.api.items(f"{base}/steps", at_most=_MAX_CSV_STEPS, **filters)
        return await csv_file(f"{suite}-{run_id}", _STEP_CSV, ([step[name] for name in _STEP_CSV] for step in steps))
    document, steps_page, job = await asyncio.gather(
        viewer.api.get(base),
        viewer.api.get(f"{base}/steps", limit=_STEPS_PER_PAGE, cursor=cursor, **filters),
        viewer.api.get(f"/v1/jobs/{run_id}"),
    )
    run = suite_run(document, await _result(viewer, document))
    return await viewer.page(
        "suite_run.html", title=f"{NAMES[suite]} · {run.split}", here="home", json=base,
        csv=f"/suites/{suite}/runs/{run_id}?format=csv", suite=suite, shown=run, job=job,
        live=job["status"] not in TERMINAL, steps=steps_page["items"], following=steps_page["next_cursor"],
        filters=filters, statuses=_STATUSES, names=NAMES, measures=run.measures, means=MEANS, breakdown=breakdown,
        published=published(run),
    )  # fmt: skip


@router.get("/suites/{suite}/runs/{run_id}/steps/{position}")
async def step(
    suite: SuiteName, run_id: IdPath, position: Position, viewer: ViewerDep, format: Format = Format.HTML
) -> Response:
    """Show one step: the page, every question with its reply, and the gold answer."""
    base = f"/v1/suites/{suite}/runs/{run_id}"
    document, before, after = await asyncio.gather(
        viewer.api.get(f"{base}/steps/{position}"),
        _previous_position(viewer, base, position),
        _next_position(viewer, base, position),
    )
    details = await asyncio.to_thread(step_details, document)
    if format is Format.CSV:
        return await options_file(f"{suite}-{run_id}-{position}", details)
    return await viewer.page(
        "suite_step.html", title=f"Step {details.step['id']}", here="home", json=f"{base}/steps/{position}",
        csv=f"/suites/{suite}/runs/{run_id}/steps/{position}?format=csv",
        base=f"/suites/{suite}/runs/{run_id}", crumb=NAMES[suite], suite=suite, position=position, shown=details,
        step=details.step, before=before, after=after,
    )  # fmt: skip


@router.get("/suites/{suite}/runs/{run_id}/steps/{position}/screenshot")
async def screenshot(suite: SuiteName, run_id: IdPath, position: Position, viewer: ViewerDep) -> Response:
    """Return the screenshot of a step with the boxes that the service draws."""
    response = await viewer.api.request("GET", f"/v1/suites/{suite}/runs/{run_id}/steps/{position}/screenshot")
    kind = response.headers.get("content-type", "")
    if response.is_error or kind not in {"image/jpeg", "image/png"}:
        raise NotFound("This step has no screenshot")
    headers = HEADERS | {"Cache-Control": "private, max-age=600", "X-Content-Type-Options": "nosniff"}
    return Response(response.content, media_type=kind, headers=headers)


async def options_file(name: str, details: StepDetails) -> Response:
    """Return the options of all questions of a step as CSV."""
    rows = (
        (number, option.letter, option.text, option.correct, option.picked)
        for number, each in enumerate(details.rounds, 1)
        for option in each.options
    )
    return await csv_file(name, _OPTION_CSV, rows)


async def list_runs(viewer: Viewer, suite: SuiteName, *, at_most: int) -> list[SuiteRun]:
    """Return the newest runs of a suite with their figures."""
    runs = await viewer.api.items(f"/v1/suites/{suite}/runs", at_most=at_most)
    return [suite_run(run, await _result(viewer, run)) for run in runs]


async def _result(viewer: Viewer, run: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if run["result_id"] is None:
        return None
    result: Mapping[str, Any] | None = await viewer.api.get_or_none(f"/v1/results/{run['result_id']}")
    return result


async def _previous_position(viewer: Viewer, base: str, position: int) -> int | None:
    """Return the position of the preceding step if it is near. Lists only go forward, so earlier steps are searched."""
    start = position - _SEARCHED_POSITIONS - 1
    steps_page = await viewer.api.get(
        f"{base}/steps", limit=_SEARCHED_POSITIONS, cursor=None if start < 0 else str(start)
    )
    earlier = [int(step["position"]) for step in steps_page["items"] if step["position"] < position]
    return earlier[-1] if earlier else None


async def _next_position(viewer: Viewer, base: str, position: int) -> int | None:
    steps_page = await viewer.api.get(f"{base}/steps", limit=1, cursor=str(position))
    return int(steps_page["items"][0]["position"]) if steps_page["items"] else None


_ROLES = {"gold": "correct", "picked": "picked", "both": "correct and picked"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    letter: str
    text: str
    correct: bool
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

    role: str
    position: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDetails:
    """Step for display. ``gold_operation`` is the expected one."""

    step: Mapping[str, Any]
    page: str | None
    page_problem: str | None
    rounds: Sequence[Round]
    history: Sequence[str]
    gold_operation: str
    model_operation: str
    gold_elements: Sequence[str]
    boxes: Sequence[BoxDescription]
    has_screenshot: bool

    @property
    def has_page(self) -> bool:
        return bool(self.page or self.page_problem or self.boxes or self.has_screenshot)


def step_details(document: Mapping[str, Any]) -> StepDetails:
    """Convert the API response for a step of either suite."""
    step = document["step"]
    gold = step.get("gold") or {}
    rounds = _mind2web_rounds(step) if "rounds" in step else _mm_mind2web_rounds(step)
    prediction = step.get("prediction") or ["", ""]
    action = step.get("action")  # Mind2Web: 1 if the operation is correct
    model_operation = f"{action} {_value(step.get('value'))}" if isinstance(action, str) else str(prediction[-1] or "")
    texts = {id: text for one in step.get("rounds") or () for id, text in one.get("options") or ()}
    return StepDetails(
        step=step,
        page=document["page"],
        page_problem=document["page_problem"],
        rounds=rounds,
        history=[str(item) for item in step.get("history") or ()],
        gold_operation=f"{gold.get('op', '')} {_value(gold.get('value'))}".strip(),
        model_operation=model_operation.strip(),
        gold_elements=[str(texts.get(item, item)) for item in gold.get("elements") or ()],
        boxes=[_box(box) for box in document["boxes"]],
        has_screenshot=document["screenshot"] is not None,
    )


def _mind2web_rounds(step: Mapping[str, Any]) -> list[Round]:
    """Return the questions of Mind2Web. Option A is "none of the above"."""
    gold_elements = {str(round_json) for round_json in (step.get("gold") or {}).get("elements") or ()}
    prompts, outputs = step.get("prompt") or (), step.get("raw_output") or ()
    return [
        Round(
            options=[
                Option(
                    letter=option_name(nth),
                    text=text,
                    correct=id in gold_elements,
                    picked=id == round_json.get("picked"),
                )
                for nth, (id, text) in enumerate(round_json.get("options") or (), start=1)
            ],
            output=str(outputs[index]) if index < len(outputs) else "",
            letter=round_json.get("letter"),
            prompt=[("prompt", str(prompts[index]))] if index < len(prompts) else [],
        )
        for index, round_json in enumerate(step["rounds"])
    ]


def _mm_mind2web_rounds(step: Mapping[str, Any]) -> list[Round]:
    """Return the question of Multimodal-Mind2Web~. It has all options and follows a description of the screenshot."""
    if not step.get("options"):
        return []
    gold_elements = set((step.get("gold") or {}).get("elements") or ())
    options = [
        Option(letter=str(letter), text=str(text), correct=text in gold_elements, picked=text == step.get("picked"))
        for letter, text in step["options"]
    ]
    prompt = [(str(message.get("role")), str(message.get("text"))) for message in step.get("prompt") or ()]
    return [Round(options=options, output=str(step.get("raw_output") or ""), letter=step.get("element"), prompt=prompt)]


def _value(value: object) -> str:
    return "" if value in (None, "", "None") else str(value)


def _box(box: Mapping[str, Any]) -> BoxDescription:
    position = f"{box['width']:.0f} by {box['height']:.0f} pixels at {box['x']:.0f}, {box['y']:.0f}"
    return BoxDescription(role=_ROLES.get(str(box["role"]), str(box["role"])), position=position)

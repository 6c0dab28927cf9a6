"""Dashboard pages of tasks: list, one task with rubric and scores, and the editor of tasks in YAML."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from app.csv_tables import Cell
from app.dashboard.downloads import Format, csv_file
from app.dashboard.errors import EmptyForm, NotFound
from app.dashboard.home import NamePath
from app.dashboard.html_route import HtmlRoute
from app.dashboard.jobs import TERMINAL, IdPath
from app.dashboard.outline import Node
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import FormCheck, Viewer, ViewerDep
from assay_client.errors import ApiError

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_TASKS_CSV: Final = ("task_id", "description", "version", "kind", "error")
_SCORES_CSV: Final = ("agent", "run", "answers", "low", "high")
_FIELD: Final = "f:"
"""Prefix of the form fields that contain values of the task."""
_MAX_ANSWERS: Final = 200
_MAX_FIELDS: Final = 30_000
_MAX_BYTES: Final = 8_000_000
"""Maximum size of a field. A file of 1 MB can be several times as large as a JSON text."""


class Mode(StrEnum):
    """What the editor shows: the rubric as a tree, or the text of the file."""

    TREE = "tree"
    TEXT = "text"


class Action(StrEnum):
    """Button of the editor."""

    REVIEW = "review"
    TEST = "test"
    SAVE = "save"
    REBASE = "rebase"


@router.get("/tasks")
async def tasks(viewer: ViewerDep, format: Format = Format.HTML) -> Response:
    """List all tasks with the mean scores of the agents."""
    listed = (await viewer.api.get("/v1/tasks"))["items"]
    scores: dict[str, list[dict[str, Any]]] = {}
    for score in (await viewer.api.get("/v1/task-scores"))["items"]:
        scores.setdefault(score["task_id"], []).append(score)
    if format is Format.CSV:
        rows = ((one, score) for one in listed for score in scores.get(one["task_id"], [{}]))
        return await csv_file("tasks", (*_TASKS_CSV, *_SCORES_CSV), (_task_row(*row) for row in rows))
    return await viewer.page(
        "tasks.html", title="Tasks", here="tasks", json="/v1/tasks", csv="/tasks?format=csv",
        tasks=listed, scores=scores,
    )  # fmt: skip


def _task_row(task: Mapping[str, Any], score: Mapping[str, Any]) -> list[Cell]:
    return [*(task.get(name) for name in _TASKS_CSV), *_score_row(score)]


def _score_row(score: Mapping[str, Any]) -> list[Cell]:
    mean = score.get("score") or {}
    return [score.get("agent"), score.get("run"), score.get("answers"), mean.get("low"), mean.get("high")]


@router.get("/tasks/{task_id}")
async def task(task_id: NamePath, viewer: ViewerDep, saved: bool = False, format: Format = Format.HTML) -> Response:
    """Show one task: question, version, rubric, and scores per agent."""
    found = await viewer.api.get_or_none(f"/v1/tasks/{task_id}")
    if found is None:
        raise NotFound(f"Task {task_id!r} has no judge file")
    file = await viewer.api.get_or_none(f"/v1/tasks/{task_id}/file")
    scores = (await viewer.api.get("/v1/task-scores", task_id=task_id))["items"]
    if format is Format.CSV:
        return await csv_file(f"task-{task_id}", _SCORES_CSV, map(_score_row, scores))
    answers = await viewer.api.items(f"/v1/tasks/{task_id}/answers", at_most=_MAX_ANSWERS)
    tree: Sequence[Mapping[str, Any]] = ()
    if file is not None:
        tree = _nested(file["nodes"])
    elif answers:
        cached = await viewer.dashboard.results.get(viewer.api, answers[0]["result_id"])
        tree = [_judged_node(child) for child in cached.tree.outline.root.children]
    return await viewer.page(
        "task.html", title=task_id, here="tasks", json=f"/v1/tasks/{task_id}",
        csv=f"/tasks/{task_id}?format=csv" if scores else None, task=found, file=file, tree=tree,
        scores=scores, answers=answers, saved=saved,
    )  # fmt: skip


@router.get("/tasks/{task_id}/edit")
async def editor(task_id: NamePath, viewer: ViewerDep, mode: Mode = Mode.TREE) -> Response:
    """Show the editor of a YAML file."""
    file = await _file(viewer, task_id)
    return await _editor(viewer, file, {**file, "diff": ""}, mode=mode if file["nodes"] else Mode.TEXT)


@router.post(
    "/tasks/{task_id}/edit",
    dependencies=[FormCheck],
    form_limits={"max_fields": _MAX_FIELDS, "max_part_size": _MAX_BYTES},
)
async def edit(
    task_id: NamePath,
    request: Request,
    viewer: ViewerDep,
    base: Annotated[str, Form()],
    base_sha256: Annotated[str, Form()],
    action: Annotated[Action, Form()] = Action.REVIEW,
    mode: Annotated[Mode, Form()] = Mode.TREE,
    reviewed: Annotated[str, Form()] = "",
    answer: Annotated[str, Form()] = "",
) -> Response:
    """Review the changes, test them on a stored answer, or save them. Nothing is saved that was not reviewed."""
    file = await _file(viewer, task_id)
    edited_from = {**file, "text": _base_text(base), "sha256": base_sha256}
    try:
        draft = await _draft(viewer, request, task_id, edited_from["text"])
    except ApiError as error:
        if error.status != 422:
            raise
        return await _editor(viewer, edited_from, {**edited_from, "diff": ""}, mode=mode, errors=error.errors)
    if action is Action.REBASE:
        return await _rebased(viewer, file, edited_from, draft, mode)
    test_id = None
    if action is Action.TEST and answer and not draft["problems"]:
        body = {"text": draft["text"], "job_id": answer}
        test_id = (await viewer.api.post(f"/v1/tasks/{task_id}/file/tests", body))["id"]
    if action is Action.SAVE and reviewed == draft["sha256"] and not draft["problems"]:
        try:
            await _save(viewer, task_id, draft["text"], base_sha256)
        except ApiError as error:
            if error.code != "FILE_CHANGED":
                raise
            return await _editor(viewer, edited_from, draft, mode=mode, now=await _file(viewer, task_id), status=409)
        return RedirectResponse(f"/tasks/{task_id}?saved=true", 303, headers=HEADERS)
    return await _editor(viewer, edited_from, draft, mode=mode, reviewed=True, test_id=test_id, answer=answer)


@router.post(
    "/tasks/{task_id}/edit/check",
    dependencies=[FormCheck],
    form_limits={"max_fields": _MAX_FIELDS, "max_part_size": _MAX_BYTES},
)
async def check(task_id: NamePath, request: Request, viewer: ViewerDep, base: Annotated[str, Form()]) -> Response:
    """Return the problems of the edited text as JSON, for the script of the editor."""
    try:
        draft = await _draft(viewer, request, task_id, _base_text(base))
    except ApiError as error:
        if error.status != 422:
            raise
        problems = [{"field": "", "message": f"{place}: {message}"} for place, message in error.errors]
        return JSONResponse({"problems": problems, "changed": True}, headers=HEADERS)
    return JSONResponse({"problems": _described(draft["problems"]), "changed": bool(draft["diff"])}, headers=HEADERS)


@router.get("/tasks/{task_id}/tests/{job_id}")
async def test(task_id: NamePath, job_id: IdPath, request: Request, viewer: ViewerDep) -> Response:
    """Show the test of an unsaved file; as a fragment, for the editor."""
    found = await viewer.api.get(f"/v1/tasks/{task_id}/file/tests/{job_id}")
    values = {"test": found, "task_id": task_id, "live": found["status"] not in TERMINAL}
    if "HX-Request" in request.headers:
        return await viewer.fragment("task_test.html", **values)
    path = f"/v1/tasks/{task_id}/file/tests/{job_id}"
    return await viewer.page("task_test_page.html", title="Test", here="tasks", json=path, **values)


async def _editor(
    viewer: Viewer,
    edited_from: Mapping[str, Any],
    draft: Mapping[str, Any],
    *,
    mode: Mode,
    reviewed: bool = False,
    test_id: str | None = None,
    answer: str = "",
    now: Mapping[str, Any] | None = None,
    errors: Sequence[tuple[str, str]] = (),
    status: int = 200,
) -> Response:
    """Render the editor. ``now``: the file on disk, if it is not the version ``edited_from``."""
    task_id = str(edited_from["task_id"])
    answers = await viewer.api.items(f"/v1/tasks/{task_id}/answers", at_most=_MAX_ANSWERS)
    described = _described(draft["problems"])
    places = {*draft["head"], *(node["path"] for node in draft["nodes"])}
    places |= {f"{node['path']}/{key}" for node in draft["nodes"] for key in node["values"]}
    by_place: dict[str, list[str]] = {}
    for problem in described:
        field = problem["field"]
        place = next((each for each in (field, field.rpartition("/")[0]) if each in places), "")
        by_place.setdefault(place, []).append(problem["message"])
    others = [*by_place.pop("", ()), *(f"{place}: {message}" for place, message in errors)]
    return await viewer.page(
        "task_edit.html",
        status=status,
        title=f"Edit {task_id}",
        here="tasks",
        json=f"/v1/tasks/{task_id}/file",
        file=edited_from,
        base=json.dumps(edited_from["text"]),
        draft=draft,
        mode=mode,
        tree=_nested(draft["nodes"]),
        invalid={problem["field"] for problem in described},
        problems=by_place,
        others=others,
        diff=_diff_lines(draft["diff"]) if reviewed else None,
        answers=answers,
        answer=answer,
        test=None if test_id is None else {"id": test_id, "status": "queued", "error": None, "comparison": None},
        live=True,
        task_id=task_id,
        now=now,
        conflict=None
        if now is None
        else await asyncio.to_thread(_conflict, edited_from["text"], now["text"], draft["text"]),
    )


async def _file(viewer: Viewer, task_id: str) -> dict[str, Any]:
    file: dict[str, Any] | None = await viewer.api.get_or_none(f"/v1/tasks/{task_id}/file")
    if file is None:
        raise NotFound(f"Task {task_id!r} has no YAML file; a judge in Python is edited as a file")
    return file


def _base_text(base: str) -> str:
    """Return the text that was edited. It is sent as JSON, because browsers change the line breaks of form fields."""
    try:
        text = json.loads(base)
    except ValueError:
        text = None
    if not isinstance(text, str):
        raise EmptyForm("This form is incomplete. Reload the page and edit the task again.")
    return text


async def _draft(viewer: Viewer, request: Request, task_id: str, base: str) -> dict[str, Any]:
    """Return the edited text of a form with its problems and the difference to ``base``."""
    form = await request.form()
    whole = form.get("text")
    if isinstance(whole, str):
        text = whole.replace("\r\n", "\n")
        text = text.replace("\n", "\r\n") if "\r\n" in base else text
        draft = await _post_edits(viewer, task_id, text, {})
        return {**draft, "diff": await asyncio.to_thread(_diff, base, text)}
    values: dict[str, str | bool] = {}
    for name, value in form.multi_items():  # a ticked box follows its hidden field, so the last value counts
        if name.startswith(_FIELD) and isinstance(value, str):
            values[name.removeprefix(_FIELD)] = value == "true" if name.endswith("/critical") else value
    return await _post_edits(viewer, task_id, base, values)


async def _post_edits(viewer: Viewer, task_id: str, text: str, values: Mapping[str, Any]) -> dict[str, Any]:
    draft: dict[str, Any] = await viewer.api.post(f"/v1/tasks/{task_id}/file/edits", {"text": text, "values": values})
    return draft


async def _rebased(
    viewer: Viewer, file: Mapping[str, Any], edited_from: Mapping[str, Any], draft: Mapping[str, Any], mode: Mode
) -> Response:
    """Apply the changes to the file on disk. In text mode, and if a changed node is gone, show the own text."""
    task_id = file["task_id"]
    base = await _post_edits(viewer, task_id, edited_from["text"], {})
    before, after = _values(base), _values(draft)
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    if mode is Mode.TREE:
        try:
            rebased = await _post_edits(viewer, task_id, file["text"], changed)
        except ApiError as error:
            if error.status != 422:
                raise
            mode = Mode.TEXT
        else:
            return await _editor(viewer, file, rebased, mode=mode, reviewed=True)
    own = {**draft, "diff": await asyncio.to_thread(_diff, file["text"], draft["text"])}
    return await _editor(viewer, file, own, mode=mode, reviewed=True)


async def _save(viewer: Viewer, task_id: str, text: str, base_sha256: str) -> None:
    await viewer.api.put(f"/v1/tasks/{task_id}/file", {"text": text, "base_sha256": base_sha256})


def _values(draft: Mapping[str, Any]) -> dict[str, str | bool]:
    """Return all values that can be edited as in a form, by field."""
    nodes = {f"{node['path']}/{key}": value for node in draft["nodes"] for key, value in node["values"].items()}
    return {
        name: value if isinstance(value, bool) else str(value) for name, value in {**draft["head"], **nodes}.items()
    }


def _nested(nodes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the nodes of a file as a tree."""
    top: list[dict[str, Any]] = []
    levels = [top]
    for node in nodes:
        del levels[node["depth"] + 1 :]
        below: list[dict[str, Any]] = []
        levels[-1].append({**node, "below": below})
        levels.append(below)
    return top


def _judged_node(node: Node) -> dict[str, Any]:
    """Return a node of a result in the form of ``_nested``."""
    claim = node.fields.get("claim")
    return {
        "id": node.name,
        "kind": node.strategy if node.children else "claim" if claim else "check",
        "line": None,
        "values": {"description": node.desc, "weight": node.weight, "critical": node.critical},
        "sources": "",
        "gated": False,
        "below": [_judged_node(child) for child in node.children],
    }


def _described(problems: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [
        {"field": one["field"], "message": f"Line {one['line']}, column {one['column']}: {one['message']}"}
        for one in problems
    ]


def _diff(before: str, after: str) -> str:
    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm=""))


def _diff_lines(diff: str) -> list[tuple[str, str]]:
    """Return the kind (add, cut, place or same) and the text of each line of a unified diff."""
    kinds = {"+": "add", "-": "cut", "@": "place"}
    lines = diff.split("\n")[2:]
    return [(kinds.get(line[:1], "same"), line) for line in lines]


def _conflict(base: str, now: str, own: str) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return heading, text and changes of both versions."""
    return [
        ("The file now", now, _diff_lines(_diff(base, now))),
        ("Your version", own, _diff_lines(_diff(base, own))),
    ]

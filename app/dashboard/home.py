"""Home page (what needs attention, running jobs, matrix of agents and tasks), and the page of one agent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Response
from fastapi.responses import RedirectResponse

from app.csv_tables import Cell
from app.dashboard.charts import TrendPoint
from app.dashboard.downloads import Format, csv_file
from app.dashboard.errors import EmptyForm, NotFound
from app.dashboard.html_route import HtmlRoute
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import FormCheck, IdQuery, NamePath, Viewer, ViewerDep, query_of
from app.dashboard.wording import job_problem, plural
from assay_client.errors import ApiError

Interval: TypeAlias = Mapping[str, Any]
"""95 % interval over tasks from the API, with ``low``, ``high`` and ``method``."""

MAX_POINTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One run of an agent, judged by one judge. ``cells`` maps tasks to items of ``/v1/task-scores``.

    ``score`` and ``success`` are means with bounds (``value``, ``low``, ``high``) over the tasks that all rows have,
    because means over different tasks cannot be compared; None if there is no such task. ``mean_tasks`` counts them.
    ``interval`` is that of ``score``.
    """

    agent: str
    run: str | None
    cells: Mapping[str, Mapping[str, Any]]
    score: Mapping[str, Any] | None
    interval: Interval | None
    success: Mapping[str, Any] | None
    mean_tasks: int
    tasks: int
    answers: int
    incomplete: int
    judge: str
    last_judged_at: str


def matrix_rows(
    scores: Iterable[Mapping[str, Any]], means: Iterable[Mapping[str, Any]], tasks: Collection[str]
) -> list[MatrixRow]:
    """Return the rows of the shown ``tasks``, best first, from the items of ``/v1/task-scores`` and ``mean-scores``."""
    by_run: dict[_Run, dict[str, Mapping[str, Any]]] = {}
    for score in scores:
        if score["task_id"] in tasks:
            by_run.setdefault(_run_of(score), {})[score["task_id"]] = score
    mean_of = {_run_of(mean): mean for mean in means}
    rows = [_row(run, cells, mean_of.get(run, {})) for run, cells in by_run.items()]
    return sorted(rows, key=lambda row: (-_low(row), row.agent, row.run or ""))


_Run: TypeAlias = tuple[str, str | None, str]
"""Agent, run and judge."""


def _run_of(item: Mapping[str, Any]) -> _Run:
    return item["agent"], item["run"], item["judge"]


def _row(of: _Run, cells: Mapping[str, Mapping[str, Any]], mean: Mapping[str, Any]) -> MatrixRow:
    agent, run, judge = of
    return MatrixRow(
        agent=agent,
        run=run,
        cells=cells,
        score=mean.get("score"),
        interval=mean.get("interval"),
        success=mean.get("success"),
        mean_tasks=mean.get("tasks", 0),
        tasks=len(cells),
        answers=sum(cell["answers"] for cell in cells.values()),
        incomplete=sum(cell["incomplete"] for cell in cells.values()),
        judge=judge,
        last_judged_at=max(cell["last_judged_at"] for cell in cells.values()),
    )


def _low(row: MatrixRow) -> float:
    return fmean(cell["score"]["low"] for cell in row.cells.values()) if row.score is None else row.score["low"]


def judges_of(scores: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of answers by judge in the items of ``/v1/task-scores``, most first."""
    counts = Counter[str]()
    for score in scores:
        counts[score["judge"]] += score["answers"]
    return dict(counts.most_common())


def mixed_judges_warning(rows: Iterable[MatrixRow]) -> str | None:
    """Return a warning if the scores of these rows come from different judges, else None."""
    judges = sorted({row.judge for row in rows})
    if len(judges) < 2:
        return None
    return (
        f"These scores come from different judges ({', '.join(judges)}) and must not be compared. Judge the answers "
        "again with one model: assay results rescore --model."
    )


def trend(rows: Iterable[MatrixRow]) -> tuple[TrendPoint, ...]:
    """Return the mean score of each run in the order of judging. Open scores count with their lower bound."""
    compared = sorted((row for row in rows if row.score is not None), key=lambda row: row.last_judged_at)
    return tuple(TrendPoint(row.run or "no run", _low(row)) for row in compared[-MAX_POINTS:])


def csv_header(tasks: Sequence[str]) -> list[str]:
    columns = [f"{task}_{end}" for task in tasks for end in ("low", "high")]
    return [
        "agent", "run", "mean_score_low", "mean_score_high", "success_low", "success_high", "mean_tasks", "tasks",
        "answers", "answers_not_judged", "judge", "last_judged_at", *columns,
    ]  # fmt: skip


def csv_row(row: MatrixRow, tasks: Sequence[str]) -> list[Cell]:
    ends: list[Cell] = [
        None if score is None else score[end] for score in (row.score, row.success) for end in ("low", "high")
    ]
    cells = [row.cells[task]["score"][end] if task in row.cells else None for task in tasks for end in ("low", "high")]
    return [
        row.agent,
        row.run,
        *ends,
        row.mean_tasks,
        row.tasks,
        row.answers,
        row.incomplete,
        row.judge,
        row.last_judged_at,
        *cells,
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What needs attention: a reason with the number of jobs, what to do, and an action.

    ``retry`` contains the ids of jobs that can be retried; ``link`` is the page with the details.
    """

    state: str
    count: str
    reason: str
    remedy: str
    link: str
    retry: tuple[str, ...] = ()


router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_MAX_ROWS = 200
_MAX_COLUMNS = 12
_MAX_OPEN_JOBS = 200
_MAX_FAILED_JOBS = 200
_PER_PAGE = 100
_MAX_CSV = 10_000
_HISTORY_CSV = ("task_id", "answer_name", "run", "status", "result_id", "job_id", "model", "created_at")


@router.get("/")
async def home(
    viewer: ViewerDep,
    task: Annotated[Sequence[str], Query(max_length=1000)] = (),
    judge: str = "",
    mix_judges: bool = False,
    format: Format = Format.HTML,
) -> Response:
    """Show what needs attention, what is running, and the scores of agents by task. ``task`` filters the tasks.

    Of several judges, only the scores of one are shown, unless ``mix_judges``: by default, the one with most answers.
    """
    api = viewer.api
    listed, jobs, failed, pages, providers = await asyncio.gather(
        api.get("/v1/task-scores"),
        _open_jobs(viewer),
        api.items("/v1/jobs", at_most=_MAX_FAILED_JOBS, status="failed", superseded="false"),
        api.get("/v1/pages/tasks"),
        api.get("/v1/providers"),
    )
    scores = listed["items"]
    judges = judges_of(scores)
    if len(judges) > 1 and not mix_judges:
        judge = judge if judge in judges else next(iter(judges))
        scores = [score for score in scores if score["judge"] == judge]
    chosen = {"mix_judges": "true"} if mix_judges else {"judge": judge}
    known = sorted({score["task_id"] for score in scores})
    shown = [name for name in known if name in task] or known
    filters = {"judge": judge if len(judges) > 1 and not mix_judges else None}
    means = await api.get("/v1/mean-scores", task_id=None if shown == known else shown, **filters)
    rows = matrix_rows(scores, means["items"], shown)
    if format is Format.CSV:
        return await csv_file("agents", csv_header(shown), (csv_row(row, shown) for row in rows))
    mixed = mixed_judges_warning(rows)
    return await viewer.page(
        "home.html", title="Agents", here="home", tab="agents", json="/v1/task-scores",
        csv=f"/?{urlencode([('format', 'csv'), *chosen.items(), *(('task', one) for one in known if one in task)])}",
        judges=judges, judge=judge, chosen=chosen, is_mixed=mixed is not None,
        rows=rows[:_MAX_ROWS], rows_left_out=len(rows) - _MAX_ROWS, known=known, shown=shown,
        columns=shown[:_MAX_COLUMNS], mixed=mixed, running=_by_submission(jobs),
        problems=_problems(jobs, failed, pages["items"]), warnings=providers["warnings"],
        tasks=[] if rows else (await api.get("/v1/tasks"))["items"],
    )  # fmt: skip


@router.post("/jobs/retry", dependencies=[FormCheck])
async def retry_jobs(viewer: ViewerDep, job: Annotated[list[str], Form(max_length=_MAX_FAILED_JOBS)]) -> Response:
    """Retry several jobs, then redirect to the home page. Jobs that were retried meanwhile are skipped."""
    for job_id in job:
        try:
            await viewer.api.post(f"/v1/jobs/{job_id}/retry")
        except ApiError as error:
            if error.status != 409:
                raise
    return RedirectResponse("/", 303, headers=HEADERS)


@router.post("/submit", dependencies=[FormCheck])
async def submit(
    viewer: ViewerDep,
    task_id: Annotated[str, Form()] = "",
    agent: Annotated[str, Form()] = "",
    text: Annotated[str, Form()] = "",
    run: Annotated[str, Form()] = "",
) -> Response:
    """Submit a pasted answer, then redirect to its submission."""
    if not text.strip():
        raise EmptyForm("The answer is empty. Go back and paste the text of the answer.")
    body: dict[str, Any] = {
        "agent": agent.strip(),
        "task_id": task_id,
        "answers": [{"name": "answer_1", "text": text.replace("\r\n", "\n")}],
    }
    accepted = await viewer.api.post("/v1/submissions", body | ({"run": run.strip()} if run.strip() else {}))
    return RedirectResponse(f"/submissions/{accepted['id']}", 303, headers=HEADERS)


@router.get("/submit")
async def submit_form(viewer: ViewerDep, task_id: str = "", agent: str = "") -> Response:
    """Show the form that submits a pasted answer."""
    tasks = (await viewer.api.get("/v1/tasks"))["items"]
    return await viewer.page("submit.html", title="Submit an answer", tasks=tasks, task_id=task_id, agent=agent)


@router.get("/agents/{agent}")
async def agent(agent: NamePath, viewer: ViewerDep, cursor: IdQuery = None, format: Format = Format.HTML) -> Response:
    """Show one agent: its runs and a page of its results."""
    if format is Format.CSV:
        history = await viewer.api.items(f"/v1/agents/{agent}/history", at_most=_MAX_CSV)
        header = (*_HISTORY_CSV, "score_low", "score_high")
        return await csv_file(agent, header, map(_csv_result, history))
    scores, means, listed, failed = await asyncio.gather(
        viewer.api.get("/v1/task-scores", agent=agent),
        viewer.api.get("/v1/mean-scores", agent=agent),
        viewer.api.get(f"/v1/agents/{agent}/history", limit=_PER_PAGE, cursor=cursor),
        viewer.api.items("/v1/jobs", at_most=_MAX_FAILED_JOBS, agent=agent, status="failed", superseded="false"),
    )
    if not listed["items"] and not failed:
        raise NotFound(f"Agent {agent!r} has no judged answers")
    tasks = sorted({score["task_id"] for score in scores["items"]})
    rows = sorted(matrix_rows(scores["items"], means["items"], tasks), key=lambda row: row.last_judged_at, reverse=True)
    mixed = mixed_judges_warning(rows)
    return await viewer.page(
        "agent.html", title=agent, here="home", json=f"/v1/task-scores?agent={agent}",
        csv=f"/agents/{agent}?format=csv",
        rows=rows, tasks=tasks, columns=tasks[:_MAX_COLUMNS], mixed=mixed,
        trend=() if mixed else trend(rows),
        history=listed["items"], following=listed["next_cursor"], problems=_failed(failed),
        runs=[row.run for row in rows if row.run is not None], is_first_page=cursor is None,
    )  # fmt: skip


@router.get("/agents/{agent}/statistics")
async def statistics(
    agent: NamePath,
    viewer: ViewerDep,
    run: Annotated[str | None, Query(max_length=100)] = None,
    judge: Annotated[str | None, Query(max_length=200)] = None,
    mix_judges: bool = False,
) -> Response:
    """Show the figures of an agent, or of one run of it, with intervals. Those of several judges are not mixed."""
    chosen = {"run": run, "judge": judge, "mix_judges": "true"}
    summary = await viewer.api.get(f"/v1/agents/{agent}/summary", **chosen)
    judges = summary.get("judges") or {}
    figures = (summary.get("statistics") or {}) if summary.get("avg_score") is not None else {}
    k = int(summary.get("num_runs") or 0)
    return await viewer.page(
        "agent_statistics.html", title=f"Statistics of {agent}{f', run {run}' if run else ''}", here="home",
        json=f"/v1/agents/{agent}/summary?{query_of(chosen)}", agent=agent, query=query_of({"run": run}),
        judges=judges, is_refused=len(judges) > 1 and not mix_judges,
        summary=summary, k=k, figures=figures,
        passing=next((one for one in figures.get("pass_at_k") or () if one["k"] == k), None),
    )  # fmt: skip


async def _open_jobs(viewer: Viewer) -> list[dict[str, Any]]:
    """Return unfinished jobs, newest first."""
    jobs = await viewer.api.items("/v1/jobs", at_most=_MAX_OPEN_JOBS, status="running")
    jobs += await viewer.api.items("/v1/jobs", at_most=_MAX_OPEN_JOBS, status="queued")
    return sorted(jobs, key=lambda job: str(job["id"]), reverse=True)


def _by_submission(jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the submissions of unfinished jobs, with job counts and total progress."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for job in jobs:
        groups.setdefault(str(job["submission_id"]), []).append(job)
    return [
        {
            "id": submission_id,
            "agent": members[0]["agent"],
            "task_id": members[0]["task_id"],
            "run": members[0]["run"],
            "jobs": members,
            "running": sum(job["status"] == "running" for job in members),
            "queued": sum(job["status"] == "queued" for job in members),
            "paused": sum(job["stage"] == "paused" for job in members),
            "done": sum(job["progress"]["leaves_done"] + job["progress"]["pages_done"] for job in members),
            "total": sum(job["progress"]["leaves_total"] + job["progress"]["pages_total"] for job in members),
        }
        for submission_id, members in groups.items()
    ]


def _problems(
    jobs: Sequence[Mapping[str, Any]], failed: Sequence[Mapping[str, Any]], tasks: Sequence[Mapping[str, Any]]
) -> list[Problem]:
    """Return what needs attention: paused jobs, failed jobs and unreadable pages of ``tasks``."""
    paused = [job for job in jobs if job["stage"] == "paused"]
    pages, leaves = sum(one["needs_work"] for one in tasks), sum(one["leaves_waiting"] for one in tasks)
    problems = [*_grouped(paused, "paused", link="/jobs?status=queued"), *_failed(failed)]
    if pages:
        claims = plural(leaves, "claim depends", "claims depend")
        problems.append(
            Problem(
                state="not_judged",
                count=plural(pages, "unreadable page", "unreadable pages"),
                reason=f"{claims} on {'it' if pages == 1 else 'them'}." if leaves else "",
                remedy="Capture again, upload the content, or mark as reviewed.",
                link="/pages?show=work",
            )
        )
    return problems


def _failed(jobs: Sequence[Mapping[str, Any]]) -> list[Problem]:
    return _grouped(jobs, "failed", link="/jobs?status=failed")


def _grouped(jobs: Sequence[Mapping[str, Any]], state: str, *, link: str) -> list[Problem]:
    """Return a problem for each error code of these jobs."""
    groups: dict[str, list[str]] = {}
    for job in jobs:
        groups.setdefault(job["error"]["code"] if job["error"] else "", []).append(str(job["id"]))
    problems = []
    for code, ids in groups.items():
        reason, remedy = job_problem(code) if code else ("", "")
        problems.append(
            Problem(
                state=state,
                count=plural(len(ids), f"{state} job", f"{state} jobs"),
                reason=reason,
                remedy=remedy,
                link=f"/jobs/{ids[0]}" if len(ids) == 1 else link,
                retry=tuple(ids),
            )
        )
    return problems


def _csv_result(row: Mapping[str, Any]) -> list[Any]:
    score = row["score"] or {"low": None, "high": None}
    return [*(row[name] for name in _HISTORY_CSV), score["low"], score["high"]]

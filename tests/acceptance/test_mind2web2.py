"""The command ``mind2web2`` as users start it: real processes, files and exit codes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from app.demo.expected import examples_dir
from app.demo.site import DemoSite
from tests.architecture.sources import ROOT
from tests.fakes.loop_thread import entered_in_thread
from tests.fakes.program import clean_environment
from tests.fakes.warm_start import warm_mind2web2
from tests.standin.call import Call
from tests.standin.llm import StandInLLM

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

Ended: TypeAlias = subprocess.CompletedProcess[str]


def run(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, timeout: float = 300) -> Ended:
    """Run the command in ``folder``, without settings and keys of this machine."""
    own = clean_environment(**{"PYTHONPATH": str(ROOT), **(environment or {})})
    return subprocess.run(
        [warm_mind2web2(), *arguments],
        cwd=folder,
        env=own,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@dataclass(frozen=True, slots=True)
class BadInput:
    """Invalid files, the command that reads them, and the expected message. Content ``None``: an empty folder."""

    command: str
    files: Mapping[str, str | None]
    exit_code: int
    file: str
    fix: str

    @property
    def name(self) -> str:
        return f"{self.command.split()[0]}: {self.file}"


ANSWER: dict[str, str | None] = {"answers/otter/bridge/answer_1.md": "It has two towers: https://bridge.example/"}
BROKEN_META = ANSWER | {"answers/otter/bridge/answer_1.meta.json": '{"time_seconds": '}
NEGATIVE_TIME = ANSWER | {"answers/otter/bridge/answer_1.meta.json": '{"time_seconds": -3}'}
BROKEN_COPY = {
    "eval_results/otter/bridge/answer_1/answer_1.md": "It has two towers.",
    "eval_results/otter/bridge/answer_1/answer_1.meta.json": '{"time_seconds": "12"}',
}
NO_COLUMN = ANSWER | {"tasks.csv": "task,domain\nbridge,Travel\n"}
EMPTY_AGENT: dict[str, str | None] = {"answers/otter": None, "eval_results/otter": None}
SIGNATURE = "client, answer, agent_name, answer_name, cache, semaphore, logger"
SCRIPTS: dict[str, str | None] = {"eval_scripts/2026_11_01/bridge.py": f"async def evaluate_answer({SIGNATURE}): ..."}
BROKEN_INDEX = ANSWER | {"cache/otter/bridge/index.json": '["a list"]'}

CASES = [
    BadInput("validate", BROKEN_META, 1, "answers/otter/bridge/answer_1.meta.json", "write an object such as"),
    BadInput("metrics", NEGATIVE_TIME, 1, "answers/otter/bridge/answer_1.meta.json", "use a number >= 0"),
    BadInput("validate --task-list tasks.csv", NO_COLUMN, 1, "tasks.csv", "add it to the first line"),
    BadInput("cache --no-llm", BROKEN_INDEX, 1, "cache/otter/bridge/index.json", "restore the file"),
    BadInput("validate", EMPTY_AGENT, 1, "answers/otter", "add <task_id>/answer_<k>.md files"),
    BadInput(
        "evaluate", SCRIPTS | BROKEN_META, 1, "answers/otter/bridge/answer_1.meta.json", "write an object such as"
    ),
    BadInput("report", BROKEN_COPY, 1, "eval_results/otter/bridge/answer_1/answer_1.meta.json", "use a number >= 0"),
    BadInput("evaluate", ANSWER, 2, "eval_scripts", "put <task_id>.py files into"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_ends_with_the_exit_code_of_the_contract_and_names_the_file_and_the_fix(
    case: BadInput, tmp_path: Path
):
    for name, content in case.files.items():
        path = tmp_path / name
        (path if content is None else path.parent).mkdir(parents=True, exist_ok=True)
        if content is not None:
            path.write_text(content, "utf-8")
    command, *options = case.command.split()
    ended = run(tmp_path, command, "otter", *options, environment={"OPENAI_API_KEY": "none"})
    assert ended.returncode == case.exit_code
    [line] = [line for line in (ended.stdout + ended.stderr).splitlines() if case.file in line]
    assert case.fix in line
    assert "Traceback" not in ended.stderr


# Round trip. Run k of the agent is the answer of the k-th agent of the demo.

RUNS = ("demo", "demo-careless", "demo-inventive")
TASKS = ("karrow_visit", "pellard_gauges")
SCORES = {"karrow_visit": [1.0, 0.5, 0.0], "pellard_gauges": [1.0, 0.0, 0.0]}
"""Run 2: the museum does not close at 18:00, the page for members is a login wall, the Heron 2 does not cost 1,530.
Run 3: the ferry does not leave at 9:05, the pages of museum and gauge do not exist, 4 crowns is no price."""

KARROW_VISIT = """
from pydantic import BaseModel
from mind2web2 import Evaluator

class Plan(BaseModel):
    leaves: str | None = None
    ferry: list[str] = []
    closes: str | None = None
    ticket: str | None = None
    museum: list[str] = []
    price: str | None = None
    members: list[str] = []

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    evaluator.initialize(
        task_id="karrow_visit", agent_name=agent_name, answer_name=answer_name, client=client, answer=answer,
        task_description="Plan a visit", global_cache=cache, global_semaphore=semaphore, logger=logger,
        default_model=model,
    )
    plan = await evaluator.extract("Extract the plan", Plan, "plan")
    leaves = evaluator.add_leaf("leaves", "Departure of the ferry")
    museum = evaluator.add_parallel("museum", "Museum")
    closes = evaluator.add_leaf("closes", "Closing time", parent=museum)
    ticket = evaluator.add_leaf("ticket", "Price of a ticket", parent=museum)
    members = evaluator.add_leaf("members", "Price for members")
    await evaluator.verify(f"The ferry leaves at [{plan.leaves}]", leaves, plan.ferry)
    await evaluator.batch_verify([
        (f"The museum closes at [{plan.closes}]", plan.museum, closes, None),
        (f"A ticket costs [{plan.ticket}]", plan.museum, ticket, None),
    ])
    await evaluator.verify(f"Members pay [{plan.price}]", members, plan.members)
    return evaluator.get_summary()
"""

PELLARD_GAUGES = """
from pydantic import BaseModel
from mind2web2 import Evaluator

class Gauge(BaseModel):
    price: str | None = None
    source: str | None = None

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    evaluator.initialize(
        task_id="pellard_gauges", agent_name=agent_name, answer_name=answer_name, client=client, answer=answer,
        task_description="Compare gauges", global_cache=cache, global_semaphore=semaphore, logger=logger,
        default_model=model,
    )
    gauge = await evaluator.extract("Extract the Heron 2", Gauge, "gauge")
    price = evaluator.add_leaf("price", "Price of the Heron 2")
    await evaluator.verify(f"The Heron 2 costs [{gauge.price}]", price, gauge.source)
    return evaluator.get_summary()
"""

URL = r"http://127[^\s)]+"


def first(pattern: str, text: str) -> str:
    """Return the first match, or its group."""
    match = re.search(pattern, text, re.IGNORECASE)
    assert match is not None, (pattern, text)
    return match[match.lastindex or 0]


def answer_in(call: Call) -> str:
    """Return the answer in a prompt without Markdown marks."""
    return re.sub(r"[*]+", "", call.block("answer"))


def plan_of(call: Call) -> dict[str, Any]:
    text = answer_in(call)
    parts = dict(
        zip(("ferry", "museum", "talk", "members"), re.split(r"\b(?:Museum|Talk|Members)\n", text), strict=True)
    )

    def value(part: str, name: str) -> str:
        return first(rf"{name}: ([^.;\n]+?)(?= *(?:\.|;|\(|\n|$))", parts[part])

    return {
        "leaves": value("ferry", "leaves"),
        "closes": value("museum", "closes"),
        "ticket": value("museum", "ticket"),
        "price": value("members", "price"),
        **{part: re.findall(URL, parts[part]) for part in ("ferry", "museum", "members")},
    }


def gauge_of(call: Call) -> dict[str, Any]:
    about = answer_in(call).rpartition("Heron 2")
    text = about[2] if "crowns" in about[2] else answer_in(call).partition("Heron 2")[2]
    return {"price": first(r"1,\d+ crowns", text), "source": first(URL, text)}


def value_on_page(call: Call) -> bool:
    """Support a claim if its value, which is in brackets, is on the page."""
    return first(r"\[(.+?)\]", call.claim) in call.page


class World:
    """Folder of a project with the demo website and a model server, both in a thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = StandInLLM(rule=value_on_page, extractions={"Plan": plan_of, "Gauge": gauge_of})
        self.site = DemoSite()

    def run(self, *arguments: str) -> Ended:
        environment = {
            "OPENAI_API_KEY": "key",
            "OPENAI_BASE_URL": self.model.base_url,
            "ASSAY_EGRESS_ALLOW": self.site.egress_allow,
            "ASSAY_BROWSER_UNSANDBOXED": "true",  # the browser opens only the demo website
        }
        return run(self.folder, *arguments, environment=environment, timeout=300)

    def read(self, path: str) -> Any:
        return json.loads((self.folder / path).read_text("utf-8"))

    def result(self, task: str, k: int) -> dict[str, Any]:
        [path] = (self.folder / f"eval_results/otter/{task}/answer_{k}/results").glob("*.json")
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found


@pytest.fixture(scope="module")
def world(demo_port: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("project")
    for task in TASKS:
        for k, agent in enumerate(RUNS, start=1):
            answer = folder / f"answers/otter/{task}/answer_{k}.md"
            answer.parent.mkdir(parents=True, exist_ok=True)
            answer.write_bytes((examples_dir() / agent / task / "answer_1.md").read_bytes())
            answer.with_suffix(".meta.json").write_text(json.dumps({"time_seconds": 60 * k}), "utf-8")
    scripts = folder / "eval_scripts" / "2026_11_01"
    scripts.mkdir(parents=True)
    (scripts / "karrow_visit.py").write_text(KARROW_VISIT, "utf-8")
    (scripts / "pellard_gauges.py").write_text(PELLARD_GAUGES, "utf-8")
    (folder / "tasks.csv").write_text("task_id,domain\nkarrow_visit,Travel\npellard_gauges,Shopping\n", "utf-8")
    made = World(folder)
    with entered_in_thread(made.model, made.site):
        yield made


@pytest.fixture(scope="module")
def ended(world: World) -> dict[str, Ended]:
    """The commands in the order of a run, by name."""
    listed = ("--task-list", "tasks.csv")
    return {
        "validate": world.run("validate", "otter", *listed),
        "cache": world.run("cache", "otter", *listed, "--url-models", "gpt-6-luna"),
        "evaluate": world.run("evaluate", "otter", *listed),
        "metrics": world.run("metrics", "otter", *listed, "--json"),
        "report": world.run("report", "otter", "--output", "report.html"),
    }


def test_each_command_of_a_run_ends_with_0(ended: dict[str, Ended]):
    assert {name: (one.returncode, one.stderr if one.returncode else "") for name, one in ended.items()} == {
        name: (0, "") for name in ("validate", "cache", "evaluate", "metrics", "report")
    }
    assert ended["validate"].stdout == "otter: 0 errors, 0 warnings\n"
    assert ended["cache"].stdout.startswith("otter: 13 pages in 2 tasks: ")


def test_cache_contains_the_cited_pages_and_the_failures(world: World, ended: object):
    urls = world.read("cache/otter/karrow_visit.json")
    assert urls["url_models"] == ["gpt-6-luna"]
    assert urls["url_extraction_complete"] is True
    assert urls["urls"][f"{world.site.url}/museum/members"] == ["answer_2.md"]
    assert sorted(urls["failed_urls"]) == [f"{world.site.url}/museum/members"]
    assert world.read("cache/otter/karrow_visit/failures.json")[f"{world.site.url}/museum/members"]["blocked"] is True


def test_results_have_the_scores_and_the_evidence(world: World, ended: object):
    results = {task: [world.result(task, k) for k in (1, 2, 3)] for task in TASKS}
    assert {task: [one["final_score"] for one in found] for task, found in results.items()} == SCORES
    walled = results["karrow_visit"][1]
    assert walled["judge"] == {"model": "gpt-6-luna", "reasoning_effort": "max", "temperature": None}
    assert (walled["status"], walled["score"]["low"]) == ("incomplete", 0.5)
    assert walled["score"]["high"] == pytest.approx(5 / 6)  # if members pay 6 crowns
    root = walled["eval_breakdown"][0]["verification_tree"]
    leaves = {leaf["id"]: leaf for node in root["children"] for leaf in node["children"] or [node]}
    [unread] = leaves["members"]["evidence"]["checks"]
    assert (unread["url"], unread["passed"], unread["note"]) == (f"{world.site.url}/museum/members", False, "no page")
    assert leaves["members"]["outcome"] == "not_judged"
    assert leaves["closes"]["evidence"]["claim"] == "The museum closes at [18:00]"
    assert [check["votes"] for check in leaves["closes"]["evidence"]["checks"]] == [[False, False]] * 2


def test_metrics_have_the_figures(world: World, ended: dict[str, Ended]):
    metrics = world.read("eval_results/otter/metrics.json")
    assert json.loads(ended["metrics"].stdout) == metrics
    assert metrics["partial_completion"]["per_run"] == [1.0, 0.25, 0.0]
    assert metrics["success_rate"]["per_run"] == [1.0, 0.0, 0.0]
    assert metrics["pass_at_k"] == {"k": 3, "value": 1.0}
    assert metrics["by_domain"]["Travel"]["partial_completion"]["per_run"] == [1.0, 0.5, 0.0]
    assert (metrics["missing_answers"], metrics["missing_results"], metrics["stale_results"]) == ([], [], [])
    assert set(metrics["served_models"]) == {"gpt-6-luna"}
    assert metrics["partial_completion_bounds"]["high"] == pytest.approx(metrics["partial_completion"]["mean"] + 1 / 18)
    assert metrics["leaderboard_entry"] == {
        "partial_completion": "0.42", "success_rate": "0.33", "pass3": "1.00", "time": "2.00", "answer_length": "70",
    }  # fmt: skip


def test_report_shows_the_checks_with_their_pages(world: World, ended: object):
    for path in ("report.html", "eval_results/otter/report.html"):
        page = (world.folder / path).read_text("utf-8")
        assert "The museum closes at [18:00]" in page
        assert f'<a href="{world.site.url}/museum/ferry"' in page
        assert "data:image/jpeg;base64," in page


def test_second_evaluation_asks_nothing_and_a_changed_answer_is_judged_again(world: World, ended: object):
    before = len(world.model.calls)
    again = world.run("evaluate", "otter", "--task-list", "tasks.csv")
    assert (again.returncode, len(world.model.calls)) == (0, before)
    answer = world.folder / "answers/otter/pellard_gauges/answer_2.md"
    text = answer.read_text("utf-8")
    answer.write_text(text.replace("1,530", "1,350"), "utf-8")
    assert world.run("metrics", "otter", "--no-save").stdout.count("pellard_gauges run 2") == 1  # stale
    assert world.run("evaluate", "otter", "--task", "pellard_gauges").returncode == 0
    assert {call.claim for call in world.model.calls[before:] if "[" in call.claim} == {
        "The Heron 2 costs [1,350 crowns]"
    }
    assert world.result("pellard_gauges", 2)["final_score"] == 1.0
    superseded = world.folder / "eval_results/otter/pellard_gauges/answer_2/results/superseded"
    assert len(list(superseded.iterdir())) == 1
    answer.write_text(text, "utf-8")

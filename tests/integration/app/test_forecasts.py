"""Forecasts compared with the actual run: shipped examples and bench scripts, with a stand-in model over HTTP and
stored pages."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from answers.bundle import read_folder
from answers.citations import unique_urls
from app.demo.expected import examples_dir, page_texts
from app.engine.evaluation import AnswerEvaluation, PlannedAnswer, evaluate_all, plan
from app.engine.forecasting import forecast_plan
from app.engine.judge_files import load_catalogue
from app.engine.public_cache import PublicCache
from app.engine.runtime import open_runtime
from app.progress import Progress
from app.settings import Settings
from cache.capture import CaptureOutcome, Observation
from judges.analysis.forecasts.forecast import EMPTY_FORECAST, Forecast
from judges.llm.json_schema import ReplySchema
from judges.llm.lexical import decide, fill
from judges.llm.pricing import price_of
from judges.prompting.blocks import neutralise
from tests.bench.inputs import AGENT, ANSWERS, SCRIPTS, TASKS, answers_folder, cache_folder
from tests.bench.model import BenchModel
from tests.fakes.settings import settings_for_tests
from tests.integration.app.judged_folder import stored_result
from tests.standin.call import Call
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.timeout(600)

MODEL = "gpt-4.1"
NEAR = 0.2
ENDS_EARLY = "film_directors/answer_2"
"""Answer that only the bounds fit before its first run: its chain ends at a claim that may pass. See decision 33. The
total of its script is near."""
AGENTS = ("demo", "demo-careless", "demo-inventive")


class SilentObserver:
    def progress(self, planned: PlannedAnswer, progress: Progress) -> None: ...

    def finished(self, evaluated: AnswerEvaluation) -> None: ...


class LexicalStandIn(StandInLLM):
    """Stand-in model that extracts values by their labels and judges claims by the words of the page."""

    def __init__(self) -> None:
        super().__init__(delay_s=0.1, rule=lambda call: decide(call.claim, _parts(call)).result)

    def _content(self, call: Call) -> Any:
        fields = (call.schema or {}).get("properties", {})
        if call.schema is None or "result" in fields:
            return super()._content(call)
        text, _ = fill(ReplySchema(call.schema_name, json.dumps(call.schema)), call.page or call.block("answer"))
        return json.loads(text)


def _parts(call: Call) -> dict[str, str]:
    return {"page": call.page} if call.page else {"answer": call.block("answer")}


class CountingModel(BenchModel):
    """Stand-in model that counts requests and cost per answer. Entries and cited URLs contain script and number."""

    def __init__(self) -> None:
        super().__init__(delay_s=0.05, quotes=True)
        self.asked: Counter[str] = Counter()
        self.usd: defaultdict[str, float] = defaultdict(float)

    async def _reply(self, call: Call, writer: asyncio.StreamWriter) -> bytes:
        price = price_of(MODEL)
        assert price is not None
        answer = _answer_of(call.text)
        written = max(1, len(json.dumps(self._content(call), ensure_ascii=False)) // 4)
        self.asked[answer] += 1
        self.usd[answer] += price.usd(input_tokens=call.prompt_tokens, output_tokens=written)
        return await super()._reply(call, writer)


def _answer_of(request: str) -> str:
    host = re.search(r"www\.([a-z-]+)\.example/(\d+)/", request)
    if host is not None:
        return f"{host[1].replace('-', '_')}/answer_{int(host[2]) + 1}"
    entry = re.search(r"\*\*(\w+) (\d+)-\d+\*\*", request)  # of the answer that cites nothing
    assert entry is not None
    return f"{next(task.id for task in TASKS if task.id.startswith(entry[1].lower()))}/answer_{entry[2]}"


class Workspace:
    """Folder in which answers are forecast and judged repeatedly."""

    def __init__(self, root: Path, settings: Settings, public: PublicCache | None = None) -> None:
        self.out = root / "out"
        self.settings = settings
        self.public = public
        with ThreadPoolExecutor(1) as thread:  # the tests that call this have a running event loop
            self.catalogue = thread.submit(asyncio.run, load_catalogue(settings)).result()

    def planned(self, answers: Path, agent: str) -> list[PlannedAnswer]:
        found = read_folder(answers, agent)
        return plan(found, self.catalogue, out=self.out, model=MODEL, overwrite=True)

    async def forecast(self, planned: Sequence[PlannedAnswer]) -> list[Forecast]:
        found = await forecast_plan(self.settings, self.catalogue, planned, out=self.out, public=self.public)
        return [one for one in found if one is not None]

    async def judge(self, planned: Sequence[PlannedAnswer]) -> list[dict[str, Any]]:
        async with open_runtime(self.settings) as runtime:
            judged = await evaluate_all(runtime, planned, SilentObserver(), cache=self.public)
        assert [one.error for one in judged] == [None] * len(judged)
        return [stored_result(one) for one in judged]

    def forget(self) -> None:
        shutil.rmtree(self.settings.data_dir / "replies")


def by_task(
    workspace: Workspace, planned: Sequence[PlannedAnswer], forecasts: Sequence[Forecast], model: StandInLLM, asked: int
) -> dict[str, tuple[Forecast, float, float]]:
    """Return the forecast, calls and cost of each task. Calls are those since number ``asked``, including calls that
    were cancelled because another page supported the claim first."""
    price = price_of(MODEL)
    assert price is not None
    found: dict[str, tuple[Forecast, float, float]] = {}
    for one, foreseen in zip(planned, forecasts, strict=True):
        before, _, _ = found.get(one.folder.task_id, (EMPTY_FORECAST, 0, 0.0))
        found[one.folder.task_id] = (before + foreseen, 0, 0.0)
    for call in model.calls[asked:]:
        task = next(task for task in found if neutralise(descriptions(workspace)[task]).text in call.block("task"))
        written = max(1, len(json.dumps(model._content(call), ensure_ascii=False)) // 4)
        foreseen, calls, usd = found[task]
        usd += price.usd(input_tokens=call.prompt_tokens, output_tokens=written)
        found[task] = (foreseen, calls + 1, usd)
    return found


def descriptions(workspace: Workspace) -> dict[str, str]:
    return {task: judge.description for task, judge in workspace.catalogue.judges.items()}


def is_near(foreseen: float | None, actual: float) -> bool:
    return foreseen is not None and abs(foreseen - actual) <= NEAR * actual


async def fill_with_pages(settings: Settings, answers: Path) -> None:
    """Store the pages that the shipped answers cite. Pages without a text are stored as missing."""
    texts = page_texts()
    async with open_runtime(settings) as runtime:
        urls = {url for agent in AGENTS for one in read_folder(answers, agent) for answer in one.answers
                for url in unique_urls(answer.text)}  # fmt: skip
        for url in sorted(urls):
            text = texts.get(url)
            seen = Observation(
                url=url,
                outcome=CaptureOutcome.HTTP_ERROR if text is None else CaptureOutcome.OK,
                captured_at=datetime.now(UTC),
                duration_s=0.0,
                backend="by heart",
                final_url=url,
                http_status=404 if text is None else 200,
                text=text or "",
                screenshots=() if text is None else (b"\xff\xd8 a picture",),
                gone=text is None,
            )
            await runtime.pages.add(url, seen)


@pytest.mark.parametrize("agent", AGENTS)
async def test_forecast_matches_shipped_examples(agent: str, tmp_path: Path):
    async with LexicalStandIn() as model:
        settings = settings_for_tests(
            data_dir=tmp_path / "data", model=f"openai/{MODEL}", openai_api_key="x", openai_base_url=model.base_url
        )
        workspace = Workspace(tmp_path, settings)
        await fill_with_pages(settings, examples_dir())
        planned = workspace.planned(examples_dir(), agent)
        for past_runs in (0, 1):
            foreseen = await workspace.forecast(planned)
            asked = len(model.calls)
            results = await workspace.judge(planned)
            for task, (forecast, calls, usd) in by_task(workspace, planned, foreseen, model, asked).items():
                details = (task, past_runs, forecast.as_json(), calls, usd)
                assert is_near(forecast.expected.calls, calls), details
                assert is_near(forecast.expected.usd, usd), details
                assert forecast.low.calls <= calls <= forecast.high.calls, details
                assert (forecast.past_runs > 0) == (past_runs > 0)
            # Calls that were cancelled, because another page supported the claim first, have no reply and
            # are not counted.
            assert len(model.calls) - asked >= sum(result["usage"]["calls"] for result in results)
            workspace.forget()
            planned = workspace.planned(examples_dir(), agent)


async def test_forecast_with_cached_replies_has_no_calls(tmp_path: Path):
    async with LexicalStandIn() as model:
        settings = settings_for_tests(
            data_dir=tmp_path / "data", model=f"openai/{MODEL}", openai_api_key="x", openai_base_url=model.base_url
        )
        workspace = Workspace(tmp_path, settings)
        await fill_with_pages(settings, examples_dir())
        first = await workspace.judge(workspace.planned(examples_dir(), "demo"))
        asked = len(model.calls)
        foreseen = await workspace.forecast(workspace.planned(examples_dir(), "demo"))
        again = await workspace.judge(workspace.planned(examples_dir(), "demo"))
        assert len(model.calls) == asked
    for forecast, before, result in zip(foreseen, first, again, strict=True):
        assert result["score"] == before["score"]
        assert (forecast.low.calls, forecast.expected.calls, forecast.high.calls) == (0, 0, 0)
        assert (forecast.expected.usd, result["usage"]["usd"], result["usage"]["calls"]) == (0, 0, 0)
        assert forecast.expected.cached_calls > 0
        assert result["rejudged"]["again"] == 0
        assert result["rejudged"]["reused"] > 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a script ends while it lists claims
async def test_forecast_matches_bench_scripts(tmp_path: Path):
    """Forecast and judge the answers of five scripts, then of the other five, then all of them again."""
    shutil.copytree(cache_folder(tiny=True), tmp_path / "cache", copy_function=os.link)
    public = PublicCache(tmp_path / "cache")
    async with CountingModel() as model:
        settings = settings_for_tests(
            data_dir=public.evidence_folder(AGENT),
            judges=(SCRIPTS,),
            model=f"openai/{MODEL}",
            openai_api_key="x",
            openai_base_url=model.base_url,
        )
        workspace = Workspace(tmp_path, settings, public)
        wrong = list[Any]()
        for past_runs, tasks in ((0, TASKS[:5]), (0, TASKS[5:]), (1, TASKS)):
            every = workspace.planned(answers_folder(ANSWERS), AGENT)
            planned = [one for task in tasks for one in every if one.folder.task_id == task.id]
            foreseen = await workspace.forecast(planned)
            assert not model.asked
            await workspace.judge(planned)
            scripts: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0, 0, 0])
            for one, forecast in zip(planned, foreseen, strict=True):
                answer = f"{one.folder.task_id}/{one.answer.name.removesuffix('.md')}"
                calls, usd = model.asked[answer], model.usd[answer]
                details = (answer, past_runs, forecast.as_json(), calls, usd)
                assert forecast.problem is None, details
                assert (forecast.past_runs > 0) == (past_runs > 0), details
                assert forecast.low.calls * (1 - NEAR) <= calls <= forecast.high.calls, details
                sums = (forecast.expected.calls, calls, forecast.expected.usd or 0.0, usd)
                scripts[one.folder.task_id] = [a + b for a, b in zip(scripts[one.folder.task_id], sums, strict=True)]
                if answer == ENDS_EARLY and not past_runs:
                    continue
                if not is_near(forecast.expected.calls, calls):
                    wrong.append(("calls", *details))
                if not is_near(forecast.expected.usd, usd):
                    wrong.append(("usd", *details))
            wrong += [
                (script, past_runs, *sums)
                for script, sums in scripts.items()
                if not (is_near(sums[0], sums[1]) and is_near(sums[2], sums[3]))
            ]
            model.asked.clear()
            model.usd.clear()
            workspace.forget()
        assert not wrong

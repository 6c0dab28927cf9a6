"""Rescores over HTTP with the stand-in model: the tests count its calls and the captures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.server.application import create_app
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import assert_problem, running_app, submit, wait_for_job
from tests.standin.call import Call
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres

URL, OTHER = "https://example.org/paris", "https://example.org/lyon"
PAGES = {
    URL: "Paris is the capital of France. It lies on the Seine. It has twenty districts.",
    OTHER: "Lyon is the third city of France. It lies on two rivers.",
}
CLAIMS = {
    "capital": "Paris is the capital of France",
    "river": "Paris lies on the Seine",
    "districts": "Paris has twenty districts",
}
CHANGED = "Paris lies on the river Seine in France"
VOTES = 2
OTTER, HERON = "Paris, says the otter.", "Paris, says the heron."

Start = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


class RecordedPages(dict[str, str]):
    """Pages by URL, with a record of the captures."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        super().__init__(pages)
        self.captured: list[str] = []

    def get(self, url: str, default: Any = None) -> Any:
        self.captured.append(url)
        return super().get(url, default)


def judge_file(claims: Mapping[str, str], *, source: str) -> str:
    lines = [f"    ctx.verify({name!r}, {claim!r}, sources=[{source!r}])" for name, claim in claims.items()]
    head = ["from judges.registry import judge", "@judge(task='paris', description='Tell of Paris.')"]
    return "\n".join([*head, "async def paris(ctx):", *lines])


def verdict(call: Call) -> bool:
    """Refute the changed claim for the otter, and the district claim for the heron."""
    if call.claim == CHANGED:
        return "otter" not in call.text
    return not (call.claim == CLAIMS["districts"] and "heron" in call.text)


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(rule=verdict) as server:
        yield server


@pytest.fixture
def pages() -> RecordedPages:
    return RecordedPages(PAGES)


@pytest.fixture
def start(database_url: str, judges: Path, tmp_path: Path, model: StandInLLM, pages: RecordedPages) -> Start:
    """Return a factory that starts the service with a judge of these claims. All instances share database and disk.

    ``code`` is the text of the task file instead; None: there is no file.
    """

    @asynccontextmanager
    async def started(
        claims: Mapping[str, str] = CLAIMS,
        *,
        source: str = URL,
        code: str | None = "",
        workers: int = 1,
        **changes: Any,
    ) -> AsyncIterator[httpx.AsyncClient]:
        (judges / "paris.py").unlink(missing_ok=True)
        if code is not None:
            (judges / "paris.py").write_text(code or judge_file(claims, source=source))
        settings = settings_for_tests(
            data_dir=tmp_path,
            database_url=database_url,
            **({"model": "openai/gpt-4.1", "openai_base_url": model.base_url} | changes),
        )
        runtime = scripted_runtime(judges, pages, data_folder=tmp_path / "kept")
        app = create_app(settings, workers=workers, runtime=runtime)
        async with running_app(app) as client:
            yield client

    return started


async def judge_two_agents(api: httpx.AsyncClient) -> None:
    for agent, text in (("otter", OTTER), ("heron", HERON)):
        answers = [{"name": "answer_1", "text": text}]
        [job_id] = await submit(api, agent=agent, task_id="paris", answers=answers)
        assert (await wait_for_job(api, job_id))["status"] == "succeeded"


async def begin(api: httpx.AsyncClient, **body: Any) -> str:
    accepted = await api.post("/v1/rescores", json=body)
    assert accepted.status_code == 202, accepted.text
    assert accepted.headers["location"] == accepted.json()["url"]
    return str(accepted.json()["id"])


async def finished(api: httpx.AsyncClient, rescore_id: str) -> dict[str, Any]:
    for job in (await api.get(f"/v1/submissions/{rescore_id}")).json()["jobs"]:
        await wait_for_job(api, job["id"])
    found: dict[str, Any] = (await api.get(f"/v1/rescores/{rescore_id}")).json()
    return found


async def rescored(api: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    return await finished(api, await begin(api, **body))


async def test_only_changed_leaves_are_asked_and_no_page_is_captured(
    start: Start, model: StandInLLM, pages: RecordedPages
):
    async with start() as api:
        await judge_two_agents(api)
    assert len(model.calls) == 2 * len(CLAIMS) * VOTES
    model.calls.clear()
    pages.captured.clear()
    async with start({**CLAIMS, "river": CHANGED}) as api:
        found = await rescored(api, task_id="paris")
        board = (await api.get("/v1/leaderboard")).json()["items"]
    assert [call.claim for call in model.calls] == [CHANGED] * VOTES * 2
    assert pages.captured == []
    assert (found["done"], found["jobs"]["succeeded"], found["stored_pages"]) == (True, 2, True)
    assert (found["usage"]["calls"], found["usage"]["cached_calls"]) == (2 * VOTES, 2 * 2 * VOTES)
    for answer in found["answers"]:
        assert (answer["reused"], answer["asked"], answer["because"]) == (2, 1, {"script": 1})
        assert answer["judge_changed"] is True
    scores = {row["agent_name"]: row["avg_score"] for row in board}
    assert scores == {row["agent"]: pytest.approx(row["after"]["value"], abs=0.01) for row in found["agents"]}


async def test_rescored_answers_stay_in_their_run(start: Start):
    async with start() as api:
        answers = [{"name": "answer_1", "text": OTTER}]
        [job_id] = await submit(api, agent="otter", task_id="paris", run="nightly", answers=answers)
        await wait_for_job(api, job_id)
        [answer] = (await rescored(api, agent="otter"))["answers"]
        jobs = (await api.get("/v1/jobs", params={"run": "nightly"})).json()["items"]
        newest, _ = (await api.get("/v1/results", params={"run": "nightly"})).json()["items"]
    assert [job["run"] for job in jobs] == ["nightly", "nightly"]
    assert newest["id"] == answer["after"]["result_id"]


async def test_rescore_shows_flips_and_changed_ranks(start: Start):
    async with start() as api:
        await judge_two_agents(api)
    # The new rubric drops the claim that the heron fails, and rewords one that the otter then fails.
    async with start({"capital": CLAIMS["capital"], "river": CHANGED}) as api:
        found = await rescored(api, task_id="paris")
    ranks = {row["agent"]: (row["rank_before"], row["rank_after"]) for row in found["agents"]}
    assert ranks == {"otter": (1, 2), "heron": (2, 1)}
    assert [row["agent"] for row in found["agents"]] == ["heron", "otter"]
    scores = {row["agent"]: (row["before"]["value"], row["after"]["value"]) for row in found["agents"]}
    assert scores == {"otter": (1.0, 0.5), "heron": (pytest.approx(2 / 3), 1.0)}
    flipped = {(flip["agent"], flip["leaf"]): (flip["before"], flip["after"]) for flip in found["flips"]}
    assert flipped == {
        ("otter", "river"): ("passed", "failed"),
        ("otter", "districts"): ("passed", None),
        ("heron", "districts"): ("failed", None),
    }
    assert {cause["cause"] for flip in found["flips"] for cause in flip["causes"]} == {"judge"}
    assert (found["task_id"], found["agent"], found["done"]) == ("paris", None, True)


async def test_unchanged_rubric_costs_nothing_and_flips_nothing(start: Start, model: StandInLLM):
    async with start() as api:
        await judge_two_agents(api)
        model.calls.clear()
        found = await rescored(api, agent="otter")
        again = await rescored(api, agent="otter")
    assert model.calls == []
    assert (found["flipped"], found["agent"], len(found["answers"])) == (0, "otter", 1)
    assert found["answers"][0]["judge_changed"] is False
    assert again["answers"][0]["before"]["result_id"] == found["answers"][0]["after"]["result_id"]


async def test_claim_on_a_page_that_is_not_stored_is_not_judged(start: Start, model: StandInLLM, pages: RecordedPages):
    async with start() as api:
        await judge_two_agents(api)
    model.calls.clear()
    pages.captured.clear()
    async with start({"third": "Lyon is the third city of France"}, source=OTHER) as api:
        found = await rescored(api, task_id="paris", agent="otter")
        [answer] = found["answers"]
        result = (await api.get(f"/v1/results/{answer['after']['result_id']}")).json()
        assert (pages.captured, model.calls) == ([], [])
        captured = await rescored(api, task_id="paris", agent="otter", capture=True)
    [leaf] = result["eval_breakdown"][0]["verification_tree"]["children"]
    assert (leaf["outcome"], leaf["reason"]) == ("not_judged", "page_not_stored")
    assert "this run captures no pages" in leaf["reasoning"]
    assert answer["after"]["score"] == {"value": None, "low": 0.0, "high": 1.0}
    assert pages.captured == [OTHER]
    assert captured["stored_pages"] is False
    assert captured["answers"][0]["after"]["score"]["value"] == 1.0


async def test_budget_pauses_a_rescore_and_cancelling_keeps_the_earlier_results(start: Start, model: StandInLLM):
    async with start() as api:
        await judge_two_agents(api)
        before = (await api.get("/v1/leaderboard")).json()["items"]
    async with start({**CLAIMS, "river": CHANGED}) as api:
        rescore_id = await begin(api, task_id="paris", budget_usd=0.000001)
        async with asyncio.timeout(240):
            while True:
                found = (await api.get(f"/v1/rescores/{rescore_id}")).json()
                if all(answer["stage"] == "paused" for answer in found["answers"]):
                    break
                await asyncio.sleep(0.02)
        assert {answer["error"]["code"] for answer in found["answers"]} == {"BUDGET"}
        assert found["done"] is False
        cancelled = (await api.post(f"/v1/rescores/{rescore_id}/cancel")).json()
        after = (await api.get("/v1/leaderboard")).json()["items"]
    assert (cancelled["done"], cancelled["jobs"]["cancelled"]) == (True, 2)
    assert {row["agent_name"]: row["avg_score"] for row in after} == {
        row["agent_name"]: row["avg_score"] for row in before
    }
    assert CHANGED not in [call.claim for call in model.calls]


KEYS = {"otter": "otter:submit:0b9ad5f2c1e84736a5d0", "heron": "heron:submit:77c3e1f0492bd86a1e5c"}


async def test_rescore_covers_and_shows_only_the_answers_of_its_owner(start: Start):
    async with start(api_keys=",".join(KEYS.values())) as api:
        keys = {owner: {"Authorization": f"Bearer {key.rpartition(':')[2]}"} for owner, key in KEYS.items()}
        for owner, headers in keys.items():
            api.headers.update(headers)
            [job_id] = await submit(api, agent="shared", task_id="paris", answers=[{"name": owner, "text": OTTER}])
            await wait_for_job(api, job_id)
        found = await rescored(api, task_id="paris")
        assert [answer["answer_name"] for answer in found["answers"]] == ["heron.md"]
        api.headers.update(keys["otter"])
        assert_problem(await api.get(f"/v1/rescores/{found['id']}"), 404)
        assert_problem(await api.post(f"/v1/rescores/{found['id']}/cancel"), 404)
        assert_problem(await api.post("/v1/rescores", json={"jobs": [found["answers"][0]["job_id"]]}), 404)


async def test_invalid_selection_names_the_problem(start: Start, judges: Path):
    async with start(workers=0) as api:
        invalid: list[dict[str, Any]] = [{}, {"jobs": ["job_1"], "task_id": "paris"}, {"task_id": "../x"}, {"jobs": []}]
        for body in invalid:
            assert_problem(await api.post("/v1/rescores", json=body), 422)
        assert_problem(await api.post("/v1/rescores", json={"task_id": "paris"}), 404)
        assert_problem(await api.post("/v1/rescores", json={"jobs": ["job_1"]}), 404)
        assert_problem(await api.get("/v1/rescores/rescore_1"), 404)
        [job_id] = await submit(api, task_id="paris")
        submission = (await api.get(f"/v1/jobs/{job_id}")).json()["submission_id"]
        assert_problem(await api.get(f"/v1/rescores/{submission}"), 404)


async def test_judge_that_does_not_load_or_was_removed_starts_no_rescore(start: Start, judges: Path):
    async with start() as api:
        await judge_two_agents(api)
    async with start(code="import nothing_of_that_name\n", workers=0) as api:
        refused = assert_problem(await api.post("/v1/rescores", json={"task_id": "paris"}), 409, "JUDGE_BROKEN")
        assert "nothing_of_that_name" in refused["detail"]
    async with start(code=None, workers=0) as api:
        assert_problem(await api.post("/v1/rescores", json={"task_id": "paris"}), 404, "UNKNOWN_TASK")

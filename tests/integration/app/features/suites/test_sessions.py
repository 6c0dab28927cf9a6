"""Step sessions over HTTP: strict order, feedback, phases, histories, resumption, owners and wrong input."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from judges.suites.multimodal.snapshot import SamplingOptions, build_snapshot
from tests.fakes.mind2web import (
    action,
    items,
    nine_steps,
    ranks_of_nine_steps,
    stand_in_reply,
    task,
    write_scores,
    write_split,
)
from tests.fakes.multimodal import EXPECTED, STEPS, final_answer, write_rows
from tests.integration.app.api.api_calls import assert_problem
from tests.integration.app.api.conftest import OpenApi

SESSIONS = "/v1/suites/mind2web/sessions"
GUIDE: dict[str, Any] = {"data": ".", "split": "test_task", "scores": "scores.pkl", "protocol": "guide"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    write_split(folder, nine_steps())
    write_split(
        folder, [task("L1", [action("a", items("click"))]), task("L2", [action("a", items("click"))])], split="train"
    )
    write_scores(folder / "scores.pkl", ranks_of_nine_steps())
    return folder


async def start(api: httpx.AsyncClient, path: str = SESSIONS, **options: Any) -> dict[str, Any]:
    response = await api.post(path, json=options)
    assert response.status_code == 201, response.text
    assert response.headers["location"] == response.json()["url"]
    started: dict[str, Any] = response.json()
    return started


async def say(api: httpx.AsyncClient, session: dict[str, Any], question: dict[str, Any], text: str) -> dict[str, Any]:
    response = await api.post(f"{session['url']}/answers", json={"question": question["id"], "text": text})
    assert response.status_code == 200, response.text
    answered: dict[str, Any] = response.json()
    return answered


def reply_to(question: dict[str, Any]) -> str:
    return stand_in_reply(question["prompt"][-1]["content"])


async def finish(api: httpx.AsyncClient, session: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Answer all questions like the stand-in model. Return the questions and the feedback."""
    questions, feedback, question = [], [], session["question"]
    while question is not None:
        questions.append(question)
        answered = await say(api, session, question, reply_to(question))
        feedback += [answered["feedback"]] if answered["feedback"] else []
        question = answered["question"]
    return questions, feedback


async def test_guide_session_asks_every_step_in_order_with_feedback(open_api: OpenApi, data: Path):
    async with open_api(suite_data=(data,)) as api:
        session = await start(api, **GUIDE)
        assert (session["status"], session["steps_total"], session["tasks_total"]) == ("active", 9, 5)
        questions, feedback = await finish(api, session)
        done = (await api.get(session["url"])).json()
        steps = (await api.get(f"{session['url']}/steps", params={"limit": 5})).json()
        rest = (await api.get(f"{session['url']}/steps", params={"cursor": steps["next_cursor"]})).json()
    assert [one["sample_id"] for one in questions] == [
        "T1_a", "T1_b", "T2_a", "T2_b", "T3_a", "T4_a",
    ]  # fmt: skip
    first = questions[0]
    assert (first["phase"], first["round"], first["none_option"], first["images"]) == ("test", 0, "A", [])
    assert first["options"][0] == {
        "letter": "B", "text": "<button backend_node_id=1 button> blue click </button> (rank 0, score 1)",
    }  # fmt: skip
    assert feedback[1] == {
        "sample_id": "T1_b",
        "phase": "test",
        "element": 1,
        "operation": 1,
        "f1": 1.0,
        "step_success": True,
        "task_done": True,
        "task_success": True,
        "gold": {"op": "TYPE", "value": "boston ma", "elements": ["1"], "options": [questions[1]["options"][0]]},
    }
    wrong = feedback[5]
    assert (wrong["element"], wrong["operation"], wrong["step_success"], wrong["task_success"]) == (0, 1, False, False)
    assert feedback[3]["f1"] == pytest.approx(0.8)  # "new york" of "new york city"
    figures = done["figures"]["test"]
    assert (done["status"], done["question"], done["steps_done"], done["tasks_done"]) == ("done", None, 9, 5)
    assert figures["micro"]["step"] == pytest.approx(5 / 6)
    assert (figures["skipped"], figures["task_success"]) == (3, pytest.approx(3 / 4))
    assert [step["position"] for step in steps["items"] + rest["items"]] == list(range(9))
    assert rest["items"][0]["status"] == "skipped"


async def test_tournament_asks_round_by_round(open_api: OpenApi, data: Path):
    options: dict[str, Any] = {"data": ".", "split": "test_task", "scores": "scores.pkl", "max_tasks": 1, "seed": 3}
    async with open_api(suite_data=(data,)) as api:
        session = await start(api, **options)
        questions, feedback = await finish(api, session)
        other_seed = await start(api, **options | {"seed": 4})
    assert [(one["sample_id"], one["round"]) for one in questions] == [
        ("T1_a", 0), ("T1_a", 1), ("T1_a", 2), ("T1_b", 0), ("T1_b", 1),
    ]  # fmt: skip
    assert [one["step_success"] for one in feedback] == [True, True]
    assert other_seed["question"]["options"] != questions[0]["options"]


async def test_training_tasks_come_first_and_only_they_get_feedback(open_api: OpenApi, data: Path):
    async with open_api(suite_data=(data,)) as api:
        session = await start(api, **GUIDE, train_tasks=2, max_tasks=1, feedback="train")
        questions, feedback = await finish(api, session)
        done = (await api.get(session["url"])).json()
        own_split = await start(api, **GUIDE | {"scores": None}, train_split="train", train_tasks=1, max_tasks=2)
        others, _ = await finish(api, own_split)
    assert [(one["phase"], one["task_id"]) for one in questions] == [
        ("train", "T1"), ("train", "T1"), ("train", "T2"), ("train", "T2"), ("test", "T3"),
    ]  # fmt: skip
    assert [one["gold"] is not None for one in feedback] == [True] * 4 + [False]
    assert feedback[-1] | {"sample_id": ""} == {
        "sample_id": "", "phase": "test", "task_done": True,
        **dict.fromkeys(("element", "operation", "f1", "step_success", "task_success", "gold")),
    }  # fmt: skip
    assert (done["figures"]["train"]["tasks"], done["figures"]["test"]["steps"]) == (2, 3)
    assert [(one["phase"], one["task_id"]) for one in others] == [
        ("train", "L1"), ("test", "T1"), ("test", "T1"), ("test", "T2"), ("test", "T2"),
    ]  # fmt: skip


async def test_shuffled_tasks_follow_the_seed_and_keep_their_steps_together(open_api: OpenApi, data: Path):
    async def order(api: httpx.AsyncClient, seed: int) -> list[str]:
        questions, _ = await finish(api, await start(api, **GUIDE, shuffle_tasks=True, seed=seed))
        return [one["sample_id"] for one in questions]

    async with open_api(suite_data=(data,)) as api:
        orders = [await order(api, seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    for one in orders:
        assert one.index("T1_b") == one.index("T1_a") + 1
        assert sorted(one) == ["T1_a", "T1_b", "T2_a", "T2_b", "T3_a", "T4_a"]


async def test_own_history_contains_the_actions_of_the_client(open_api: OpenApi, data: Path):
    async with open_api(suite_data=(data,)) as api:
        gold = await start(api, **GUIDE)
        own = await start(api, **GUIDE, history="own")
        with_gold = await say(api, gold, gold["question"], "Answer: C.\nAction: TYPE\nValue: x")
        with_own = await say(api, own, own["question"], "Answer: C.\nAction: TYPE\nValue: x")
        next_task = await say(api, own, with_own["question"], "Answer: A.")
    assert "Previous actions:\n[button]  a -> CLICK\n" in with_gold["question"]["prompt"][-1]["content"]
    prompt = with_own["question"]["prompt"][-1]["content"]
    assert "Previous actions:\n<button backend_node_id=2 button> item 2 </button>" in prompt
    assert " -> TYPE x\n" in prompt
    assert "Previous actions:\nNone\n" in next_task["question"]["prompt"][-1]["content"]


async def test_session_continues_after_a_restart_and_accepts_each_answer_once(open_api: OpenApi, data: Path):
    async with open_api(suite_data=(data,)) as api:
        session = await start(api, **GUIDE)
        first = await say(api, session, session["question"], reply_to(session["question"]))
        repeated = await say(api, session, session["question"], reply_to(session["question"]))
        assert repeated == first
        answers = f"{session['url']}/answers"
        other = await api.post(answers, json={"question": session["question"]["id"], "text": "Answer: A."})
        assert_problem(other, 409, "QUESTION_ANSWERED")
        assert "the current one is 1.0" in other.json()["detail"]
    async with open_api(suite_data=(data,)) as api:
        resumed = (await api.get(session["url"])).json()
        assert resumed["question"] == first["question"]
        await finish(api, resumed)
        done = (await api.get(session["url"])).json()
        late = await api.post(answers, json={"question": "9.0", "text": "Answer: A."})
    assert (done["status"], done["figures"]["test"]["micro"]["step"]) == ("done", pytest.approx(5 / 6))
    assert_problem(late, 409, "QUESTION_ANSWERED")


async def test_only_one_of_two_simultaneous_answers_counts(open_api: OpenApi, data: Path):
    async with open_api(suite_data=(data,)) as api:
        session = await start(api, **GUIDE)
        answers = [
            api.post(f"{session['url']}/answers", json={"question": "0.0", "text": f"Answer: {letter}.\nAction: CLICK"})
            for letter in "BC"
        ]
        responses = await asyncio.gather(*answers)
        done = (await api.get(session["url"])).json()
    assert sorted(response.status_code for response in responses) == [200, 409]
    assert (done["steps_done"], done["figures"]["test"]["steps"]) == (1, 1)


async def test_parallel_sessions_do_not_affect_each_other(open_api: OpenApi, data: Path):
    async with open_api(suite_data=(data,)) as api:
        one, two = await start(api, **GUIDE), await start(api, **GUIDE)
        await say(api, one, one["question"], "Answer: A.")
        questions, _ = await finish(api, two)
        listed = (await api.get(SESSIONS)).json()["items"]
        still = (await api.get(one["url"])).json()
        assert (await api.delete(two["url"])).status_code == 204
        assert_problem(await api.get(two["url"]), 404)
    assert len(questions) == 6
    assert [(item["id"], item["steps_done"]) for item in listed] == [(two["id"], 9), (one["id"], 1)]
    assert still["question"]["sample_id"] == "T1_b"


async def test_multimodal_session_has_two_questions_per_step_and_images(open_api: OpenApi, tmp_path: Path):
    rows = write_rows(tmp_path / "test_website.parquet", STEPS)
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    build_snapshot(rows, folder / "snap.parquet", SamplingOptions(distractors=3), split=None, watch=lambda rows: None)
    async with open_api(suite_data=(folder,)) as api:
        session = await start(api, "/v1/suites/mm-mind2web/sessions", data="snap.parquet")
        question, asked, golds = session["question"], [], []
        while question is not None:
            asked.append(question)
            text = (
                "I see."
                if question["round"] == 0
                else final_answer(question["prompt"][-1]["content"], (question["task_id"], question["step"]))
            )
            answered = await say(api, session, question, text)
            golds += [answered["feedback"]["gold"]] if answered["feedback"] else []
            question = answered["question"]
        done = (await api.get(session["url"])).json()
    assert [(one["sample_id"], one["round"]) for one in asked[:4]] == [
        ("t1:0", 0),
        ("t1:0", 1),
        ("t1:1", 0),
        ("t1:1", 1),
    ]
    assert asked[0]["options"] == [] and asked[1]["none_option"] == "E"
    assert asked[0]["images"][0]["message"] == 1
    assert asked[0]["images"][0]["url"].startswith("data:image/png;base64,")
    assert asked[1]["prompt"][2] == {"role": "assistant", "content": "\n\nI see."}
    assert golds[1]["value"] == "new york city" and len(golds[1]["options"]) == 1
    figures = done["figures"]["test"]
    assert figures["micro"]["element"] == pytest.approx(EXPECTED["element_accuracy_micro"])
    assert figures["macro"]["operation"] == pytest.approx(EXPECTED["operation_token_f1_macro"])
    assert figures["task_success"] == pytest.approx(EXPECTED["task_success"])


async def test_sessions_belong_to_their_owner(open_api: OpenApi, data: Path):
    keys = "otter:submit:0b9ad5f2c1e84736a5d0,heron:submit:77c3e1f0492bd86a1e5c"
    mine, other = ({"Authorization": f"Bearer {entry.rpartition(':')[2]}"} for entry in keys.split(","))
    async with open_api(suite_data=(data,), api_keys=keys) as api:
        session = (await api.post(SESSIONS, json=GUIDE, headers=mine)).json()
        answer = {"question": session["question"]["id"], "text": "Answer: B."}
        assert_problem(await api.get(session["url"], headers=other), 404)
        assert_problem(await api.post(f"{session['url']}/answers", json=answer, headers=other), 404)
        assert_problem(await api.get(f"{session['url']}/steps", headers=other), 404)
        assert_problem(await api.delete(session["url"], headers=other), 404)
        assert (await api.get(SESSIONS, headers=other)).json()["items"] == []
        assert_problem(await api.get(session["url"]), 401)
        assert (await api.get(session["url"], headers=mine)).status_code == 200
        wrong_suite = session["url"].replace("/mind2web/", "/mm-mind2web/")
        assert_problem(await api.get(wrong_suite, headers=mine), 404)


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"data": "../../etc"}, 404, "data"),
        ({"scores": "nowhere.pkl"}, 404, "scores"),
        ({"train_split": "../elsewhere"}, 422, "train_split"),
        ({"history": "mine"}, 422, "history"),
        ({"train_tasks": -1}, 422, "train_tasks"),
        ({"max_tasks": 0}, 422, "max_tasks"),
        ({"feedback": 1}, 422, "feedback"),
        ({"model": "openai/gpt-4o"}, 422, "model"),
        ({"top_k": 0}, 422, "top_k"),
    ],
)
async def test_wrong_options_are_named(open_api: OpenApi, data: Path, change: dict[str, Any], status: int, field: str):
    async with open_api(suite_data=(data,)) as api:
        response = await api.post(SESSIONS, json=GUIDE | change)
    assert_problem(response, status)
    assert any(field in error["path"] for error in response.json()["errors"]), response.text


async def test_damaged_missing_and_changed_data_are_named(open_api: OpenApi, data: Path):
    file = data / "test_task" / "test_task_0.json"
    async with open_api(suite_data=(data,)) as api:
        missing = await api.post(SESSIONS, json=GUIDE | {"split": "test_moon"})
        no_task = await api.post(
            SESSIONS, json=GUIDE | {"train_split": "train", "train_tasks": 0, "split": "train", "data": "empty.json"}
        )
        session = await start(api, **GUIDE)
        tasks = json.loads(file.read_text())
        file.write_text(json.dumps([{**tasks[0], "website": "longer than before"}, *tasks[1:]]))
        changed = await api.post(
            f"{session['url']}/answers", json={"question": session["question"]["id"], "text": "Answer: B."}
        )
        tasks[1]["actions"][0]["operation"]["op"] = "HOVER"
        file.write_text(json.dumps(tasks))
        damaged = await api.post(SESSIONS, json=GUIDE)
        (data / "template.json").write_text("{")
        template = await api.post(SESSIONS, json=GUIDE | {"prompt_template": "template.json"})
    for response, words in (
        (missing, "no file of split 'test_moon'"),
        (changed, "changed"),
        (damaged, "must be one of CLICK, SELECT, TYPE, not 'HOVER'"),
        (template, "not valid JSON"),
    ):
        assert_problem(response, 422, "SUITE_DATA")
        assert words in response.json()["detail"]
        assert str(data) not in response.text
    assert_problem(no_task, 404)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": "0.0"},
        {"question": "x", "text": ""},
        {"question": "0.0", "text": 5},
        {"question": "0.0", "text": "x" * 100_001},
    ],
)
async def test_wrong_answer_is_refused(open_api: OpenApi, data: Path, body: dict[str, Any]):
    async with open_api(suite_data=(data,)) as api:
        session = await start(api, **GUIDE)
        assert_problem(await api.post(f"{session['url']}/answers", json=body), 422)


@pytest.mark.parametrize("protocol", ["guide", "tournament"])
async def test_page_that_cannot_be_shown_is_not_judged_and_passed_over(open_api: OpenApi, data: Path, protocol: str):
    tasks = nine_steps()
    # The seed of the tournament puts this candidate into the second round.
    tasks[0]["actions"][0]["neg_candidates"][0]["backend_node_id"] = "2001"
    write_split(data, tasks)
    async with open_api(suite_data=(data,)) as api:
        session = await start(api, **GUIDE | {"scores": None, "protocol": protocol})
    assert session["question"]["sample_id"] == "T1_b"
    figures = session["figures"]["test"]
    assert (figures["not_judged"], figures["micro"], session["steps_done"]) == (1, None, 1)


async def test_data_that_take_too_long_to_read_are_503_with_retry_after(
    open_api: OpenApi, data: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.features.suites.session_api.DATA_TIMEOUT_S", 0.0)
    async with open_api(suite_data=(data,)) as api:
        response = await api.post(SESSIONS, json=GUIDE)
    assert_problem(response, 503, "UNAVAILABLE")
    assert int(response.headers["retry-after"]) > 0


@pytest.mark.parametrize("unreadable", [0, 1])
async def test_success_of_a_task_is_unknown_if_a_step_was_not_judged(open_api: OpenApi, data: Path, unreadable: int):
    """If the last step has no question, the feedback to the step before it says that the task is done."""
    tasks = nine_steps()
    tasks[0]["actions"][unreadable]["neg_candidates"][0]["backend_node_id"] = "2001"
    write_split(data, tasks)
    async with open_api(suite_data=(data,)) as api:
        session, other = [await start(api, **GUIDE | {"scores": None}) for _ in range(2)]
        right = (await say(api, session, session["question"], reply_to(session["question"])))["feedback"]
        wrong = (await say(api, other, other["question"], "Answer: A."))["feedback"]
    assert (right["step_success"], right["task_done"], right["task_success"]) == (True, True, None)
    assert (wrong["step_success"], wrong["task_done"], wrong["task_success"]) == (False, True, False)


async def test_texts_that_no_response_can_contain_are_replaced(open_api: OpenApi, data: Path):
    tasks = nine_steps()
    tasks[0] |= {"confirmed_task": "Do \ud800 this\0", "website": "w\udfff"}
    tasks[0]["actions"][1]["operation"]["value"] = "b\ud800"
    tasks[0]["actions"][1]["pos_candidates"].append({"tag": "a", "backend_node_id": "9\ud800"})
    write_split(data, tasks)
    async with open_api(suite_data=(data,)) as api:
        session = await start(api, **GUIDE | {"scores": None}, max_tasks=1, history="own")
        questions, feedback = await finish(api, session)
        steps = (await api.get(f"{session['url']}/steps")).json()["items"]
    assert questions[0]["task"] == "Do ? this\0"
    assert (feedback[1]["gold"]["value"], len(steps)) == ("b?", 2)
    assert feedback[1]["gold"]["elements"] == ["1", "9?"]

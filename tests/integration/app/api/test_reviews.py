"""Overrides of leaf verdicts by people: stored next to the verdict of the judge, and compared with it."""

from __future__ import annotations

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from tests.fakes.judged import FAILED, NOT_JUDGED, SKIPPED, JudgedByText, leaf, rubric_of
from tests.integration.app.api.api_calls import assert_problem, submit, wait_for_job
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres

SAYS = {"reason": "The second paragraph says so.", "by": "Ada"}


def rubric():
    return rubric_of(
        leaf("gate", FAILED, claim="He was born in Paris", sources=["https://a.example/"], critical=True),
        leaf("behind", SKIPPED, claim="He died there", sources=["https://a.example/"], blocked_by="gate"),
        leaf("open", NOT_JUDGED, claim="He taught", sources=["https://b.example/"]),
        leaf("fine", claim="He wrote", sources=["https://b.example/"]),
        task_id="capital",
    )


async def judged(api: httpx.AsyncClient, judging: JudgedByText, text: str = "the answer", **more) -> str:
    judging.register(text, rubric)
    [job_id] = await submit(api, answers=[{"name": "answer_1", "text": text}], **more)
    return str((await wait_for_job(api, job_id))["result_id"])


async def override(api: httpx.AsyncClient, result: str, leaf: str, outcome: str = "passed", **more) -> dict:
    response = await api.post(
        f"/v1/results/{result}/overrides", json={"leaf": leaf, "outcome": outcome, **SAYS, **more}
    )
    assert response.status_code == 201, response.text
    created: dict = response.json()
    return created


async def test_override_keeps_the_verdict_and_adds_a_second_score(open_api: OpenApi):
    judging = JudgedByText()
    async with open_api(evaluate=judging) as api:
        result = await judged(api, judging)
        stored = await api.get(f"/v1/results/{result}")
        created = await override(api, result, "gate")
        now = await api.get(f"/v1/results/{result}")
        schema = (await api.get("/v1/schema/result.json")).json()
        listed = (await api.get("/v1/results")).json()["items"][0]
    assert (created["verdict"], created["outcome"], created["by"], created["in_force"]) == (
        "failed",
        "passed",
        "Ada",
        True,
    )
    assert now.text.startswith(stored.text.rstrip().removesuffix("}"))
    found = now.json()
    Draft202012Validator(schema).validate(found)
    assert found["score"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert found["overrides"] == [created]
    # The override opens the gate, but the leaf behind it was never judged.
    assert found["with_overrides"]["score"] == {"value": None, "low": pytest.approx(1 / 3), "high": 1.0}
    assert found["with_overrides"]["leaves"] == 1
    assert listed == found


async def test_withdrawal_adds_a_row(open_api: OpenApi):
    judging = JudgedByText()
    async with open_api(evaluate=judging) as api:
        result = await judged(api, judging)
        first = await override(api, result, "open", "failed")
        second = await override(api, result, "open", "passed", by="Grace")
        withdrawal = f"/v1/results/{result}/overrides/{second['id']}/withdraw"
        back = await api.post(withdrawal, json={"reason": "I misread it", "by": "Grace"})
        assert_problem(await api.post(withdrawal, json=SAYS), 409, "CONFLICT")
        assert_problem(await api.post(f"/v1/results/{result}/overrides/{back.json()['id']}/withdraw", json=SAYS), 404)
        rows = (await api.get(f"/v1/results/{result}/overrides")).json()["items"]
    assert [(row["outcome"], row["withdraws"], row["in_force"]) for row in rows] == [
        ("failed", None, True),
        ("passed", None, False),
        (None, second["id"], False),
    ]
    assert rows[0]["id"] == first["id"]


async def test_invalid_override_is_rejected_with_its_field(open_api: OpenApi):
    judging = JudgedByText()
    async with open_api(evaluate=judging) as api:
        result = await judged(api, judging)
        for wrong, path, status, code in (
            ({"outcome": "skipped"}, "outcome", 422, "INVALID"),
            ({"reason": "  "}, "reason", 422, "INVALID"),
            ({"by": "A\0da"}, "by", 422, "INVALID"),
            ({"leaf": "root"}, "leaf", 404, "UNKNOWN_LEAF"),
        ):
            body = {"leaf": "gate", "outcome": "passed", **SAYS, **wrong}
            refused = assert_problem(await api.post(f"/v1/results/{result}/overrides", json=body), status, code)
            assert [error["path"] for error in refused["errors"]] == [path]


async def test_agreement_is_reported_in_total_and_by_task_and_model(open_api: OpenApi):
    judging = JudgedByText()
    async with open_api(evaluate=judging) as api:
        for nth in range(3):
            result = await judged(api, judging, f"answer {nth}")
            await override(api, result, "gate", "passed" if nth == 0 else "failed")
            await override(api, result, "fine", "failed")
            await override(api, result, "fine", "passed", by="Grace")
            await override(api, result, "open", "passed")
        found = (await api.get("/v1/reviews/agreement")).json()
    whole = found["whole"]
    assert (whole["leaves"], whole["left_out"]) == (6, 3)
    cells = [whole[name] for name in ("true_positive", "false_positive", "false_negative", "true_negative")]
    assert cells == [3, 0, 1, 2]
    assert whole["kappa"]["value"] == pytest.approx(2 / 3)
    [group] = found["items"]
    assert (group["task_id"], group["model"], group["kappa"]) == ("capital", "scripted", whole["kappa"])

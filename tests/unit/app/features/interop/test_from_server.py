"""Results of a running server, as returned by its API."""

from __future__ import annotations

import httpx
import pytest

from app.features.interop.exported_results import from_server
from assay_client import Client


def history_entry(result_id: str, task: str, *, run: str | None = None, name: str = "answer_1.md") -> dict[str, object]:
    return {
        "result_id": result_id,
        "task_id": task,
        "answer_name": name,
        "run": run,
        "created_at": "2026-03-01T09:30:00Z",
    }


NEWEST_FIRST = [
    history_entry("res_4", "bridge"),
    history_entry("res_3", "bridge", run="a"),
    history_entry("res_2", "tower"),
    history_entry("res_1", "bridge"),
]


def fake_server(request: httpx.Request) -> httpx.Response:
    path = request.url.path
    if path == "/v1/agents/otter/history":
        second = "cursor" in request.url.params
        items = NEWEST_FIRST[2:] if second else NEWEST_FIRST[:2]
        return httpx.Response(200, json={"items": items, "next_cursor": None if second else "more"})
    result_id = path.split("/")[3]
    if path.endswith("/answer"):
        return httpx.Response(200, text=f"Text of {result_id}, é.")
    task = next(str(one["task_id"]) for one in NEWEST_FIRST if one["result_id"] == result_id)
    body = {"id": result_id, "agent_name": "otter", "task_id": task, "answer_name": "answer_1.md", "final_score": 1.0}
    return httpx.Response(200, json=body)


@pytest.fixture
def client():
    with Client("http://assay.test", transport=httpx.MockTransport(fake_server)) as client:
        yield client


def test_newest_result_of_every_answer_is_read_for_each_run(client: Client) -> None:
    found = from_server(client, "otter")
    assert [(one.task_id, one.run, one.result["id"]) for one in found] == [
        ("bridge", None, "res_4"),
        ("bridge", "a", "res_3"),
        ("tower", None, "res_2"),
    ]
    assert found[0].answer == "Text of res_4, é."
    assert found[0].created_at is not None and found[0].created_at.isoformat() == "2026-03-01T09:30:00+00:00"

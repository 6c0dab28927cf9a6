"""Session iterators of both clients with a scripted server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from assay_client import AsyncClient, Client, ClientError, Question, UnexpectedReply

FEEDBACK = {
    "sample_id": "T_0", "phase": "train", "element": 1, "operation": 1, "f1": 1.0, "step_success": True,
    "task_done": False, "task_success": None, "gold": {"op": "CLICK", "value": "", "elements": ["7"], "options": []},
}  # fmt: skip


def question(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"{number}.0", "phase": "train", "sample_id": f"T_{number}", "task_id": "T", "task": "Go", "website": "w",
        "step": number, "round": 0, "prompt": [{"role": "user", "content": f"question {number}"}], "images": [],
        "options": [{"letter": "B", "text": "<a>"}], "none_option": "A",
    } | changes  # fmt: skip


class Server:
    """Server with a session of two questions. ``answers`` are the bodies that it received."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        self.options: Any = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if request.method == "POST" and path == "/v1/suites/mind2web/sessions":
            self.options = json.loads(request.content)
        elif request.method == "POST" and path == "/v1/suites/mind2web/sessions/sess_1/answers":
            self.answers.append(json.loads(request.content))
            last = len(self.answers) == 2
            return httpx.Response(
                200,
                json={"feedback": None if last else FEEDBACK, "done": last, "question": None if last else question(1)},
            )
        else:
            assert (request.method, path) == ("GET", "/v1/suites/mind2web/sessions/sess_1")
        current = question(len(self.answers)) if len(self.answers) < 2 else None
        document = {"id": "sess_1", "suite": "mind2web", "question": current, "figures": {"test": {"steps": 2}}}
        return httpx.Response(201, json=document)


def test_questions_are_iterated_and_answered():
    server = Server()
    with Client(transport=httpx.MockTransport(server)) as client:
        session = client.start_session("mind2web", {"data": "d"})
        seen = [(one.sample_id, session.answer(f"reply {one.step}")) for one in session]
        assert session.figures() == {"test": {"steps": 2}}
        assert session.done
        with pytest.raises(ClientError, match="no more questions"):
            session.answer("late")
    assert server.options == {"data": "d"}
    assert server.answers == [{"question": "0.0", "text": "reply 0"}, {"question": "1.0", "text": "reply 1"}]
    assert [(sample_id, None if given is None else given.gold) for sample_id, given in seen] == [
        ("T_0", FEEDBACK["gold"]), ("T_1", None),
    ]  # fmt: skip


def test_questions_are_iterated_with_asyncio():
    server = Server()

    async def all_questions() -> list[str]:
        async with AsyncClient(transport=httpx.MockTransport(server)) as client:
            session = await client.start_session("mind2web", {"data": "d"})
            seen = []
            async for one in session:
                seen.append(one.sample_id)
                await session.answer("reply")
            assert await session.figures() == {"test": {"steps": 2}}
            return seen

    assert asyncio.run(all_questions()) == ["T_0", "T_1"]


def test_session_resumes_at_its_current_question():
    server = Server()
    server.answers.append({})
    with Client(transport=httpx.MockTransport(server)) as client:
        assert next(client.session("mind2web", "sess_1")).sample_id == "T_1"


def test_next_question_needs_an_answer_to_the_last_one():
    with Client(transport=httpx.MockTransport(Server())) as client:
        session = client.start_session("mind2web", {})
        next(session)
        with pytest.raises(ClientError, match="has no answer yet"):
            next(session)


def test_images_are_attached_to_their_message():
    made = Question.from_json(
        question(0, prompt=[{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
                 images=[{"message": 1, "url": "data:image/png;base64,AA"}])
    )  # fmt: skip
    assert made.messages == [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "u"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            ],
        },
    ]


def test_unexpected_session_is_named():
    transport = httpx.MockTransport(lambda request: httpx.Response(201, json={"id": "x"}))
    with Client(transport=transport) as client, pytest.raises(UnexpectedReply):
        client.start_session("mind2web", {})

"""Keys that can be guessed on a public address, and proxies that would see requests to a model on this machine."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from pydantic import BaseModel

from app.errors import InvalidSettings
from app.observability.metrics import Metrics
from app.server.application import server_config
from app.service import open_service
from app.settings import ConfiguredKey, check_bind, load_settings
from judges.llm.client import LLMRequest
from judges.llm.openai import open_openai
from judges.llm.provider_adapter import Access
from tests.fakes.settings import settings_for_tests
from tests.standin.llm import StandInLLM
from tests.standin.web import Reply, StandInWeb

STRONG = "7f3a9c0e52b14d6886aa13f0c2d94e75"


@pytest.mark.parametrize("weak", ["", "a" * 40, "hunter2hunter2"])
def test_key_that_can_be_guessed_is_refused_on_a_public_address(weak: str) -> None:
    with pytest.raises(InvalidSettings, match=r"ASSAY_API_KEYS, number 2\).*20 random characters") as raised:
        check_bind(
            "0.0.0.0",
            keys=True,
            chosen_keys=[ConfiguredKey(key=STRONG), ConfiguredKey(key=weak, owner="a", scope="read")],
        )
    assert weak == "" or weak not in str(raised.value)
    check_bind("127.0.0.1", keys=True, chosen_keys=[ConfiguredKey(key=weak)])
    check_bind("0.0.0.0", keys=True, chosen_keys=[ConfiguredKey(key=STRONG)])


def test_key_that_can_be_guessed_is_refused_before_the_database_is_created(tmp_path: Path) -> None:
    async def serve() -> None:
        settings = settings_for_tests(data_dir=tmp_path, api_keys="secret")
        async with open_service(settings, concurrency=0, metrics=Metrics(), host="0.0.0.0"):
            pass

    with pytest.raises(InvalidSettings, match="can be guessed"):
        asyncio.run(serve())
    assert not list(tmp_path.iterdir())


class Answer(BaseModel):
    text: str = ""


async def test_requests_to_a_model_on_this_machine_use_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with StandInWeb() as proxy, StandInLLM(extractions={"Answer": {"text": "yes"}}) as model:
        proxy.pages["/"] = Reply.html("a proxy")
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url(""))
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        adapter = open_openai(Access(openai_api_key="sk-of-a-test", openai_base_url=model.base_url))
        try:
            request = LLMRequest(
                model="m", messages=({"role": "user", "content": "?"},), schema=Answer, purpose="extract"
            )
            await adapter.send(request, {})
        finally:
            await adapter.aclose()
        assert len(model.calls) == 1
        assert proxy.visits == []


@pytest.mark.parametrize(
    ("trusted", "client"),
    [("", "127.0.0.1"), ("127.0.0.0/8", "203.0.113.9")],
)
async def test_client_address_is_taken_only_from_configured_proxies(trusted: str, client: str) -> None:
    """Otherwise, a client could choose the address in the log."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": f"{scope['client'][0]} {scope['scheme']}".encode()})

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    proxies = settings_for_tests(trusted_proxies=trusted).trusted_proxies
    server = uvicorn.Server(server_config(app, host="127.0.0.1", port=port, trusted_proxies=proxies))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    headers = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    async with httpx.AsyncClient(trust_env=False) as http:
        seen = await http.get(f"http://127.0.0.1:{port}/", headers=headers)
    server.should_exit = True
    await serving
    assert seen.text == f"{client} {'https' if client == '203.0.113.9' else 'http'}"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("a:submit:one-key,ops:operater:another", "number 2 has an unknown scope"),
        ("a:submit:one-key,b:read:one-key", "number 2 has the key of another owner"),
    ],
)
def test_entry_that_would_give_other_rights_than_meant_is_refused(entries: str, message: str) -> None:
    with pytest.raises(InvalidSettings, match=f"ASSAY_API_KEYS: {message}") as raised:
        load_settings(api_keys=entries)
    assert "one-key" not in str(raised.value)

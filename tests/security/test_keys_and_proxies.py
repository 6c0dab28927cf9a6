"""Keys that can be guessed on a public address, and proxies that would see requests to a model on this machine."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, SecretStr

from app.errors import InvalidSettings
from app.settings import check_bind
from judges.llm.client import LLMRequest
from judges.llm.openai import open_openai
from tests.standin.llm import StandInLLM
from tests.standin.web import Reply, StandInWeb

STRONG = "7f3a9c0e52b14d6886aa13f0c2d94e75"


@pytest.mark.parametrize("weak", ["", "secret", "a" * 40, "abcabcabcabcabcabcabcabc", "hunter2hunter2"])
def test_key_that_can_be_guessed_is_refused_on_a_public_address(weak: str) -> None:
    with pytest.raises(InvalidSettings, match=r"ASSAY_API_KEYS, number 2\).*20 random characters") as raised:
        check_bind("0.0.0.0", keys=True, chosen_keys=[SecretStr(STRONG), SecretStr(weak)])
    assert weak == "" or weak not in str(raised.value)
    check_bind("127.0.0.1", keys=True, chosen_keys=[SecretStr(weak)])
    check_bind("0.0.0.0", keys=True, chosen_keys=[SecretStr(STRONG)])


class Answer(BaseModel):
    text: str = ""


async def test_requests_to_a_model_on_this_machine_use_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with StandInWeb() as proxy, StandInLLM(extractions={"Answer": {"text": "yes"}}) as model:
        proxy.pages["/"] = Reply.html("a proxy")
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url(""))
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        adapter = open_openai(api_key="sk-of-a-test", base_url=model.base_url)
        try:
            request = LLMRequest(
                model="m", messages=({"role": "user", "content": "?"},), schema=Answer, purpose="extract"
            )
            await adapter.send(request, {})
        finally:
            await adapter.aclose()
        assert len(model.calls) == 1
        assert proxy.visits == []

"""Public errors in scripts that the service runs, in its process and in a child process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from judges.errors import (
    LLMBudgetExceeded,
    LLMError,
    LLMOutputUnusable,
    LLMUnavailable,
    ModelNotConfigured,
    UnusableKind,
)
from judges.isolation.fork_server_pool import ForkServerPool
from judges.llm.client import LLMReply, LLMRequest
from tests.fakes.judge_processes import SupportingLLM, open_process_pool, run_public_script, script
from tests.standin.faults import WRONG_KEY
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.asyncio(loop_scope="module")

REFUSED = LLMOutputUnusable(UnusableKind.REFUSED, "the reply is refused")
ASK = 'await client.async_response(model=model, messages=[{"role": "user", "content": "Which city?"}])'
SWALLOWS = f"""
from mind2web2 import ContextLengthError, JudgeContentError, JudgeError
try:
    {ASK}
except JudgeError as error:
    evaluator.add_custom_info({{"error": type(error).__name__}})
evaluator.add_custom_node(False, "later", "Decided without the reply")
"""


class FaultyLLM(SupportingLLM):
    """Model that raises ``fault`` for requests of the script itself, or for votes (``purpose``)."""

    def __init__(self, fault: LLMError, purpose: str = "free") -> None:
        super().__init__()
        self._fault = fault
        self._purpose = purpose

    async def complete(self, request: LLMRequest) -> LLMReply:
        if request.purpose == self._purpose:
            raise self._fault
        return await super().complete(request)


@pytest_asyncio.fixture(params=["in-process", "child process"], scope="module", loop_scope="module")
async def process_pool(request: pytest.FixtureRequest) -> AsyncIterator[ForkServerPool | None]:
    if request.param == "in-process":
        yield None
        return
    async with open_process_pool() as pool:
        yield pool


async def test_what_a_script_decides_after_a_request_without_reply_is_not_judged(
    tmp_path: Path, process_pool: ForkServerPool | None
):
    path = script(tmp_path, SWALLOWS)
    faults = {
        "JudgeError": (LLMUnavailable("down"), LLMBudgetExceeded("the budget is used up")),
        "JudgeContentError": (REFUSED,),
    }
    for name, raised in faults.items():
        for fault in raised:
            result = await run_public_script(path, process_pool, llm=FaultyLLM(fault))
            [part] = result["eval_breakdown"]
            assert part["info"] == [{"custom": {"error": name}}]
            leaf, later = part["verification_tree"]["children"]
            assert (leaf["outcome"], later["outcome"], later["reason"]) == ("passed", "not_judged", "extraction_failed")
            assert str(fault) in later["reasoning"]
            assert (result["status"], result["final_score"]) == ("incomplete", 0.0)
            assert result["score"] == {"value": None, "low": 0.0, "high": 1.0}


async def test_what_a_script_decides_after_an_error_of_its_own_client_is_not_judged(
    tmp_path: Path, process_pool: ForkServerPool | None, monkeypatch: pytest.MonkeyPatch
):
    async with StandInLLM() as server:
        server.always = WRONG_KEY
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        above = "from mind2web2 import LLMClient"
        body = "client = LLMClient(is_async=True)" + SWALLOWS
        result = await run_public_script(script(tmp_path, body, above=above), process_pool)
    assert len(server.calls) == 1
    leaf, later = result["eval_breakdown"][0]["verification_tree"]["children"]
    assert (leaf["outcome"], later["outcome"]) == ("passed", "not_judged")


async def test_script_cannot_choose_the_server_of_its_own_client_in_a_child_process(
    tmp_path: Path, process_pool: ForkServerPool | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    path = script(tmp_path, "LLMClient(base_url='http://127.0.0.1:9/v1')", above="from mind2web2 import LLMClient")
    if process_pool is None:
        await run_public_script(path, None)
        return
    with pytest.raises(ModelNotConfigured, match="base_url"):
        await run_public_script(path, process_pool)

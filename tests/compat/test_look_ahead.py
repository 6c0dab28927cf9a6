"""Look-ahead for public scripts: same trees and verdicts, few extra calls, less waiting."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from answers.submission import Answer
from cache.blobs import BlobStore
from cache.capture_index import MemoryIndex
from cache.pages import PageCache
from judges.errors import JudgeBug, LLMUnavailable
from judges.isolation.fork_server_pool import ForkServerPool
from judges.llm.client import LLMReply, LLMRequest
from judges.loader import load_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from mind2web2.host import run_script
from mind2web2.tool_replies import ToolReplies, request_once, share_replies
from rubrics.verdict import Usage
from tests.compat.fixed_pages import FixedPages
from tests.compat.script_cases import CASES, PAGES, Case
from tests.compat.scripted import claim_in, text_of

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")

BLOCK_BUILDER = BlockBuilder(b"the secret of a test")
SEEDS = range(8)
CHAIN = Path(__file__).parent / "scripts_ahead" / "chain.py"


class Threads(ThreadPoolExecutor):
    """Thread pool of the event loop that counts work whose completion the loop has not yet processed."""

    def __init__(self) -> None:
        super().__init__()
        self.busy = 0

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        loop = asyncio.get_running_loop()
        self.busy += 1
        future = super().submit(work, *arguments, **keywords)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._ended))
        return future

    def _ended(self) -> None:
        self.busy -= 1


class Rounds:
    """Model that answers all pending requests together and counts these rounds, so latency is measured without a
    clock.

    A claim's verdict depends only on ``seed`` and its text; the fraction ``pass_rate`` of claims passes.
    """

    def __init__(
        self,
        seed: int,
        *,
        pass_rate: float = 0.8,
        values: Any = None,
        lost: str | None = None,
        refuted: str | None = None,
    ) -> None:
        self._seed = seed
        self._pass_rate = pass_rate
        self._values = values or {}
        self._lost = lost
        self._refuted = refuted
        self._waiting: list[asyncio.Future[None]] = []
        self.calls = 0
        self.rounds = 0

    async def complete(self, request: LLMRequest) -> LLMReply:
        self.calls += 1
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn
        if request.schema_name != "BinaryEvalResult":
            text = json.dumps(self._values.get(request.schema_name, {}))
        else:
            claim = claim_in(text_of(request.messages))
            if self._lost is not None and self._lost in claim:
                raise LLMUnavailable("down", usage=Usage(calls=1))
            drawn = hashlib.sha256(f"{self._seed} {claim}".encode()).digest()[0] / 256
            is_refuted = self._refuted is not None and self._refuted in claim
            text = json.dumps({"reasoning": "", "result": drawn < self._pass_rate and not is_refuted})
        return LLMReply(
            text=text,
            parsed=None if request.reply_class is None else request.reply_class.model_validate_json(text),
            model=request.model,
            usage=Usage(calls=1, input_tokens=7),
        )

    async def aclose(self) -> None: ...

    async def keep_answering(self) -> None:
        threads = Threads()
        asyncio.get_running_loop().set_default_executor(threads)
        while True:
            # Let all runnable tasks proceed first, including those that wait for threads.
            quiet_turns = 0
            while quiet_turns < 200:
                await asyncio.sleep(0)
                quiet_turns = 0 if threads.busy else quiet_turns + 1
            await asyncio.sleep(0.002)
            if self._waiting and not threads.busy:
                self.rounds += 1
                waiting, self._waiting = self._waiting, []
                for turn in waiting:
                    if not turn.done():
                        turn.set_result(None)


BLOBS = BlobStore.open("memory://")
PAGE_CACHE = PageCache(FixedPages({url: f"The page at {url} sells lamps." for url in PAGES}), BLOBS, MemoryIndex())


async def run(
    path: Path, model: Rounds, answer: str, *, look_ahead: bool, process_pool: ForkServerPool | None = None
) -> dict[str, Any]:
    captures = [await PAGE_CACHE.get(url) for url in PAGES]
    answering = asyncio.create_task(model.keep_answering())
    try:
        return await run_script(
            load_judge(path),
            answer=Answer(name="answer_1.md", text=answer),
            agent_name="me",
            llm=model,
            model="o4-mini",
            block_builder=BLOCK_BUILDER,
            preparer=PagePreparer(BLOCK_BUILDER),
            pages=PAGE_CACHE,
            blobs=BLOBS,
            captures=captures,
            look_ahead_pages=PAGE_CACHE if look_ahead else None,
            process_pool=process_pool,
        )
    finally:
        answering.cancel()


TREE = ("id", "desc", "critical", "score", "status", "strategy", "weight", "outcome", "reason", "blocked_by", "claim")


def settled(result: dict[str, Any]) -> dict[str, Any]:
    """Return all decided values. Which of two pages supported a claim first depends on timing and is left out."""

    def node(json: dict[str, Any]) -> dict[str, Any]:
        return {name: json.get(name) for name in TREE} | {"children": [node(child) for child in json["children"]]}

    kept = {name: result[name] for name in ("final_score", "status", "score")}
    if "tree" in result:
        return kept | {"tree": node(result["tree"])}
    breakdown = result["eval_breakdown"][0]
    return kept | {"info": breakdown["info"], "tree": node(breakdown["verification_tree"])}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_look_ahead_changes_no_result_and_adds_few_calls(case: Case):
    plain_calls = ahead_calls = 0  # over all seeds, because a single short run may waste one claim
    for seed in SEEDS:
        alone, ahead = Rounds(seed, values=case.values), Rounds(seed, values=case.values)
        plain = await run(case.path, alone, case.answer, look_ahead=False)
        with_look_ahead = await run(case.path, ahead, case.answer, look_ahead=True)
        assert settled(with_look_ahead) == settled(plain), f"seed {seed}"
        plain_calls, ahead_calls = plain_calls + alone.calls, ahead_calls + ahead.calls
    assert ahead_calls <= 1.05 * plain_calls


async def test_dependent_claims_are_requested_two_at_a_time_if_likely_to_pass():
    alone, ahead = Rounds(0, pass_rate=1.0), Rounds(0, pass_rate=1.0)
    plain = await run(CHAIN, alone, "x", look_ahead=False)
    with_look_ahead = await run(CHAIN, ahead, "x", look_ahead=True)
    assert settled(with_look_ahead) == settled(plain)
    assert plain["final_score"] == 1.0
    assert alone.rounds == 12
    assert ahead.rounds <= 8
    assert ahead.calls == alone.calls


async def test_independent_claims_are_all_requested_at_once():
    alone, ahead = Rounds(3, pass_rate=0.5), Rounds(3, pass_rate=0.5)
    path = CHAIN.with_name("side_by_side.py")
    plain = await run(path, alone, "x", look_ahead=False)
    with_look_ahead = await run(path, ahead, "x", look_ahead=True)
    assert settled(with_look_ahead) == settled(plain)
    assert alone.rounds == 12
    assert ahead.rounds <= 2
    assert ahead.calls == alone.calls


async def test_unneeded_requests_are_counted_in_the_usage():
    wasted = []
    for refuted, needed in (("step 8", 16), ("step 9", 18)):
        alone, ahead = (Rounds(0, pass_rate=1.0, refuted=refuted) for _ in range(2))
        plain = await run(CHAIN, alone, "x", look_ahead=False)
        with_look_ahead = await run(CHAIN, ahead, "x", look_ahead=True)
        assert settled(with_look_ahead) == settled(plain)
        assert alone.calls == plain["usage"]["calls"] == needed
        # A request that is cancelled before its reply costs nothing.
        assert needed <= with_look_ahead["usage"]["calls"] <= ahead.calls
        wasted.append(ahead.calls - needed)
    # Which of two neighbours starts after the refuted step depends on which run gets there first.
    assert set(wasted) <= {0, 2}
    assert any(wasted)


async def test_fault_gives_the_same_result_with_look_ahead():
    alone, ahead = (Rounds(0, pass_rate=1.0, lost="step 3") for _ in range(2))
    plain = await run(CHAIN, alone, "x", look_ahead=False)
    with_look_ahead = await run(CHAIN, ahead, "x", look_ahead=True)
    assert plain["status"] == "incomplete"
    assert settled(with_look_ahead) == settled(plain)


async def test_module_state_of_a_script_is_changed_once_in_the_main_run():
    result = await run(CHAIN.with_name("counting.py"), Rounds(0, pass_rate=1.0), "x", look_ahead=True)
    assert result["eval_breakdown"][0]["info"] == [{"custom": {"runs": 1}}]


async def test_script_that_raises_leaves_no_tasks():
    with pytest.raises(JudgeBug, match="ZeroDivisionError"):
        await run(CASES[0].path.with_name("broken.py"), Rounds(0), "x", look_ahead=True)
    assert len(asyncio.all_tasks()) <= 2


async def test_external_tool_requests_are_sent_once_and_replies_are_copied():
    asked: list[str] = []

    async def ask() -> dict[str, list[int]]:
        asked.append("once")
        await asyncio.sleep(0)
        return {"metres": [1]}

    answers: ToolReplies = {}
    with share_replies(answers):
        first, second = await asyncio.gather(request_once("far", ask), request_once("far", ask))
        first["metres"].append(2)
        assert (second, await request_once("far", ask)) == ({"metres": [1]}, {"metres": [1]})
    assert asked == ["once"]
    await request_once("far", ask)
    assert len(asked) == 2


async def test_failed_external_tool_request_is_sent_again():
    replies: list[int | Exception] = [ConnectionError("down"), 7]

    async def ask() -> int:
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    with share_replies({}):
        with pytest.raises(ConnectionError):
            await request_once("far", ask)
        assert await request_once("far", ask) == 7

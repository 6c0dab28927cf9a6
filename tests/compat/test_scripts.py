"""Whole task scripts, run in every supported way, with their expected trees."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cache.blobs import BlobStore
from cache.capture import Capture
from cache.capture_index import MemoryIndex
from cache.pages import PageCache
from judges.errors import JudgeBug, LLMUnavailable
from judges.llm.client import LLMReply, LLMRequest
from judges.loader import load_judge
from mind2web2 import CacheFileSys, load_eval_script
from mind2web2.eval_runner import DualSemaphore
from mind2web2.host import run_script
from mind2web2.task_pages import TaskPages
from rubrics.verdict import Usage
from tests.compat.fixed_pages import FixedPages
from tests.compat.script_cases import CASES, PAGES, Case
from tests.compat.scripted import ScriptedClient, nodes, outcomes, tree
from tests.fakes.judge_processes import job_of

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")

LOGGER = logging.getLogger("tests.compat.scripts")
case_by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


class ByClassName(ScriptedClient):
    """Client that fills each class of a script with the values recorded for the class name."""

    def _extracted(self, schema: Any) -> Any:
        return schema.model_validate(self._values.get(schema.__name__, {}))


class Hosted:
    """The same replies as an ``LLMClient`` of the service."""

    def __init__(self, case: Case) -> None:
        self._client = client_for(case)
        self._values = case.values

    async def complete(self, request: LLMRequest) -> LLMReply:
        reply = LLMReply(text="", parsed=None, model=request.model, usage=Usage(calls=1))
        if request.reply_class is None:  # the script runs in a child process
            return replace(reply, text=json.dumps(self._values.get(request.schema_name, {})))
        said = await self._client.async_response(
            model=request.model, messages=request.messages, response_format=request.reply_class
        )
        return replace(reply, text="" if said is None else said.model_dump_json(), parsed=said)

    async def aclose(self) -> None: ...


def client_for(case: Case) -> ScriptedClient:
    return ByClassName(case.votes, case.values)  # type: ignore[arg-type]


def fill(cache: CacheFileSys) -> CacheFileSys:
    for url in PAGES:
        cache.put_web(url, f"The page at {url} sells lamps.", None)
    return cache


def tree_of(result: dict[str, Any]) -> dict[str, tuple[str, float]]:
    if "tree" in result:
        return tree({"eval_breakdown": [{"verification_tree": result["tree"]}]})
    return tree(result)


async def run_directly(case: Case, folder: Path, semaphore: Any) -> dict[str, Any]:
    result = await load_eval_script(case.path)(
        client=client_for(case),
        answer=case.answer,
        agent_name="me",
        answer_name="answer_1.md",
        cache=fill(CacheFileSys(folder)),
        semaphore=semaphore,
        logger=LOGGER,
        model="o4-mini",
    )
    assert isinstance(result, dict)
    return result


@case_by_case
async def test_script_called_directly(case: Case, tmp_path: Path):
    result = await run_directly(case, tmp_path, DualSemaphore(asyncio.Semaphore(3), asyncio.Semaphore(3)))
    assert tree_of(result) == case.tree
    assert result["final_score"] == case.final_score
    assert (result["agent_name"], result["answer_name"]) == ("me", "answer_1.md")
    if "eval_breakdown" not in result:
        return
    if case.infos:
        assert result["eval_breakdown"][0]["info"] == case.infos
    found = nodes(result)
    assert {leaf: found[leaf]["blocked_by"] for leaf in case.blocked_by} == case.blocked_by
    assert result["status"] == "complete"
    assert result["score"] == {name: case.final_score for name in ("value", "low", "high")}


@pytest.fixture
def pages() -> PageCache:
    return PageCache(FixedPages({url: f"The page at {url} sells lamps." for url in PAGES}), BLOBS, MemoryIndex())


BLOBS = BlobStore.open("memory://")


async def run_hosted(
    path: Path, llm: Any, pages: PageCache, answer: str = "x", captures: Any = (), process_pool: Any = None, **more: Any
) -> dict[str, Any]:
    job = job_of(load_judge(path), llm, pages, BLOBS, answer, model="o4-mini", **more)
    return await run_script(job, TaskPages(pages, captures, None), process_pool)


@case_by_case
async def test_script_run_by_the_service(case: Case, pages: PageCache):
    captures: list[Capture] = [await pages.get(url) for url in PAGES]
    result = await run_hosted(case.path, Hosted(case), pages, case.answer, captures)
    assert tree_of(result) == case.tree
    assert result["final_score"] == case.final_score
    assert result["status"] == "complete"
    assert result["score"] == {name: case.final_score for name in ("value", "low", "high")}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("    return None", "NoneType, not a dict"),
        ("    raise SystemExit(3)", "SystemExit"),
        ("    class Stop(BaseException): ...\n    raise Stop('here')", "here"),
        ("    1 / 0", "ZeroDivisionError"),
        ("    return {'final_score': True}", "final_score"),
        ("    return {'final_score': float('nan')}", "final_score"),
        ("    loop = {}\n    loop['self'] = loop\n    return loop", "written as JSON"),
    ],
)
async def test_script_without_a_valid_result_is_a_judge_bug(body: str, said: str, pages: PageCache, tmp_path: Path):
    path = tmp_path / "task.py"
    arguments = "client, answer, agent_name, answer_name, cache, semaphore, logger, model"
    path.write_text(f"async def evaluate_answer({arguments}):\n{body}\n")
    with pytest.raises(JudgeBug, match=said):
        await run_hosted(path, Hosted(CASES[0]), pages)


async def test_dict_returned_by_a_script_is_completed_and_made_serializable(pages: PageCache, tmp_path: Path):
    path = tmp_path / "task.py"
    path.write_text(
        "from datetime import date\n"
        "async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model):\n"
        "    return {'final_score': 0.5, 'on': date(2026, 1, 2), 'model': model, 'answer': answer}"
    )
    result = await run_hosted(path, Hosted(CASES[0]), pages, answer="text")
    assert result == {
        "final_score": 0.5,
        "on": "2026-01-02",
        "model": "o4-mini",
        "answer": "text",
        "status": "complete",
        "score": {"value": 0.5, "low": 0.5, "high": 0.5},
        "score_strict": {"value": 0.5, "low": 0.5, "high": 0.5},
    }


CACHE_READER = """
async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model):
    seen = {
        "kind": [cache.has(url) for url in (A, "http://a.example/page/#x", "https://b.example")],
        "web": cache.get_web("http://www.a.example/page?utm_x=1")[0],
        "urls": cache.get_all_urls(),
        "lookup": [cache.lookup(url) for url in ("http://www.a.example/Page/", "https://b.example")],
    }
    cache.put_web("https://own.example", "put by the script", None)
    seen["own"] = (cache.has_web("https://own.example"), cache.get_web("https://own.example")[0])
    seen["summary"] = cache.summary()
    try:
        cache.get_pdf(A)
    except KeyError:
        seen["pdf"] = "KeyError"
    async with semaphore:
        pass
    asked = {"model": model, "messages": [{"role": "user", "content": "x"}]}
    reply = [await client.async_response(**asked), await client.client.response(**asked)]
    return seen | {"replies": reply}


A = "https://a.example/page"
"""


async def test_script_run_by_the_service_finds_captured_pages_in_its_cache(tmp_path: Path):
    path = tmp_path / "task.py"
    path.write_text(CACHE_READER)
    seen_pages = FixedPages({"https://a.example/page": "page text"})
    pages = PageCache(seen_pages, BLOBS, MemoryIndex())
    captures = [await pages.get(url) for url in ("https://a.example/page", "https://b.example")]

    class Counting(Hosted):
        votes: list[int]

        async def complete(self, request: LLMRequest) -> LLMReply:
            return LLMReply(text=f"vote {request.vote}", parsed=None, model="m", usage=Usage())

    result = await run_hosted(path, Counting(CASES[0]), pages, captures=captures)
    assert result["kind"] == ["web", "web", None]
    assert result["web"] == "page text"
    assert result["urls"] == ["https://a.example/page"]
    assert result["lookup"] == ["https://a.example/page", None]
    assert result["own"] == [True, "put by the script"]
    assert result["summary"] == {"total_urls": 2, "web_pages": 2, "pdf_pages": 0, "failed_urls": 0}
    assert result["pdf"] == "KeyError"
    assert result["replies"] == ["vote 0", "vote 1"]


SLOW = """
import asyncio
import json
from mind2web2 import Evaluator

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model):
    if "no tree" in answer:
        await asyncio.Event().wait()
    e = Evaluator()
    e.initialize("slow", agent_name=agent_name, answer_name=answer_name, client=client, answer=answer,
                 global_cache=cache, global_semaphore=semaphore, logger=logger, default_model=model)
    leaves = [e.add_leaf(name, name) for name in ("quick", "stuck", "never")]
    e.add_custom_node(True, "checked", "checked", critical=False)
    for leaf in leaves:
        await e.verify(leaf.id, leaf)
    return e.get_summary()
"""


class StuckOn(Hosted):
    async def complete(self, request: LLMRequest) -> LLMReply:
        if request.parts["claim"] == "stuck":
            await asyncio.Event().wait()
        return await super().complete(request)


async def test_leaves_not_settled_by_the_deadline_are_not_judged(pages: PageCache, tmp_path: Path):
    path = tmp_path / "task.py"
    path.write_text(SLOW)
    steps: list[tuple[int, int]] = []
    result = await run_hosted(
        path, StuckOn(CASES[0]), pages, progress=lambda done, known: steps.append((done, known)), deadline_s=2
    )
    assert {leaf: nodes(result)[leaf]["outcome"] for leaf in ("checked", "quick", "stuck", "never")} == {
        "checked": "passed", "quick": "passed", "stuck": "not_judged", "never": "not_judged",
    }  # fmt: skip
    assert {nodes(result)[leaf]["reason"] for leaf in ("stuck", "never")} == {"timeout"}
    assert result["status"] == "incomplete"
    assert result["score"] == {"value": None, "low": 0.0, "high": 1.0}
    assert steps == [(1, 4), (2, 4), (3, 4)]


async def test_script_without_a_tree_by_the_deadline_is_a_judge_bug(pages: PageCache, tmp_path: Path):
    path = tmp_path / "task.py"
    path.write_text(SLOW)
    with pytest.raises(JudgeBug, match="did not return within"):
        await run_hosted(path, StuckOn(CASES[0]), pages, answer="no tree", deadline_s=0.05)


SCRIPT_HEAD = """
from mind2web2 import Evaluator
from pydantic import BaseModel

class Found(BaseModel):
    name: str

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model):
    e = Evaluator()
    e.initialize("t", agent_name=agent_name, answer_name=answer_name, client=client, answer=answer,
                 global_cache=cache, global_semaphore=semaphore, logger=logger, default_model=model)
"""
FAILING_AFTER_EXTRACTION = (
    SCRIPT_HEAD
    + """    e.add_custom_node(True, "before", "before", critical=False)
    e.add_leaf("open", "open")
    found = await e.extract("p", Found)
    return {"final_score": len(found.name)}
"""
)


class Down(Hosted):
    async def complete(self, request: LLMRequest) -> LLMReply:
        raise LLMUnavailable("the model is down")


async def test_script_that_raises_after_a_failed_extraction_is_incomplete(pages: PageCache, tmp_path: Path):
    path = tmp_path / "task.py"
    path.write_text(FAILING_AFTER_EXTRACTION)
    result = await run_hosted(path, Down(CASES[0]), pages)
    assert (result["status"], result["final_score"]) == ("incomplete", 0.5)
    assert result["score"] == {"value": None, "low": 0.0, "high": 1.0}
    assert "the model is down" in result["extraction_error"]


IGNORES_ITS_FAILED_REQUEST = """
async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model):
    try:
        reply = await client.async_response(model=model, messages=[{"role": "user", "content": "Is it right?"}])
    except Exception:
        reply = "no"
    return {"final_score": float(reply == "yes")}
"""
SCORES_WITHOUT_ITS_SUMMARY = (
    SCRIPT_HEAD
    + """    await e.verify("It is right", e.add_leaf("right", "right"))
    return {"final_score": e.score()}
"""
)


MORE_EVALUATORS = """    e = Evaluator()
    e.initialize("u", client=client, answer=answer, global_cache=cache, global_semaphore=semaphore, logger=logger)
"""
OWN_TOOLS = """    extractor, verifier = create_evaluator(
        client=client, answer=answer, global_cache=cache, global_semaphore=semaphore, logger=logger,
        task_description="t",
    )
"""


OWN_KEYS = {"score": 0.3, "status": "done", "usage": {"tokens": 3}, "pages": None, "prompts": [1, "x"], "cut_short": 2}
OPEN_SCRIPTS = {
    "ignores its failed request": IGNORES_ITS_FAILED_REQUEST,
    "scores without its summary": SCORES_WITHOUT_ITS_SUMMARY,
    "returns keys of ours": SCORES_WITHOUT_ITS_SUMMARY.replace("return {", f"return {OWN_KEYS} | {{"),
    "extracts in another evaluator": SCRIPT_HEAD
    + f"""
    found = await e.extract("p", Found)
{MORE_EVALUATORS}
    e.add_custom_node(found.name, "found", "found")
    return e.get_summary()
""",
    "has a tree of its own": SCRIPT_HEAD
    + f"""
{OWN_TOOLS}
    node = VerificationNode(id="right", desc="right")
    await verifier.simple_verify("It is right", node)
    return {{"final_score": node.score}}
""",
    "copies a leaf": SCRIPT_HEAD
    + """
    leaf = e.add_leaf("right", "right")
    await e.verify("It is right", leaf)
    e.root.children[:] = [VerificationNode(**leaf.model_dump())]
    return e.get_summary()
""",
}


@pytest.mark.parametrize("does", OPEN_SCRIPTS)
async def test_score_is_open_after_a_fault_whatever_the_script_does(does: str, pages: PageCache, tmp_path: Path):
    path = tmp_path / "task.py"
    path.write_text("from mind2web2 import VerificationNode, create_evaluator\n" + OPEN_SCRIPTS[does])
    result = await run_hosted(path, Down(CASES[0]), pages)
    assert (result["status"], result["final_score"]) == ("incomplete", 0.0)
    assert result["score"] == result["score_strict"] == {"value": None, "low": 0.0, "high": 1.0}


async def test_claim_judged_by_an_own_verifier_has_its_outcome_in_the_tree(pages: PageCache, tmp_path: Path):
    path = tmp_path / "task.py"
    body = """    await verifier.simple_verify("It is right", e.add_leaf("right", "right"))
    return e.get_summary()
"""
    path.write_text("from mind2web2 import create_evaluator\n" + SCRIPT_HEAD + OWN_TOOLS + body)
    result = await run_hosted(path, Down(CASES[0]), pages)
    assert outcomes(result) == {"right": ("not_judged", "llm_unavailable")}


CANCELS_ITS_REQUEST = """
import asyncio

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model):
    asked = {"model": model, "messages": [{"role": "user", "content": "Is it right?"}]}
    request = asyncio.create_task(client.async_response(**asked))
    await asyncio.sleep(0)
    request.cancel()
    await asyncio.wait({request})
    return {"final_score": 0.0}
"""
RAISES_BESIDE_AN_EXTRACTION = (
    SCRIPT_HEAD
    + """    async with asyncio.TaskGroup() as group:
        group.create_task(e.extract("p", Found))
        await asyncio.sleep(0)
        raise KeyError("a bug")
"""
)


class NeverReplies(Hosted):
    async def complete(self, request: LLMRequest) -> LLMReply:
        await asyncio.Event().wait()
        raise AssertionError


async def test_score_is_open_if_the_script_cancels_its_request(pages: PageCache, tmp_path: Path):
    path = tmp_path / "task.py"
    path.write_text(CANCELS_ITS_REQUEST)
    result = await run_hosted(path, NeverReplies(CASES[0]), pages)
    assert (result["status"], result["score"]["low"], result["score"]["high"]) == ("incomplete", 0.0, 1.0)
    assert result["extraction_error"] == "a request of the script was cancelled"


async def test_extraction_that_a_bug_of_the_script_cancels_is_no_fault(pages: PageCache, tmp_path: Path):
    path = tmp_path / "task.py"
    path.write_text("import asyncio\n" + RAISES_BESIDE_AN_EXTRACTION)
    with pytest.raises(JudgeBug, match="raised"):
        await run_hosted(path, NeverReplies(CASES[0]), pages)

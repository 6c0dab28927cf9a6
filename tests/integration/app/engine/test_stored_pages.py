"""Judging with stored pages only: public scripts cannot open live pages with their tools either."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from answers.submission import Answer
from app.engine.pipeline import JudgingCase, evaluate
from app.engine.runtime import open_runtime
from cache.capture import EvidencePolicy
from tests.compat.web import Reply, Web, running_web
from tests.fakes.settings import settings_for_tests

SCRIPT = """
from mind2web2 import Evaluator
from mind2web2.api_tools.tool_pdf import is_pdf
from mind2web2.utils.page_info_retrieval import BatchBrowserManager

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="gpt-6-luna"):
    evaluator = Evaluator()
    evaluator.initialize(task_id="tools", agent_name=agent_name, answer_name=answer_name, client=client,
                         task_description="Look at a page", answer=answer, global_cache=cache,
                         global_semaphore=semaphore, logger=logger, default_model=model)
    url, _, tools = answer.partition(" ")
    evaluator.add_custom_node(await is_pdf(url), id="pdf", desc="The page is a PDF", critical=False)
    if tools:
        async with BatchBrowserManager() as browser:
            seen = await browser.observe(url)
        evaluator.add_custom_node(seen.outcome.value == "not_stored", id="live", desc="No live page", critical=False)
    leaf = evaluator.add_leaf(id="cited", desc="The page says so")
    await evaluator.verify("The lamp is green", leaf, sources=url)
    return evaluator.get_summary()
"""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with running_web({"/report": Reply(b"%PDF-1.4 not a whole document", "application/pdf")}) as web:
        monkeypatch.setenv("ASSAY_EGRESS_ALLOW", web.host_port)
        yield web


@pytest.mark.parametrize(
    ("in_process", "case"),
    [
        (False, {"stored_pages": True}),
        (True, {"stored_pages": True}),
        (True, {"evidence_policy": EvidencePolicy.SUPPLIED}),
    ],
)
async def test_tools_of_a_public_script_open_no_page(tmp_path: Path, site: Web, in_process: bool, case: dict[str, Any]):
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "tools.py").write_text(SCRIPT)
    settings = settings_for_tests(
        data_dir=tmp_path / "data", judges=(tmp_path / "judges",), egress_allow=(site.host_port,)
    )
    url = f"{site.origin}/report"
    async with open_runtime(settings, in_process=in_process) as runtime:
        judge = runtime.judge("tools")
        answer = Answer(name="answer_1.md", text=f"{url} and the browser")
        result = await evaluate(runtime, JudgingCase(judge=judge, agent="demo", answer=answer, **case))
        assert (site.requests, await runtime.index.find(url)) == ([], None)
    leaves = {leaf["id"]: leaf for leaf in result["eval_breakdown"][0]["verification_tree"]["children"]}
    assert {name: (leaf["outcome"], leaf.get("reason")) for name, leaf in leaves.items()} == {
        "pdf": ("failed", "check_false"),
        "live": ("passed", None),
        "cited": ("not_judged", "page_not_stored"),
    }
    assert result["pages"] == []

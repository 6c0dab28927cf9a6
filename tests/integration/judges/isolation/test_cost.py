"""Preloaded modules of the fork server."""

from __future__ import annotations

from pathlib import Path

import pytest

from judges.errors import IsolationFailed
from judges.isolation.fork_server_pool import ForkServerPool
from tests.fakes.judge_processes import open_process_pool, run_public_script, script

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")


async def test_script_modules_are_imported_before_fork(tmp_path: Path):
    body = """
        ours = sorted(name for name in sys.modules if name.startswith(("mind2web2", "judges", "openai", "googlemaps")))
        evaluator.add_custom_info({"late": sorted(set(ours) - set(loaded))})
    """
    above = (
        "loaded = [n for n in sys.modules if n.startswith(('mind2web2', 'judges', 'openai', 'googlemaps'))]\n"
        "from mind2web2.api_tools import tool_googlemap, tool_arxiv, tool_pdf\n"
        "from mind2web2.utils.page_info_retrieval import BatchBrowserManager, PageManager\n"
        "from mind2web2.llm_client.bedrock_anthropic_client import AsyncBedrockAnthropicClient\n"
        "from mind2web2.eval_toolkit import create_evaluator, BaseEvaluator\n"
        "from mind2web2.prompts.cache_prompts import llm_extraction_prompts\n"
        "from mind2web2.eval_runner import evaluate_task\n"
    )
    async with open_process_pool() as process_pool:
        result = await run_public_script(script(tmp_path, body, above=above), process_pool)
    assert result["eval_breakdown"][0]["info"] == [{"custom": {"late": []}}]


async def test_failed_preload_is_an_error():
    process_pool = ForkServerPool(["there_is_no_such_module"])
    with pytest.raises(IsolationFailed, match="exited during start-up"):
        await process_pool.wait_until_running()
    await process_pool.aclose()

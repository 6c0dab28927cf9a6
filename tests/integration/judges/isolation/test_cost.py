"""What a process of its own costs. The fork server could fail to preload, and nobody would notice but by this."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from judges.errors import IsolationFailed
from judges.isolation.fork_server_pool import ForkServerPool
from tests.fakes.confined import confined, process_pool_with, script

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")
CHILDREN = 30
MOST_CPU_S = 0.2
"""Ten times the target, which `make bench` checks; a child that imports everything anew takes over a second."""
NOTHING = "builtins:print"
"""An entry that takes anything and returns at once."""


async def test_a_child_costs_a_small_part_of_what_starting_python_and_importing_costs():
    async with process_pool_with() as process_pool:
        assert process_pool.server_pid is not None
        server = psutil.Process(process_pool.server_pid)
        before, spent = server.cpu_times(), 0.0
        for _ in range(CHILDREN):
            async with process_pool.spawn(NOTHING) as child:
                ending = await child.ending(patience_s=5)
            assert ending.exit == 0
            spent += ending.cpu_s
        after = server.cpu_times()
        spent += after.user + after.system - before.user - before.system
    assert spent / CHILDREN <= MOST_CPU_S


async def test_everything_a_script_needs_is_imported_before_it_is_forked(tmp_path: Path):
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
    async with process_pool_with() as process_pool:
        result = await confined(script(tmp_path, body, above=above), process_pool)
    assert result["eval_breakdown"][0]["info"] == [{"custom": {"late": []}}]


async def test_what_reads_the_usual_values_is_made_before_a_script_is_forked(tmp_path: Path):
    body = """
        await evaluator.verify("Paris is the capital of France.", None)
        evaluator.add_custom_info({"late": _adapter.cache_info().misses - made})
    """
    above = "from judges.isolation.serialization import _adapter\nmade = _adapter.cache_info().misses\n"
    async with process_pool_with() as process_pool:
        result = await confined(script(tmp_path, body, above=above), process_pool)
    assert result["eval_breakdown"][0]["info"] == [{"custom": {"late": 0}}]


async def test_a_module_that_cannot_be_imported_beforehand_is_told_and_not_worked_around():
    process_pool = ForkServerPool(["there_is_no_such_module"])
    with pytest.raises(IsolationFailed, match="exited during start-up"):
        await process_pool.ready()
    await process_pool.aclose()

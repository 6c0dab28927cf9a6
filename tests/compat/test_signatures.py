"""Parameter names, order and defaults that public scripts rely on."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import mind2web2 as m
from mind2web2 import eval_runner
from mind2web2.api_tools.tool_pdf import is_pdf
from mind2web2.utils.page_info_retrieval import BatchBrowserManager, detect_block

SIGNATURES: list[tuple[Any, str]] = [
    (m.Evaluator, ""),
    (m.Evaluator.initialize, "self, task_id, strategy=parallel, agent_name=None, answer_name=None, **kwargs"),
    (
        m.create_evaluator,
        "*, client, task_description, answer, global_cache, global_semaphore, logger, default_model=gpt-6-luna, "
        "extract_model=None, verify_model=None, config=None, browser_manager=None",
    ),
    (m.Evaluator.add_parallel, "self, id, desc, parent=None, **node_fields"),
    (m.Evaluator.add_sequential, "self, id, desc, parent=None, **node_fields"),
    (
        m.Evaluator.add_leaf,
        "self, id, desc, parent=None, critical=False, score=0.0, status=initialized, **node_fields",
    ),
    (m.Evaluator.add_custom_node, "self, result, id, desc, parent=None, critical=True"),
    (m.Evaluator.add_existence_node, "self, result, id, desc, parent=None, critical=True"),
    (
        m.Evaluator.extract,
        "self, prompt, template_class, extraction_name=extraction, source=None, additional_instruction=None, **kwargs",
    ),
    (
        m.Evaluator.verify,
        "self, claim, node, sources=None, *, extra_prerequisites=None, additional_instruction=None, **kwargs",
    ),
    (m.Evaluator.add_ground_truth, "self, info, gt_type=ground_truth"),
    (m.Evaluator.add_custom_info, "self, info, info_type=custom, info_name=None"),
    (m.Evaluator.find_node, "self, id"),
    (m.Evaluator.check_id_available, "self, id"),
    (m.Extractor.simple_extract, "self, extraction_prompt, template_class, additional_instruction=None"),
    (
        m.Extractor.extract_from_url,
        "self, extraction_prompt, url, template_class, *, additional_instruction=None, use_screenshot=True",
    ),
    (m.Verifier.simple_verify, "self, claim, node=None, *, additional_instruction=None, **options"),
    (m.Verifier.verify_by_url, "self, claim, url, node=None, *, additional_instruction=None, **options"),
    (m.Verifier.verify_by_urls, "self, claim, urls, node=None, *, additional_instruction=None, **options"),
    (m.Verifier.get_page_info, "self, url"),
    (m.VerificationNode.add_node, "self, child"),
    (m.VerificationNode.compute_score, "self, *, mutate=False"),
    (m.CacheFileSys, "task_dir"),
    (m.CacheFileSys.get_web, "self, url, get_screenshot=True"),
    (m.CacheFileSys.lookup, "self, url, ignore_case=True, follow_redirects=True"),
    (m.CacheFileSys.record_failure, "self, url, reason, *, blocked=False, gone=False"),
    (m.Capture, "screenshot_b64=None, text=None, error=None, blocked=False, status=None, final_url=None"),
    (BatchBrowserManager.capture, "self, url, logger"),
    (detect_block, "status, title, text"),
    (
        m.LLMClient,
        (
            "provider=openai, is_async=False, *, judge=None, base_url=None, retry_seconds=900.0, "
            "retry_initial_delay=1.0, timeout=600.0"
        ),
    ),
    (m.calculate_api_cost, "input_tokens, output_tokens, model_name"),
    (m.load_eval_script, "path"),
    (m.create_logger, "name, folder, enable_console=True, file_format=both, enable_shared_errors=False"),
    (m.create_sub_logger, "logger, name"),
    (m.cleanup_logger, "logger"),
    (m.PathConfig, "project_root"),
    (m.PageManager, "context, logger"),
    (m.GoogleMapsTool.get_city_name, "self, address, level=locality"),
    (m.GoogleMapsTool.get_address_information, "self, address"),
    (m.GoogleMapsTool.calculate_distance, "self, address1, address2, mode=driving"),
    (m.GoogleMapsTool.calculate_travel_time, "self, address1, address2, mode=driving"),
    (m.ArxivTool.search_arxiv_by_id, "self, id"),
    (m.ArxivTool.search_arxiv_by_title, "self, title"),
    (BatchBrowserManager, "headless=True, max_retries=3, max_concurrent_pages=10, *, page_timeout=60.0"),
    (
        BatchBrowserManager.capture_page,
        "self, url, logger, wait_until=load, timeout=30000, grant_permissions=True, user_data_dir=None",
    ),
    (is_pdf, "url, logger=None"),
    (eval_runner.DualSemaphore, "webpage_semaphore, llm_semaphore"),
    (eval_runner.generate_result_summary, "output_dir, agent_name"),
    (eval_runner.merge_all_results, "output_dir"),
    (
        eval_runner.evaluate_task,
        "client, task_id, agent_name, answer_dir, cache_dir, output_dir, script_path, dump_cache=True, "
        "is_self_debug=False, overwrite=False, max_concurrent_answers=3, webpage_semaphore=None, llm_semaphore=None, "
        "*, model=None",
    ),
]


def written(function: Any) -> str:
    """Return a signature without its types."""
    bare = inspect.signature(function)
    shown: list[str] = []
    for parameter in bare.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        name = f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
        shown.append(name if parameter.default is parameter.empty else f"{name}={parameter.default}")
    return ", ".join(shown)


@pytest.mark.parametrize(("function", "expected"), SIGNATURES, ids=lambda each: getattr(each, "__qualname__", ""))
def test_parameters_have_the_public_names_and_defaults(function: Any, expected: str):
    assert written(function) == expected


def test_put_accepts_positional_arguments(tmp_path: Any):
    cache = m.CacheFileSys(tmp_path)
    cache.put_web("https://a.com/w", "text", b"no image")
    cache.put_pdf("https://a.com/p", b"%PDF-")
    assert (cache.get_web("https://a.com/w"), cache.get_pdf("https://a.com/p")) == (("text", b"no image"), b"%PDF-")

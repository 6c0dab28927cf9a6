"""Imports of public task scripts in a fresh interpreter, without key, browser or network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LINES = """
from mind2web2 import CacheFileSys, Evaluator, VerificationNode, AggregationStrategy, LLMClient
from mind2web2 import create_evaluator, Extractor, Verifier, EvaluatorConfig, ArxivTool, GoogleMapsTool, PDFParser
from mind2web2 import OpenAIClient, AsyncOpenAIClient, AzureOpenAIClient, AsyncAzureOpenAIClient, calculate_api_cost
from mind2web2 import create_logger, cleanup_logger, create_sub_logger, PathConfig, PageManager, load_eval_script
from mind2web2 import normalize_url_markdown, text_dedent, strip_extension, encode_image, encode_image_buffer
from mind2web2 import extract_doc_description, extract_doc_description_from_frame
from mind2web2.utils import create_logger, cleanup_logger, create_sub_logger, PathConfig, PageManager, load_eval_script
from mind2web2.utils import normalize_url_markdown, text_dedent, strip_extension, encode_image, encode_image_buffer
from mind2web2.utils import extract_doc_description, extract_doc_description_from_frame, CacheFileSys
from mind2web2.evaluator import Evaluator, AggregationStrategy, VerificationNode, create_evaluator, Extractor, Verifier
from mind2web2.verification_tree import VerificationNode, AggregationStrategy
from mind2web2.eval_toolkit import create_evaluator, BaseEvaluator, Extractor, Verifier, EvaluatorConfig
from mind2web2.eval_toolkit import BinaryEvalResult
from mind2web2.eval_runner import evaluate_task, generate_result_summary, merge_all_results, DualSemaphore
from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.load_eval_script import load_eval_script
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.misc import normalize_url_markdown, text_dedent, strip_extension, encode_image, encode_image_buffer
from mind2web2.utils.url_tools import normalize_url_simple, remove_utm_parameters, regex_find_urls
from mind2web2.utils.url_tools import normalize_url_for_browser, URLs
from mind2web2.utils.logging_setup import create_logger, cleanup_logger, create_sub_logger, cleanup_shared_error_handler
from mind2web2.utils.page_info_retrieval import BatchBrowserManager, PageManager, html_to_markdown, make_blank_png_b64
from mind2web2.llm_client.base_client import LLMClient
from mind2web2.llm_client import LLMClient, OpenAIClient, AsyncOpenAIClient, AzureOpenAIClient, AsyncAzureOpenAIClient
from mind2web2.llm_client import calculate_api_cost
from mind2web2.llm_client.openai_client import AsyncOpenAIClient, OpenAIClient
from mind2web2.llm_client.azure_openai_client import AsyncAzureOpenAIClient, AzureOpenAIClient
from mind2web2.llm_client.bedrock_anthropic_client import AsyncBedrockAnthropicClient, BedrockAnthropicClient
from mind2web2.llm_client.api_cost import calculate_api_cost
from mind2web2.api_tools import tool_googlemap, tool_arxiv, tool_pdf
from mind2web2.api_tools import ArxivTool, GoogleMapsTool, PDFParser
from mind2web2.api_tools.tool_pdf import PDFParser, is_pdf, is_pdf_by_suffix
from mind2web2.prompts.cache_prompts import llm_extraction_prompts
from mind2web2 import BatchBrowserManager, Capture, HarnessError
from mind2web2.utils.cache_filesys import CacheFileSys, CacheIndexError, page_form, storage_key
from mind2web2.utils.url_tools import normalize_url_keep_case, page_form, storage_key
from mind2web2.utils.page_info_retrieval import Capture, detect_block
from mind2web2.crawl import detect_block
""".strip().splitlines()

USED_AS_SCRIPTS_DO = """
from mind2web2.api_tools import tool_googlemap
async def check(tool: tool_googlemap.GoogleMapsTool, client: LLMClient) -> None: ...
print(tool_googlemap.GoogleMapsTool.__name__)
"""

NO_NETWORK = """
import socket
def refuse(*_, **__):
    raise AssertionError("an import went to the network")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
"""


def fresh(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter in an empty folder, without settings."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_NETWORK + code],
        env={"PATH": "/nowhere", "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_every_import_line_works_without_keys_browser_and_network(tmp_path: Path):
    done = fresh("\n".join([*LINES, USED_AS_SCRIPTS_DO]), tmp_path)
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("GoogleMapsTool\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "module",
    sorted({line.split()[1] for line in LINES}),
)
def test_names_in_all_exist_and_are_unique(module: str):
    imported = __import__(module, fromlist=["__all__"])
    assert sorted(set(imported.__all__)) == sorted(imported.__all__)
    assert all(hasattr(imported, name) for name in imported.__all__)


def test_names_that_scripts_import_are_in_all():
    for line in LINES:
        _, module, _, names = line.split(maxsplit=3)
        imported = __import__(module, fromlist=["__all__"])
        assert set(names.replace(",", " ").split()) <= set(imported.__all__), line

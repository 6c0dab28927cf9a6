"""Compatibility package for task scripts of the public Mind2Web 2 toolkit, with that toolkit's names.

Gating, voting and scoring are the same as for native judges. Differences from the toolkit are documented in the
contract that the tests follow. The import needs no key, no browser and no network.
"""

from __future__ import annotations

import assay  # noqa: F401 - makes judges, cache and our other packages importable
from mind2web2.api_tools import ArxivTool, GoogleMapsTool, PDFParser
from mind2web2.eval_toolkit import EvaluatorConfig
from mind2web2.evaluator import (
    AggregationStrategy,
    Evaluator,
    Extractor,
    VerificationNode,
    Verifier,
    create_evaluator,
)
from mind2web2.llm_client import (
    AsyncAzureOpenAIClient,
    AsyncOpenAIClient,
    AzureOpenAIClient,
    ContextLengthError,
    HarnessError,
    JudgeConfig,
    JudgeContentError,
    JudgeError,
    LLMClient,
    OpenAIClient,
    calculate_api_cost,
)
from mind2web2.utils import (
    CacheFileSys,
    PageManager,
    PathConfig,
    cleanup_logger,
    create_logger,
    create_sub_logger,
    encode_image,
    encode_image_buffer,
    extract_doc_description,
    extract_doc_description_from_frame,
    load_eval_script,
    normalize_url_markdown,
    strip_extension,
    text_dedent,
)
from mind2web2.utils.page_info_retrieval import BatchBrowserManager, Capture

__all__ = [
    "AggregationStrategy",
    "ArxivTool",
    "AsyncAzureOpenAIClient",
    "AsyncOpenAIClient",
    "AzureOpenAIClient",
    "BatchBrowserManager",
    "CacheFileSys",
    "Capture",
    "ContextLengthError",
    "Evaluator",
    "EvaluatorConfig",
    "Extractor",
    "GoogleMapsTool",
    "HarnessError",
    "JudgeConfig",
    "JudgeContentError",
    "JudgeError",
    "LLMClient",
    "OpenAIClient",
    "PDFParser",
    "PageManager",
    "PathConfig",
    "VerificationNode",
    "Verifier",
    "calculate_api_cost",
    "cleanup_logger",
    "create_evaluator",
    "create_logger",
    "create_sub_logger",
    "encode_image",
    "encode_image_buffer",
    "extract_doc_description",
    "extract_doc_description_from_frame",
    "load_eval_script",
    "normalize_url_markdown",
    "strip_extension",
    "text_dedent",
]

"""Extractor and verifier, and a factory for a pair of them, under the public toolkit's names."""

from __future__ import annotations

from typing import Any

from cache.page_text.screenshot_parts import split_screenshot
from judges import tokenizers
from judges.llm.models import DEFAULT_MODEL
from judges.prompting.rendering import BinaryEvalResult
from judges.tokenizers import TEXT_ENCODING, TRUNCATION_MARKER
from mind2web2 import text_limits
from mind2web2.browser_managers import default_manager
from mind2web2.config import EvaluatorConfig
from mind2web2.evaluator_base import BaseEvaluator
from mind2web2.extracting import Extractor, empty_extraction
from mind2web2.llm_client.judge import HarnessError
from mind2web2.text_limits import count_tokens, truncate_to_tokens
from mind2web2.verifying import Verifier

__all__ = [
    "TEXT_ENCODING",
    "TRUNCATION_MARKER",
    "BaseEvaluator",
    "BinaryEvalResult",
    "EvaluatorConfig",
    "Extractor",
    "HarnessError",
    "Verifier",
    "count_tokens",
    "create_evaluator",
    "empty_extraction",
    "split_screenshot",
    "truncate_to_tokens",
]


_text_encoding = tokenizers.text_encoding
"""Returns the tokenizer for page texts. The name is that of the public toolkit, so that it can be replaced."""
text_limits.current_encoding = lambda: _text_encoding


def create_evaluator(
    *,
    client: Any,
    task_description: str,
    answer: str,
    global_cache: Any,
    global_semaphore: Any,
    logger: Any,
    default_model: str = DEFAULT_MODEL,
    extract_model: str | None = None,
    verify_model: str | None = None,
    config: EvaluatorConfig | None = None,
    browser_manager: Any = None,
) -> tuple[Extractor, Verifier]:
    """Return an extractor and a verifier that share pages and decisions."""
    shared: dict[str, Any] = {
        "client": client,
        "task_description": task_description,
        "answer": answer,
        "global_cache": global_cache,
        "global_semaphore": global_semaphore,
        "logger": logger,
        "config": config or EvaluatorConfig(),
        "browser_manager": default_manager() if browser_manager is None else browser_manager,
    }
    extractor = Extractor(**shared, model=extract_model or default_model)
    verifier = Verifier(**shared, model=verify_model or default_model)
    verifier.session = extractor.session
    return extractor, verifier

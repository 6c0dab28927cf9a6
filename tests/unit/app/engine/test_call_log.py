from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.engine.pipeline import AnswerPages, CallLog
from cache.blobs import BlobStore
from cache.capture_index import MemoryIndex
from cache.pages import PageCache
from judges.llm.client import LLMRequest
from judges.llm.images import DataURI, image_part
from judges.llm.observed import ObservedLLM
from judges.registry import Judge
from tests.fakes.llm import RuleLLM
from tests.fakes.runtimes import PagesByUrl

LARGE = {"role": "user", "content": [image_part(DataURI.of_jpeg(bytes(1_000_000)))]}


@pytest.mark.parametrize("has_space", [True, False])
async def test_result_has_no_call_log_if_the_disk_is_full(
    has_space: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    blobs = BlobStore.open("memory://")
    runtime: Any = SimpleNamespace(blobs=blobs, redactor=SimpleNamespace(redact=str))
    pages = AnswerPages(PageCache(PagesByUrl({}), blobs, MemoryIndex()))
    if not has_space:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with CallLog(runtime, pages, "res_1") as call_log:
        await ObservedLLM(RuleLLM(), call_log.observers).complete(LLMRequest(model="m", messages=(LARGE,)))
        stored = await call_log.store(Judge(task="t"))
    assert (stored is not None) is has_space

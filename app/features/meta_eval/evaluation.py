"""Measurement of a configured model on labelled claims, with the stored pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.engine.runtime import Runtime
from cache.capture import CaptureOutcome, Evidence
from cache.errors import NoEvidence
from judges.analysis.meta_eval.ask import JudgedItem, ask_all
from judges.analysis.meta_eval.items import Item
from judges.analysis.meta_eval.judge_agreement import JudgeAgreement, agreement_of_asked
from judges.llm.parameters import ParameterizedLLM
from judges.llm.providers import parse_model
from judges.llm.rejections import RejectionMonitor
from judges.verifier import Verifier


async def measure(
    runtime: Runtime, items: Sequence[Item], model: str, *, votes: int, done: Callable[[JudgedItem], None]
) -> JudgeAgreement:
    """Ask ``model`` (``provider/model``) about the usable items. No page is captured.

    Raises:
        ModelNotConfigured: the model does not exist or its API key is missing.
        LLMRejected: the provider refuses every request.
    """

    async def stored(page_id: str) -> Evidence:
        capture = await runtime.index.get(page_id)
        if capture is None:
            raise NoEvidence(page_id, CaptureOutcome.EMPTY, "this capture is not stored", gone=False, capture=None)
        return await runtime.pages.evidence(capture)

    client, name = runtime.models.client(model)
    watch = RejectionMonitor(client, name)
    asking = ParameterizedLLM(watch, runtime.settings.parameters, provider=parse_model(model).provider, model=name)
    judge = Verifier(asking, name, block_builder=runtime.block_builder, pages=runtime.page_preparer)
    asked = await ask_all(items, judge, stored=stored, votes=votes, done=done)
    if watch.refusal is not None:
        raise watch.refusal
    return agreement_of_asked(str(parse_model(model)), asked, votes=votes)

"""Base class of the public toolkit's extractor and verifier: arguments of the script, and reading a page."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache as once
from typing import Any
from weakref import WeakKeyDictionary

from cache.capture import Evidence, PageKind
from cache.errors import CacheError
from judges.errors import ExtractionFailed
from judges.extractor import ExtractorBase
from judges.llm.client import LLMClient
from judges.llm.models import DEFAULT_MODEL
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Style
from judges.tokenizers import TRUNCATION_MARKER
from judges.verifier import ClaimJudge
from mind2web2.api_tools.tool_pdf import PDFParser
from mind2web2.browser_managers import as_live_pages, default_manager
from mind2web2.config import EvaluatorConfig
from mind2web2.foreign_client import ForeignClient
from mind2web2.hosted_objects import HostedCache, HostedClient, HostedPages
from mind2web2.judging import ContentRules, DirectExtractor, DirectVerifier, with_text
from mind2web2.llm_client.judge import (
    HarnessError,
    JudgeConfig,
    JudgeError,
    JudgeUsage,
    current_scope,
)
from mind2web2.page_source import CachedPages, StoredPages
from mind2web2.semaphores import slot
from mind2web2.text_limits import count_tokens, truncate_to_tokens
from mind2web2.tool_faults import lose_page
from mind2web2.verification_tree import VerificationNode
from mind2web2.verify_options import page_addresses
from rubrics.verdict import CheckNote, Claim, Reason, Verdict

__all__ = ["BaseEvaluator"]

_log = logging.getLogger(__name__)


class PageImages(list[str]):
    """Images of a page in base64. ``split``: they are overlapping parts of one screenshot, from top to bottom."""

    split: bool = False


class BaseEvaluator:
    """Stores the arguments of a task script under the public names."""

    def __init__(
        self,
        *,
        client: Any,
        task_description: str,
        answer: str,
        global_cache: Any,
        global_semaphore: Any,
        logger: Any,
        model: str | None = DEFAULT_MODEL,
        config: EvaluatorConfig | None = None,
        browser_manager: Any = None,
    ) -> None:
        self.client = client
        self.task_description = task_description
        self.answer = answer
        self.cache = global_cache
        self.semaphore = global_semaphore
        self.logger: Any = _log if logger is None else logger
        self.MODEL_NAME: str = model or DEFAULT_MODEL
        self.config = config or EvaluatorConfig()
        self.browser_manager: Any = default_manager() if browser_manager is None else browser_manager
        self.pdf_parser = PDFParser()
        self.judge = judge_of(client)
        if self.judge is not None:
            self.MODEL_NAME = self.judge.model
        self.session = Session(
            client=client,
            cache=global_cache,
            semaphore=global_semaphore,
            logger=self.logger,
            config=self.config,
            browser_manager=self.browser_manager,
        )

    async def get_page_info(self, url: str) -> tuple[PageImages, str] | tuple[None, None]:
        """Return screenshots (base64 JPEG) and text of a page from the cache or the web, or (None, None).

        What the script decides after a fault is not judged.

        Raises:
            HarnessError: tokenizer, browser or cache cannot be used.
        """
        if not page_addresses([url]):
            return None, None
        try:
            with self.session.recorded_failure(f"the request of the page {url}"):
                page = await self.session.pages.whole(url)
        except CacheError as error:
            self.logger.warning("no evidence: %s", error)
            lose_page(error, self.session.scope)
            return None, None
        images = PageImages(base64.b64encode(shot).decode("ascii") for shot in page.screenshots)
        images.split = len(images) > 1 and page.capture.kind is not PageKind.PDF
        return images, page.text


_SECRET_BYTES = 32
_preparers: WeakKeyDictionary[asyncio.AbstractEventLoop, PagePreparer] = WeakKeyDictionary()


class Session:
    """Created from a script's arguments, or from the objects that the host passed in their place."""

    def __init__(
        self,
        *,
        client: Any,
        cache: Any,
        semaphore: Any,
        logger: logging.Logger,
        config: EvaluatorConfig,
        browser_manager: Any,
    ) -> None:
        self._config = config
        self._host = client if isinstance(client, HostedClient) else None
        self.scope = current_scope() if self._host is None else self._host.scope
        self.decisions = self.scope.decisions
        self._client_usage = usage_of(client) if self._host is None else None
        self._llm: LLMClient = (
            ForeignClient(client, lambda: slot(semaphore, "llm"), self.scope) if self._host is None else self._host.llm
        )
        self.pages: StoredPages
        if isinstance(cache, HostedCache):
            self.pages = HostedPages(cache, config=config, complete=self._host is None)
        else:
            self.pages = CachedPages(
                cache,
                as_live_pages(browser_manager, logger),
                capture_slot=lambda: slot(semaphore, "webpage"),
                config=config,
                before_load=self.scope.check,
            )

    def verifier(self, model: str, check: str) -> ClaimJudge:
        """Return a claim judge for ``model``. ``check`` names the claim in records. Needs a running event loop."""
        if self._host is not None:
            return self._host.claim_judge(model)
        return DirectVerifier(**self._own_judging(model, check))

    def extractor(self, model: str, check: str) -> ExtractorBase:
        """Return an extractor for ``model``. ``check`` names the extraction in records. Needs a running event loop."""
        if self._host is not None:
            return self._host.extractor_for(model)
        return DirectExtractor(**self._own_judging(model, check))

    def record_rejections(self, check: str, claim: Claim, verdict: Verdict) -> None:
        """Record the requests for a claim that the model of the service rejected. Own judges record theirs."""
        if self._host is None:
            return
        url = claim.sources[0] if claim.sources is not None and len(claim.sources) == 1 else None
        for vote in verdict.votes:
            if vote.fault is Reason.LLM_OUTPUT_UNUSABLE:
                self.scope.usage.add_rejection(check, url, vote.fault.value)
        for each in verdict.checks:
            if each.note is CheckNote.TOO_LONG:
                self.scope.usage.add_rejection(check, each.url, each.note.value)

    def record_rejected_extraction(self, name: str, url: str | None, error: ExtractionFailed) -> None:
        """Like ``record_rejections``, for an extraction."""
        if self._host is not None and error.cause_reason is Reason.LLM_OUTPUT_UNUSABLE:
            self.scope.usage.add_rejection(name, url, str(error))

    @contextmanager
    def recorded_failure(self, subject: str, node: VerificationNode | None = None) -> Iterator[None]:
        """Remember a ``JudgeError`` that the block raises, alone or in a group, and raise it alone.

        Also remember that the block has not ended, or that the script has cancelled it.

        Raises:
            JudgeError: the answer can have no result.
        """
        try:
            with self.decisions.pending(node):
                yield
        except asyncio.CancelledError:
            self.decisions.record_cancelled(subject)
            raise
        except JudgeError as error:
            self._record(error)
            raise
        except ExceptionGroup as group:
            found = judge_error_in(group)
            if found is None:
                raise
            self._record(found)
            raise found from group

    def _record(self, error: JudgeError) -> None:
        is_first = self.scope.failure is None
        self.scope.record(error)
        if is_first and isinstance(error, HarnessError) and self._client_usage is not None:
            self._client_usage.harness_failures.append(str(error))

    def _own_judging(self, model: str, check: str) -> dict[str, Any]:
        def reject(url: str | None, reason: str) -> None:
            for usage in (self.scope.usage, self._client_usage):
                if usage is not None:
                    usage.add_rejection(check, url, reason)

        return {
            "llm": self._llm,
            "model": model,
            "block_builder": _own_block_builder(),
            "pages": preparer_of_this_loop(),
            "style": Style.COMPAT,
            "content": ContentRules(max_shrinks=self._config.max_text_shrinks, shorten=self._shortened, reject=reject),
        }

    def _shortened(self, page: Evidence, times: int) -> Evidence:
        text = page.text.removesuffix(TRUNCATION_MARKER)
        return with_text(page, truncate_to_tokens(text, max(1, count_tokens(text) // 2**times)))


def judge_of(client: Any) -> JudgeConfig | None:
    """Return the judge of a client, or None if the client has none."""
    judge = getattr(client, "judge", None)
    return judge if isinstance(judge, JudgeConfig) else None


def usage_of(client: Any) -> JudgeUsage | None:
    """Return the record of a client's requests, or None if the client has none."""
    usage = getattr(client, "usage", None)
    return usage if isinstance(usage, JudgeUsage) else None


def judge_error_in(group: BaseExceptionGroup[Any]) -> JudgeError | None:
    """Return the first ``JudgeError`` in a group of exceptions, or None."""
    for error in group.exceptions:
        found = judge_error_in(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, JudgeError):
            return found
    return None


@once
def _own_block_builder() -> BlockBuilder:
    """Return the block_builder for runs outside of a service, with a random secret."""
    return BlockBuilder(os.urandom(_SECRET_BYTES))


def preparer_of_this_loop() -> PagePreparer:
    """Return the page preparer of the running event loop, shared so that its memory is bounded once."""
    loop = asyncio.get_running_loop()
    if loop not in _preparers:
        _preparers[loop] = PagePreparer(_own_block_builder(), limit_page=False)  # ``CachedPages`` limits pages
    return _preparers[loop]

"""Base class of the public toolkit's extractor and verifier: arguments of the script, and reading a page."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
from functools import cache as once
from typing import Any
from weakref import WeakKeyDictionary

from cache.errors import CacheError
from judges.extractor import ExtractorBase
from judges.llm.client import LLMClient
from judges.llm.families import DEFAULT_MODEL
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer, cut_text
from judges.verifier import ClaimJudge
from mind2web2.api_tools.tool_pdf import PDFParser
from mind2web2.browser_managers import as_live_pages, default_manager
from mind2web2.config import EvaluatorConfig
from mind2web2.decisions import Decisions
from mind2web2.foreign_client import ForeignClient
from mind2web2.hosted_objects import HostedCache, HostedClient, HostedPages, JudgeFactory, LocalJudgeFactory
from mind2web2.look_ahead import Scout
from mind2web2.page_source import CachedPages, PageSource
from mind2web2.semaphores import slot

__all__ = ["BaseEvaluator"]

_log = logging.getLogger(__name__)


class BaseEvaluator:
    """Stores the arguments of a judge script under the public names."""

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
        self.session = Session(
            client=client,
            cache=global_cache,
            semaphore=global_semaphore,
            logger=self.logger,
            config=self.config,
            browser_manager=self.browser_manager,
        )

    async def get_page_info(self, url: str) -> tuple[list[str], str] | tuple[None, None]:
        """Return screenshots (base64 JPEG) and text of a page from the cache or the web, or (None, None)."""
        try:
            page = await self.session.pages.whole(url)
        except CacheError as error:
            self.logger.warning("no evidence: %s", error)
            return None, None
        return [base64.b64encode(shot).decode("ascii") for shot in page.screenshots], cut_text(page.text)


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
        self.decisions = Decisions()
        self._host = client if isinstance(client, HostedClient) else None
        self._llm: LLMClient = (
            ForeignClient(client, lambda: slot(semaphore, "llm")) if self._host is None else self._host.llm
        )
        self.pages: PageSource
        if isinstance(cache, HostedCache):
            visible_pages = cache.pages if self._host is None else self._host.judging.visible_pages(cache.pages)
            self.pages = HostedPages(cache, visible_pages, config=config)
        else:
            self.pages = CachedPages(
                cache,
                as_live_pages(browser_manager, logger),
                capture_slot=lambda: slot(semaphore, "webpage"),
                config=config,
            )

    @property
    def scout(self) -> Scout | None:
        """Scout that starts claims early; only set in a scouting run."""
        return None if self._host is None else self._host.scout

    @property
    def scouted_by(self) -> Scout | None:
        """Scout of this run; only set in the real run of look-ahead."""
        return None if self._host is None else self._host.scouted_by

    def verifier(self, model: str) -> ClaimJudge:
        """Return a claim judge for ``model``. Needs a running event loop."""
        return self._judging().claim_judge(model)

    def extractor(self, model: str) -> ExtractorBase:
        """Return an extractor for ``model``. Needs a running event loop."""
        return self._judging().extractor_for(model)

    def _judging(self) -> JudgeFactory:
        if self._host is not None:
            return self._host.judging
        return LocalJudgeFactory(llm=self._llm, block_builder=_own_block_builder(), preparer=_preparer_of_this_loop())


@once
def _own_block_builder() -> BlockBuilder:
    """Return the block_builder for runs outside of a service, with a random secret."""
    return BlockBuilder(os.urandom(_SECRET_BYTES))


def _preparer_of_this_loop() -> PagePreparer:
    """Return the page preparer of the running event loop, shared so that its memory is bounded once."""
    loop = asyncio.get_running_loop()
    if loop not in _preparers:
        _preparers[loop] = PagePreparer(_own_block_builder())
    return _preparers[loop]

"""State shared by the evaluators of one run: model, pages and ledger of decisions."""

from __future__ import annotations

import asyncio
import logging
import os
from functools import cache as once
from typing import Any
from weakref import WeakKeyDictionary

from judges.extractor import ExtractorBase
from judges.llm.client import LLMClient
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.verifier import ClaimJudge
from mind2web2.browser_sharing import as_live_pages
from mind2web2.config import EvaluatorConfig
from mind2web2.foreign_client import ForeignClient
from mind2web2.hosting import HostedCache, HostedClient, HostedPages, JudgeFactory, LocalJudgeFactory
from mind2web2.ledger import Decisions
from mind2web2.look_ahead import Scout
from mind2web2.page_source import CachedPages, PageSource
from mind2web2.semaphores import slot

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
        self.ledger = Decisions()
        self._host = client if isinstance(client, HostedClient) else None
        self._llm: LLMClient = (
            ForeignClient(client, lambda: slot(semaphore, "llm")) if self._host is None else self._host.llm
        )
        self.pages: PageSource
        if isinstance(cache, HostedCache):
            shown = cache.pages if self._host is None else self._host.judging.shown(cache.pages)
            self.pages = HostedPages(cache, shown, config=config)
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
        return self._judging().value_reader(model)

    def _judging(self) -> JudgeFactory:
        if self._host is not None:
            return self._host.judging
        return LocalJudgeFactory(llm=self._llm, separator=_own_separator(), preparer=_preparer_of_this_loop())


@once
def _own_separator() -> BlockBuilder:
    """Return the separator for runs outside of a service, with a random secret."""
    return BlockBuilder(os.urandom(_SECRET_BYTES))


def _preparer_of_this_loop() -> PagePreparer:
    """Return the page preparer of the running event loop, shared so that its memory is bounded once."""
    loop = asyncio.get_running_loop()
    if loop not in _preparers:
        _preparers[loop] = PagePreparer(_own_separator())
    return _preparers[loop]

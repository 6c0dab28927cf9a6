"""Base class of the public toolkit's extractor and verifier: arguments of the script, and reading a page."""

from __future__ import annotations

import base64
import logging
from typing import Any

from cache.errors import CacheError
from judges.llm.families import DEFAULT_MODEL
from judges.prompting.page_view import cut_text
from mind2web2.api_tools.tool_pdf import PDFParser
from mind2web2.browser_sharing import default_manager
from mind2web2.config import EvaluatorConfig
from mind2web2.session import Session

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

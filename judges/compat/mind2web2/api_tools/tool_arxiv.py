"""arXiv search for task scripts, by id or title."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from judges.late_libraries import arxiv
from mind2web2.tool_faults import recorded_arxiv_fault

__all__ = ["ArxivTool"]

_FIELDS = (
    "entry_id",
    "updated",
    "published",
    "title",
    "authors",
    "summary",
    "comment",
    "journal_ref",
    "doi",
    "primary_category",
    "categories",
    "links",
    "pdf_url",
)
_QUERY_URL = "https://export.arxiv.org/api/query"


class ArxivTool:
    """Searches arXiv, one request at a time and within arXiv's rate limit."""

    def __init__(
        self,
        page_size: int = 100,
        *,
        query_url: str = _QUERY_URL,
        delay_s: float = 3.0,
        retries: int = 2,
        timeout_s: float = 20.0,
    ) -> None:
        """``delay_s`` is the delay between two requests, ``timeout_s`` the timeout of one request."""
        from mind2web2.api_session import api_session

        self._arxiv = arxiv
        self.client: Any = arxiv.Client(page_size=page_size, delay_seconds=delay_s, num_retries=retries)
        self.client.query_url_format = query_url + "?{}"
        # The library has no setting for a timeout or a session.
        self.client._session = api_session()
        self.client._session.request = partial(self.client._session.request, timeout=timeout_s)
        self._lock = threading.Lock()

    @staticmethod
    def is_arxiv_pdf_link(link: str) -> bool:
        """Return whether a link leads to a PDF on arXiv."""
        return "arxiv.org/pdf" in link

    @staticmethod
    def get_arxiv_id_from_pdf_link(link: str) -> str:
        """Return the id in a link to a PDF, with its version if the link has one.

        >>> ArxivTool.get_arxiv_id_from_pdf_link("https://arxiv.org/pdf/2301.00001v2.pdf")
        '2301.00001v2'
        """
        return urlsplit(link).path.rstrip("/").rsplit("/", 1)[-1].removesuffix(".pdf")

    async def search_arxiv_by_id(self, id: str) -> dict[str, Any] | None:
        """Return the paper with this id, or None.

        Raises:
            arxiv.ArxivError: the request failed.
        """
        try:
            return await self._first(self._arxiv.Search(id_list=[id], max_results=1))
        except self._arxiv.HTTPError as error:
            if error.status == HTTPStatus.BAD_REQUEST:  # arXiv's response to a malformed id
                return None
            raise

    async def search_arxiv_by_title(self, title: str) -> dict[str, Any] | None:
        """Return the first search result for this title, or None.

        Raises:
            arxiv.ArxivError: the request failed.
        """
        quoted = title.replace('"', " ").strip()
        return await self._first(self._arxiv.Search(query=f'ti:"{quoted}"', max_results=1))

    async def _first(self, search: Any) -> dict[str, Any] | None:
        with recorded_arxiv_fault():
            return await asyncio.to_thread(self._ask, search)

    def _ask(self, search: Any) -> dict[str, Any] | None:
        with self._lock:
            paper = next(iter(self.client.results(search)), None)
        return None if paper is None else {name: getattr(paper, name) for name in _FIELDS}

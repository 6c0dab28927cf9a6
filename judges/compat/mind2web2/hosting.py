"""What the service puts in the place of a judge script's client and cache.

The script sees the public interfaces; the evaluators of this package recognise these objects and go straight to the
service's model and page cache, which hold their own limits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from cache.capture import Capture, PageKind
from cache.errors import BlobError
from cache.evidence import Evidence
from cache.page_text.tiles import join_tiles
from cache.urls import canonical_key
from judges.extractor import Extractor, ValueReader
from judges.llm.client import LLMClient
from judges.prompting.blocks import Separator
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Style
from judges.settling import Progress
from judges.verifier import ClaimJudge
from mind2web2.asking import StrictVerifier
from mind2web2.config import EvaluatorConfig
from mind2web2.llm_client.provider_client import Response, as_request, respond
from mind2web2.look_ahead import Scout
from mind2web2.page_facts import PageFacts
from mind2web2.page_keys import forgiving_key, layout_key
from mind2web2.page_source import StoredPages
from mind2web2.utils.cache_filesys import CacheFileSys, PageType


class EvidenceSource(Protocol):
    """Where the service's evidence comes from: its page cache, or whoever keeps account of what is looked at there."""

    async def evidence_for(self, url: str) -> Evidence: ...


class Judging(Protocol):
    """How one run of a script has claims settled and values read, each with a model that it names."""

    def claim_judge(self, model: str) -> ClaimJudge: ...

    def value_reader(self, model: str) -> ValueReader: ...

    def shown(self, pages: EvidenceSource) -> EvidenceSource:
        """Those pages as the two above want them: whole, or only so far as they are needed to name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingHere:
    """Judges in this process. ``separator`` and ``preparer`` are the installation's own."""

    llm: LLMClient
    separator: Separator
    preparer: PagePreparer

    def claim_judge(self, model: str) -> ClaimJudge:
        return StrictVerifier(self.llm, model, separator=self.separator, pages=self.preparer, style=Style.COMPAT)

    def value_reader(self, model: str) -> ValueReader:
        return Extractor(self.llm, model, separator=self.separator, pages=self.preparer, style=Style.COMPAT)

    def shown(self, pages: EvidenceSource) -> EvidenceSource:
        return pages


class Bodies(Protocol):
    """Stored bodies by their hash, as ``BlobStore`` has them."""

    async def get(self, sha256: str) -> bytes: ...


class HostedEvaluator(Protocol):
    """What the host needs of the evaluators a script makes."""

    def cut_short(self, why: str) -> None:
        """Nothing more will be decided: what is still open is not judged."""

    @property
    def extraction_failed(self) -> bool: ...

    def get_summary(self) -> dict[str, Any]: ...

    def let_go(self) -> None:
        """The run is over: hold on to nothing that holds on to this."""


class HostedClient:
    """The service's model as a script's client. ``evaluators`` are those the script has initialized with it."""

    provider = "hosted"
    is_async = True

    def __init__(
        self,
        *,
        llm: LLMClient,
        judging: Judging,
        progress: Progress | None = None,
        scout: Scout | None = None,
        scouted_by: Scout | None = None,
    ) -> None:
        """``judging`` makes what settles claims and reads values. ``progress`` is told leaves done and known.

        With look-ahead the scouting run has a ``scout``, and the real run is ``scouted_by`` it.
        """
        self.llm = llm
        self.judging = judging
        self.scout = scout
        self.scouted_by = scouted_by
        self.progress = progress
        self.evaluators: list[HostedEvaluator] = []
        self._asked: Counter[str] = Counter()

    async def async_response(self, *, count_token: bool = False, **keywords: Any) -> Response:
        """Ask with the keywords of a chat completion, as ``LLMClient.async_response`` does.

        Raises:
            judges.errors.LLMError: there was no usable reply.
        """
        request = as_request(**keywords)
        # Equal calls of one run are told apart by their number, so that a rerun finds the same stored replies.
        key = f"{request.model} {request.schema} {request.messages} {request.params}"
        number = self._asked[key]
        self._asked[key] += 1
        return await respond(self.llm, replace(request, vote=number), count_token=count_token)

    @property
    def client(self) -> HostedProvider:
        """What stands for the provider's own client."""
        return HostedProvider(self)

    def let_go(self) -> None:
        """The run is over: forget the evaluators, which hold this client and the pages they have read.

        In a circle these would stay in memory until the garbage collector comes round to them.
        """
        for evaluator in self.evaluators:
            evaluator.let_go()
        self.evaluators.clear()

    def response(self, **_: Any) -> Response:
        """Not for this client: it is asynchronous."""
        raise ValueError("this client is asynchronous: await async_response")


@dataclass(frozen=True, slots=True)
class HostedProvider:
    """The service's model as the asynchronous client of a provider."""

    _client: HostedClient

    async def response(self, *, count_token: bool = False, **request: Any) -> Response:
        """As ``AsyncProviderClient.response``; raises the same."""
        return await self._client.async_response(count_token=count_token, **request)


class HostedCache(CacheFileSys):
    """The captured pages of one answer, read from the service; pages a script puts here are its own."""

    def __init__(self, folder: Path, *, pages: EvidenceSource, blobs: Bodies, captures: Iterable[Capture]) -> None:
        """``folder`` takes what the script puts, and lives as long as its run."""
        super().__init__(folder)
        self.pages = pages
        self._blobs = blobs
        self._captured: dict[str, Capture] = {}
        for capture in captures:
            if capture.is_evidence:
                self._captured.setdefault(canonical_key(capture.url), capture)
        self._forgiving = {forgiving_key(capture.url): capture for capture in self._captured.values()}

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        capture = self.captured(url)
        if capture is None or _type_of(capture) != "web":
            return super().get_web(url, get_screenshot)
        text = self._body(capture, "text") or b""
        roles = capture.screenshot_roles if get_screenshot else ()
        return text.decode("utf-8"), join_tiles([self._body(capture, role) or b"" for role in roles])

    def get_pdf(self, url: str) -> bytes:
        capture = self.captured(url)
        if capture is None or _type_of(capture) != "pdf":
            return super().get_pdf(url)
        return self._body(capture, "pdf") or b""

    def has(self, url: str) -> PageType | None:
        capture = self.captured(url)
        return super().has(url) if capture is None else _type_of(capture)

    def has_web(self, url: str) -> bool:
        return self.has(url) == "web"

    def has_pdf(self, url: str) -> bool:
        return self.has(url) == "pdf"

    def get_all_urls(self) -> list[str]:
        return [*(layout_key(capture.url) for capture in self._captured.values()), *super().get_all_urls()]

    def summary(self) -> dict[str, int]:
        types = [self.has(url) for url in self.get_all_urls()]
        return {"total_urls": len(types), "web_pages": types.count("web"), "pdf_pages": types.count("pdf")}

    def captured(self, url: str) -> Capture | None:
        """The cited page of this URL, however it is spelled; None where it has none or the script put its own."""
        if super().has(url) is not None:
            return None
        return self._captured.get(canonical_key(url)) or self._forgiving.get(forgiving_key(url))

    def _body(self, capture: Capture, role: str) -> bytes | None:
        """A stored body, although the caller cannot await: the store is asked from another thread's loop."""
        blob = capture.blobs.get(role)
        if blob is None:
            return None
        with ThreadPoolExecutor(1, thread_name_prefix="mind2web2-page") as thread:
            try:
                return thread.submit(lambda: asyncio.run(self._blobs.get(blob.sha256))).result()
            except BlobError as error:
                raise KeyError(capture.url) from error


class HostedPages(StoredPages):
    """The service's evidence, and before it whatever the script has put into its cache itself."""

    def __init__(self, cache: HostedCache, pages: EvidenceSource, *, config: EvaluatorConfig) -> None:
        super().__init__(_PutByScript(cache), config=config)
        self._cited = cache
        self._pages = pages

    async def _look(self, url: str, address: str) -> Evidence:
        # A cited page is found by every spelling that the public look-up forgives, not only by those we take for equal.
        cited = self._cited.captured(url)
        return await self._pages.evidence_for(address if cited is None else cited.url)


class _PutByScript:
    """Only what a script has put into its cache."""

    def __init__(self, cache: HostedCache) -> None:
        self._cache = cache

    def has(self, url: str) -> PageType | None:
        return CacheFileSys.has(self._cache, url)

    def facts(self, url: str) -> PageFacts | None:
        return CacheFileSys.facts(self._cache, url)

    def get_web(self, url: str) -> tuple[str, bytes | None]:
        return CacheFileSys.get_web(self._cache, url)

    def get_pdf(self, url: str) -> bytes:
        return CacheFileSys.get_pdf(self._cache, url)


def _type_of(capture: Capture) -> PageType:
    return "pdf" if capture.kind is PageKind.PDF and "pdf" in capture.blobs else "web"

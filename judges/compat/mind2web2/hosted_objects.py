"""Client and cache objects that the service passes to a judge script.

The script sees the public interfaces. The evaluators of this package recognise these objects and use the service's
model and page cache directly, which apply their own limits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from cache.capture import Capture, Evidence, PageKind
from cache.errors import BlobError, NoEvidence
from cache.image_jobs import run_image_job
from cache.page_text.screenshot_parts import DEFAULT_LIMITS
from cache.page_text.tiles import join_tiles
from cache.urls import canonical_key
from judges.errors import JudgeError, LLMError
from judges.extractor import Extractor, ExtractorBase
from judges.jury import judge_named
from judges.llm.client import LLMClient
from judges.llm.parameters import TOOLKIT_DEFAULTS
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Style
from judges.settling import Progress
from judges.verifier import ClaimJudge
from judges.voting import members_in
from mind2web2.config import EvaluatorConfig
from mind2web2.judging import StrictVerifier
from mind2web2.llm_client.judge import AnswerScope, JudgeConfig, JudgeUsage
from mind2web2.llm_client.provider_client import Response, as_judge_error, as_request, as_response
from mind2web2.look_ahead import Scout
from mind2web2.page_keys import lenient_key, storage_key
from mind2web2.page_metadata import PageMetadata
from mind2web2.page_source import StoredPages
from mind2web2.tool_faults import lose_page
from mind2web2.utils.cache_filesys import CacheFileSys, PageType


class EvidenceSource(Protocol):
    """Source of evidence by URL: the service's page cache, or a wrapper that records accesses."""

    async def evidence_for(self, url: str) -> Evidence: ...


class JudgeFactory(Protocol):
    """Factory of claim judges and extractors for one run of a script."""

    def claim_judge(self, model: str) -> ClaimJudge: ...

    def extractor_for(self, model: str) -> ExtractorBase: ...

    def visible_pages(self, pages: EvidenceSource) -> EvidenceSource:
        """Return ``pages`` as these judges need them: complete, or only references to pages in the service."""


def judge_of_run(model: str, run_model: str) -> str:
    """Return the judge for claims that a script wants ``model`` to judge, in a run with ``run_model``.

    The default models of the public toolkit stand for the model of the run. A single model replaces them in requests.
    """
    is_jury = len(members_in(run_model)[0]) > 1
    return run_model if is_jury and model in TOOLKIT_DEFAULTS else model


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalJudgeFactory:
    """Judges in this process. ``block_builder`` and ``preparer`` belong to the installation, ``model`` to the run."""

    llm: LLMClient
    model: str
    block_builder: BlockBuilder
    preparer: PagePreparer

    def claim_judge(self, model: str) -> ClaimJudge:
        return judge_named(judge_of_run(model, self.model), lambda name: StrictVerifier(**self._arguments(name)))

    def extractor_for(self, model: str) -> ExtractorBase:
        return Extractor(**self._arguments(model))

    def visible_pages(self, pages: EvidenceSource) -> EvidenceSource:
        return pages

    def _arguments(self, model: str) -> dict[str, Any]:
        return {
            "llm": self.llm,
            "model": model,
            "block_builder": self.block_builder,
            "pages": self.preparer,
            "style": Style.COMPAT,
        }


class Bodies(Protocol):
    """Store of bodies by SHA-256, as ``BlobStore``."""

    async def get(self, sha256: str) -> bytes: ...


class HostedEvaluator(Protocol):
    """Interface that the host needs of a script's evaluators."""

    def interrupt(self, explanation: str) -> None:
        """End the run: leaves that are still open are not judged, for this reason."""

    @property
    def extraction_failed(self) -> bool: ...

    def get_summary(self) -> dict[str, Any]: ...

    def release(self) -> None:
        """Drop references to the host after the run."""


class HostedClient:
    """Model client for a script that uses the service's model. ``evaluators`` are those initialized with it."""

    provider = "hosted"
    is_async = True
    judge: JudgeConfig | None = None
    """The service replaces the parameters of requests, and names them in the result."""

    def __init__(
        self,
        *,
        llm: LLMClient,
        judging: JudgeFactory,
        progress: Progress | None = None,
        scout: Scout | None = None,
        scouted_by: Scout | None = None,
    ) -> None:
        """Create a client.

        Args:
            judging: Factory of claim judges and extractors.
            progress: Called with the numbers of settled and known leaves.
            scout: Set for the scouting run of look-ahead.
            scouted_by: Set for the real run of look-ahead.
        """
        self.llm = llm
        self.judging = judging
        self.scout = scout
        self.scouted_by = scouted_by
        self.progress = progress
        self.scope = AnswerScope()
        self.evaluators: list[HostedEvaluator] = []
        self._request_counts: Counter[str] = Counter()

    async def async_response(self, *, count_token: bool = False, **keywords: Any) -> Response:
        """Send a request with the arguments of a chat completion, like ``LLMClient.async_response``.

        If there is no reply, what the script decides afterwards is not judged, even if it ignores the error.

        Raises:
            JudgeError: there is no usable reply. Its cause is the error of the service.
        """
        request = as_request(**keywords)
        # Equal calls of one run are numbered, so that a rerun finds the same cached replies.
        key = f"{request.model} {request.schema} {request.messages} {request.params}"
        number = self._request_counts[key]
        self._request_counts[key] += 1
        try:
            reply = await self.llm.complete(replace(request, vote=number))
        except LLMError as error:
            self.scope.lose_request(error)
            raise as_judge_error(error) from error
        except JudgeError as error:
            self.scope.lose_request(error)
            raise
        return as_response(reply, count_token=count_token)

    @property
    def usage(self) -> JudgeUsage:
        """Rejected requests. The service counts requests and tokens."""
        return self.scope.usage

    @property
    def client(self) -> HostedProvider:
        """Object in place of the provider's own client."""
        return HostedProvider(self)

    def release(self) -> None:
        """Drop the evaluators after the run. They reference this client and the pages they have read.

        Otherwise the reference cycle would keep the pages in memory until the next garbage collection.
        """
        for evaluator in self.evaluators:
            evaluator.release()
        self.evaluators.clear()

    def response(self, **_: Any) -> Response:
        """Raise ValueError: this client is asynchronous."""
        raise ValueError("this client is asynchronous: use `await client.async_response(...)`")


@dataclass(frozen=True, slots=True)
class HostedProvider:
    """The service's model in the form of a provider's asynchronous client."""

    _client: HostedClient

    async def response(self, *, count_token: bool = False, **request: Any) -> Response:
        """Like ``AsyncProviderClient.response``, with the same errors."""
        return await self._client.async_response(count_token=count_token, **request)


class HostedCache(CacheFileSys):
    """Page cache of one answer: captures of the service, plus pages that the script stores."""

    def __init__(self, folder: Path, *, pages: EvidenceSource, blobs: Bodies, captures: Iterable[Capture]) -> None:
        """``folder`` is for pages that the script stores. It must exist for the whole run."""
        super().__init__(folder)
        self.pages = pages
        self._blobs = blobs
        self._captured: dict[str, Capture] = {}
        self._failed_captures: dict[str, Capture] = {}
        for capture in captures:
            by_url = self._captured if capture.is_evidence else self._failed_captures
            by_url.setdefault(canonical_key(capture.url), capture)
        self._by_lenient_key = {_lenient_key(capture.url): capture for capture in self._captured.values()}

    @property
    def has_stored_pages(self) -> bool:
        """Whether the script has stored pages."""
        return bool(self._types)

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        capture = self.captured(url)
        if capture is None or _type_of(capture) != "web":
            self._record_failed_capture(url)
            return super().get_web(url, get_screenshot)
        text = self._body(capture, "text") or b""
        return text.decode("utf-8"), join_tiles(self.screenshots(capture)) if get_screenshot else None

    def screenshots(self, capture: Capture) -> list[bytes]:
        """Return the captured screenshots of a page. Blocks; raises KeyError if they cannot be read."""
        return [self._body(capture, role) or b"" for role in capture.screenshot_names]

    def get_pdf(self, url: str) -> bytes:
        capture = self.captured(url)
        if capture is None or _type_of(capture) != "pdf":
            self._record_failed_capture(url)
            return super().get_pdf(url)
        return self._body(capture, "pdf") or b""

    def has(self, url: str) -> PageType | None:
        capture = self.captured(url)
        if capture is not None:
            return _type_of(capture)
        self._record_failed_capture(url)
        return super().has(url)

    def has_web(self, url: str) -> bool:
        return self.has(url) == "web"

    def has_pdf(self, url: str) -> bool:
        return self.has(url) == "pdf"

    def lookup(self, url: str, ignore_case: bool = True, follow_redirects: bool = True) -> str | None:
        capture = self.captured(url)
        return super().lookup(url, ignore_case, follow_redirects) if capture is None else _stored_url(capture)

    def get_all_urls(self) -> list[str]:
        return [*map(_stored_url, self._captured.values()), *super().get_all_urls()]

    def summary(self) -> dict[str, int]:
        types = [self.has(url) for url in self.get_all_urls()]
        return super().summary() | {
            "total_urls": len(types),
            "web_pages": types.count("web"),
            "pdf_pages": types.count("pdf"),
        }

    def captured(self, url: str) -> Capture | None:
        """Return the capture of a cited page, in any spelling of its URL.

        None if there is none, or if the script stored its own page for this URL.
        """
        if super().has(url) is not None:
            return None
        return self._captured.get(canonical_key(url)) or self._by_lenient_key.get(_lenient_key(url))

    def _record_failed_capture(self, url: str) -> None:
        """Record that the script looks for a page whose capture failed. What it then decides is not judged."""
        failed = self._failed_captures.get(canonical_key(url))
        if failed is not None and super().has(url) is None:
            lose_page(NoEvidence(url, failed.outcome, failed.detail, gone=failed.gone, capture=failed))

    def _body(self, capture: Capture, role: str) -> bytes | None:
        """Return a stored body. Runs an event loop in another thread, because the caller is synchronous."""
        blob = capture.blobs.get(role)
        if blob is None:
            return None
        with ThreadPoolExecutor(1, thread_name_prefix="mind2web2-page") as thread:
            try:
                return thread.submit(lambda: asyncio.run(self._blobs.get(blob.sha256))).result()
            except BlobError as error:
                lose_page(error)
                raise KeyError(capture.url) from error


class HostedPages(StoredPages):
    """Pages of a run: those that the script stored in its cache, then the service's."""

    def __init__(self, cache: HostedCache, pages: EvidenceSource, *, config: EvaluatorConfig) -> None:
        super().__init__(_PagesStoredByScript(cache), config=config)
        self._cited = cache
        self._pages = pages

    async def _find(self, url: str) -> Evidence:
        # Without a thread for the files of the cache: usually, the script has stored none.
        return await (super()._find(url) if self._cited.has_stored_pages else self._from_web(url))

    async def whole(self, url: str) -> Evidence:
        """Like ``StoredPages.whole``, within the limits of the config, which the service's pages are not yet."""
        page = await super().whole(url)
        shots = page.screenshots
        if not page.in_parts or self._limits() != DEFAULT_LIMITS:
            captured = await asyncio.to_thread(self._cited.screenshots, page.capture) if page.in_parts else shots
            shots = await run_image_job(super()._shown_screenshots, captured, page.capture.kind)
        return replace(page, text=await asyncio.to_thread(super()._shown_text, page.text), screenshots=shots)

    def _shown_screenshots(self, shots: Sequence[bytes], kind: PageKind) -> tuple[bytes, ...]:
        return tuple(shots)  # the service limits the pages that it shows

    def _shown_text(self, text: str) -> str:
        return text

    async def _look(self, url: str, address: str) -> Evidence:
        # The public look-up ignores more spelling differences of a cited URL than ``canonical_key`` does.
        cited = self._cited.captured(url)
        return await self._pages.evidence_for(address if cited is None else cited.url)


class _PagesStoredByScript:
    """View of a cache that contains only the pages stored by the script."""

    def __init__(self, cache: HostedCache) -> None:
        self._cache = cache

    def has(self, url: str) -> PageType | None:
        return CacheFileSys.has(self._cache, url)

    def metadata(self, url: str) -> PageMetadata | None:
        return CacheFileSys.metadata(self._cache, url)

    def get_web(self, url: str) -> tuple[str, bytes | None]:
        return CacheFileSys.get_web(self._cache, url)

    def get_pdf(self, url: str) -> bytes:
        return CacheFileSys.get_pdf(self._cache, url)


def _stored_url(capture: Capture) -> str:
    return storage_key(capture.url)


def _lenient_key(url: str) -> str:
    return lenient_key(storage_key(url)).lower()


def _type_of(capture: Capture) -> PageType:
    return "pdf" if capture.kind is PageKind.PDF and "pdf" in capture.blobs else "web"

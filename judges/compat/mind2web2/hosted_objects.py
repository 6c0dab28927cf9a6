"""Client and cache objects that a task script gets if the service runs it.

The script sees the public interfaces. The evaluators of this package recognise these objects and call the service,
which has the model, the prompts and the pages, and applies their limits.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from cache.capture import Capture, Evidence, PageKind
from cache.errors import BlobError, NoEvidence
from cache.image_jobs import run_image_job
from cache.page_text.screenshot_parts import DEFAULT_LIMITS, join_tiles
from cache.urls import canonical_key
from judges.errors import JudgeError, LLMError
from judges.extractor import ExtractorBase
from judges.isolation.remote import RemoteClaimJudge, RemoteExtractor, RemoteModel, RemotePages, ServiceCalls
from judges.isolation.serialization import Content, from_base64, from_json_value
from judges.llm.parameters import TOOLKIT_DEFAULTS
from judges.prompting.rendering import Style
from judges.verifier import ClaimJudge, judge_named
from judges.voting import members_in
from mind2web2.config import EvaluatorConfig
from mind2web2.llm_client.judge import AnswerScope, JudgeConfig, JudgeUsage
from mind2web2.llm_client.provider_client import Response, as_judge_error, as_request, as_response
from mind2web2.page_keys import file_stems, storage_key
from mind2web2.page_metadata import PageMetadata
from mind2web2.page_source import StoredPage, StoredPages
from mind2web2.task_pages import PageListing, type_of
from mind2web2.tool_faults import lose_page
from mind2web2.utils.cache_filesys import (
    FAILURES_FILE,
    INDEX_FILE,
    REDIRECTS_FILE,
    REQUIRED_FILES,
    CacheFileSys,
    PageType,
    StoredUrl,
)


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

    def __init__(self, calls: ServiceCalls, *, answer: str, model: str) -> None:
        """``answer`` is the text that the service already has, ``model`` the judge of the run."""
        self.llm = RemoteModel(calls)
        self.scope = AnswerScope()
        self.evaluators: list[HostedEvaluator] = []
        self._calls = calls
        self._answer = answer
        self._model = model
        self._request_counts: Counter[str] = Counter()

    def claim_judge(self, model: str) -> ClaimJudge:
        """Return a claim judge for a model that the script names.

        The default models of the public toolkit stand for the model of the run, which replaces them in requests. Here,
        only the name of a jury replaces them.
        """
        is_jury = len(members_in(self._model)) > 1
        return judge_named(
            self._model if is_jury and model in TOOLKIT_DEFAULTS else model,
            lambda name: RemoteClaimJudge(self._calls, name, answer=self._answer, style=Style.COMPAT),
        )

    def extractor_for(self, model: str) -> ExtractorBase:
        """Return an extractor for a model that the script names."""
        return RemoteExtractor(self._calls, model, answer=self._answer, style=Style.COMPAT)

    def report_progress(self, done: int, total: int) -> None:
        """Report the numbers of settled and known leaves."""
        self._calls.notify_progress(done, total)

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
        except (JudgeError, asyncio.CancelledError) as error:
            self.scope.lose_request(error)
            raise
        return as_response(reply, count_token=count_token)

    @property
    def usage(self) -> JudgeUsage:
        """Rejected requests. The service counts requests and tokens."""
        return self.scope.usage

    @property
    def client(self) -> SimpleNamespace:
        """Object in place of the provider's own client. Its ``response`` is ``async_response``."""
        return SimpleNamespace(response=self.async_response)

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


class RemoteTaskPages(RemotePages):
    """``TaskPages`` of the service. Code that reads the page cache cannot await."""

    def __init__(self, calls: ServiceCalls) -> None:
        super().__init__(calls)
        self._captures: dict[str, Capture | None] = {}

    def listing(self) -> PageListing:
        """Return all pages that the script finds now."""
        listing: PageListing = from_json_value(self._calls.call_blocking("page_listing"), PageListing)
        return listing

    def read(self, key: str) -> Capture | None:
        """Return the capture of a listed page, and record that the script has found it."""
        if key not in self._captures:
            reply = self._calls.call_blocking("page_capture", key=key)
            self._captures[key] = from_json_value(reply, Capture | None)
        return self._captures[key]

    def read_all(self) -> None:
        """Record that the script has read which pages and failures there are."""
        self._calls.call_blocking("all_pages_read")

    def read_failures(self) -> None:
        """Record that the script has read the recorded failures."""
        self._calls.call_blocking("failures_read")

    def body(self, sha256: str) -> bytes:
        """Return a stored body. Raises BlobError if it is not available."""
        return from_base64(self._calls.call_blocking("evidence", sha256=sha256, content=Content.BODY))


class HostedCache(CacheFileSys):
    """Page cache of one run: the pages that the service has for it, plus pages that the script stores.

    The service's pages are listed when the script first looks for one, and their bodies are read on request.
    """

    def __init__(self, folder: Path, pages: RemoteTaskPages) -> None:
        """``folder`` is for pages that the script stores. It must exist for the whole run."""
        self.pages = pages
        self._own: set[str] = set()
        """Keys of the pages that the script has stored."""
        self._listed: dict[str, PageType] | None = None
        """Pages of the service that the script has neither replaced nor removed. None: not listed yet."""
        self._failed_captures: dict[str, Capture] = {}
        super().__init__(folder)

    @property
    def has_stored_pages(self) -> bool:
        """Whether the script has stored pages."""
        return bool(self._own)

    def own_key(self, url: str) -> str | None:
        """Return the key of a page that the script has stored."""
        key = super()._find(url)
        return key if key in self._own else None

    def captured_later(self, capture: Capture) -> None:
        """List a page that was captured for a claim."""
        if self._listed is not None and super()._find(capture.url) is None:
            self._list({storage_key(capture.url): type_of(capture)}, {}, {})

    def get_all_urls(self) -> list[str]:
        self._open()
        self.pages.read_all()
        for failed in self._failed_captures.values():
            self._find(failed.url)  # what the script decides from a list without this page is not judged
        return super().get_all_urls()

    def summary(self) -> dict[str, int]:
        self._open()
        self.pages.read_all()
        return super().summary()

    def redirects(self) -> dict[str, str]:
        self._open()
        self.pages.read_all()
        return super().redirects()

    def failure_url(self, url: str) -> str | None:
        self._open()
        if self._failures:
            self.pages.read_failures()
        return super().failure_url(url)

    def failures(self) -> dict[str, dict[str, Any]]:
        self._open()
        self.pages.read_failures()
        return super().failures()

    def remove(self, url: str) -> bool:
        self._open()
        return super().remove(url)

    def clear(self) -> None:
        self._open()
        super().clear()

    def screenshots(self, capture: Capture) -> list[bytes]:
        """Return the captured screenshots of a page. Blocks; raises KeyError if they cannot be read."""
        return [self._body(capture, role) or b"" for role in capture.screenshot_names]

    def _open(self) -> None:
        if self._listed is None:
            self._listed = {}
            listing = self.pages.listing()
            self._failed_captures = listing.failed_captures
            self._list(listing.types, listing.redirects, listing.failures)

    def _list(
        self, types: Mapping[str, PageType], redirects: Mapping[str, str], failures: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Add pages of the service to the files of the folder, to which it adds its own."""
        self._listed = (self._listed or {}) | {key: each for key, each in types.items() if key not in self._own}
        added = ((INDEX_FILE, types), (REDIRECTS_FILE, redirects), (FAILURES_FILE, failures))
        for name, content in added:
            if content:
                path = self.task_dir / name
                known = json.loads(path.read_bytes()) if path.exists() else {}
                path.write_text(json.dumps(known | dict(content)))
        self._load()

    def _file_names(self) -> set[str]:
        listed = (self._listed or {}).items()
        return super()._file_names() | {f"{file_stems(key)[0]}.{REQUIRED_FILES[kind]}" for key, kind in listed}

    def _find(self, url: str, *, ignore_case: bool = True, follow_redirects: bool = True) -> StoredUrl | None:
        self._open()
        key = super()._find(url, ignore_case=ignore_case, follow_redirects=follow_redirects)
        if key in (self._listed or {}):
            self.pages.read(key)
        elif key is None and (failed := self._failed_captures.get(canonical_key(url))) is not None:
            # What the script then decides is not judged.
            lose_page(NoEvidence(url, failed.outcome, failed.detail, gone=failed.gone, capture=failed))
        return key

    def _put(self, url: str, kind: PageType, files: Mapping[str, bytes], metadata: PageMetadata) -> str:
        self._open()
        key = super()._put(url, kind, files, metadata)
        self._own.add(key)
        self._replaced(key)
        return key

    def _unlink(self, key: str) -> None:
        super()._unlink(key)
        self._own.discard(key)
        self._replaced(key)

    def _replaced(self, key: str) -> None:
        if self._listed is not None:
            self._listed.pop(key, None)

    def _read(self, key: str, suffix: str) -> bytes | None:
        capture = self.pages.read(key) if key in (self._listed or {}) else None
        if capture is None:
            return super()._read(key, suffix)
        if suffix == "jpg":
            return self._body(capture, "original") or join_tiles(self.screenshots(capture))
        return self._body(capture, "text" if suffix == "txt" else suffix) or b""

    def _body(self, capture: Capture, role: str) -> bytes | None:
        """Return a stored body, None if the capture has none. Raises KeyError if it cannot be read."""
        blob = capture.blobs.get(role)
        try:
            return None if blob is None else self.pages.body(blob.sha256)
        except BlobError as error:
            lose_page(error)
            raise KeyError(capture.url) from error


class HostedPages(StoredPages):
    """Pages of a run: those that the script stored in its cache, then the service's."""

    def __init__(self, cache: HostedCache, *, config: EvaluatorConfig, complete: bool) -> None:
        """``complete``: the pages of the service have their content. Otherwise, they refer to it."""
        super().__init__(cache, config=config)
        self._part_files = None
        self._cached = cache
        self._find_in_service = cache.pages.evidence_for if complete else cache.pages.reference

    async def _find(self, url: str) -> Evidence:
        # Without a thread for the files of the cache: usually, the script has stored none.
        return await (super()._find(url) if self._cached.has_stored_pages else self._from_web(url))

    def _look_up(self, url: str) -> StoredPage | None:
        return None if self._cached.own_key(url) is None else super()._look_up(url)

    async def whole(self, url: str) -> Evidence:
        """Like ``StoredPages.whole``, within the limits of the config, which the service's pages are not yet."""
        page = await super().whole(url)
        shots = page.screenshots
        if not page.in_parts or self._limits() != DEFAULT_LIMITS:
            captured = await asyncio.to_thread(self._cached.screenshots, page.capture) if page.in_parts else shots
            shots = await run_image_job(super()._shown_screenshots, captured, page.capture.kind)
        return replace(page, text=await asyncio.to_thread(super()._shown_text, page.text), screenshots=shots)

    def _shown_screenshots(self, shots: Sequence[bytes], kind: PageKind) -> tuple[bytes, ...]:
        return tuple(shots)  # the service limits the pages that it shows

    def _shown_text(self, text: str) -> str:
        return text

    async def _look(self, url: str, address: str) -> Evidence:
        evidence = await self._find_in_service(address)
        self._cached.captured_later(evidence.capture)
        return evidence

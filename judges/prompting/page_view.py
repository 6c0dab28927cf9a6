"""Pages prepared for prompts: once per page, in a thread, with identical bytes for every claim and vote.

Neutralising, encoding and hashing a page costs far more than rendering one request, and a page is used in many.

A text that is too long for one request is divided into parts, the most relevant to a claim first. A part has as many
passages as fit, in the order of the page: the first part those that share the most terms with the claim, the next part
those that follow. Each part also has the beginning of the page and the headings above its passages. The same page,
claim and limit always give the same parts, so that their requests are cached.

The index of a page's text for grounding checks is computed on first use. Nothing of it goes into a prompt, so it can be
computed while the model request is pending.
"""

from __future__ import annotations

import asyncio
import logging
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

from cache.capture import CaptureOutcome, Evidence, PageKind
from cache.image_jobs import return_freed_memory, run_image_job
from cache.page_text.screenshot_parts import may_continue, screenshot_parts
from cache.page_text.sentences import garbled_reason
from cache.single_flight import LRUCache, SingleFlight
from judges.cpu_bound import run_cpu_bound
from judges.grounding.folding import FoldedText, confusable_skeleton, fold
from judges.grounding.injection import Scan, are_wordings_compiled, compile_wordings, scan, scan_url
from judges.grounding.source_signals import SourceSignal, source_signals, url_texts
from judges.grounding.term_overlap import distinct_tokens, relevance, stems_in, stems_of
from judges.llm.encoding import DataURI
from judges.prompting.blocks import BlockBuilder, neutralise
from judges.tokenizers import (
    MAX_TEXT_TOKENS,
    TRUNCATION_MARKER,
    first_tokens,
    text_encoding,
    tokens_of,
    unload_encodings,
)

_BYTES_PER_CHAR: Final = 6
"""Bytes per character: the folded character and its original position. The stems are small in comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    folded: FoldedText
    stems: frozenset[str]
    unrendered: str
    scan: Scan


class PageIndex:
    """Lazily computed index of a page's text. Thread-safe.

    ``shown`` is the text as shown to the judge, ``extra_words`` further words that count as the page's, ``hidden`` the
    part of a PDF's text that is not rendered. The first property access takes tens of milliseconds for a long page; do
    it in a thread.
    """

    def __init__(self, shown: str, *, extra_words: str = "", hidden: str = "") -> None:
        self._shown = shown
        self._extra_words = extra_words
        self._hidden = hidden
        self._lock = Lock()
        self._index: _Index | None = None

    def of_part(self, part: str, *, whole: str) -> PageIndex:
        """Return the index of a part of the page. The words of the ``whole`` page count as those of the part."""
        words = " ".join(distinct_tokens(whole))
        return PageIndex(part, extra_words=f"{self._extra_words}\n{words}", hidden=self._hidden)

    @property
    def folded(self) -> FoldedText:
        """Folded text, for finding quotes."""
        return self._get().folded

    @property
    def stems(self) -> frozenset[str]:
        """Stems of all words and numbers of the page."""
        return self._get().stems

    @property
    def unrendered(self) -> str:
        """Text that is not rendered, folded."""
        return self._get().unrendered

    @property
    def scan(self) -> Scan:
        """Injection scan of the text."""
        return self._get().scan

    @property
    def size(self) -> int:
        """Approximate memory in bytes after the first use."""
        return _BYTES_PER_CHAR * len(self._shown) + len(self._hidden)

    def _get(self) -> _Index:
        with self._lock:
            if self._index is None:
                folded = fold(self._shown)
                plain = confusable_skeleton(folded)
                self._index = _Index(
                    folded=folded,
                    stems=stems_in(plain.text) | stems_of(self._extra_words),
                    unrendered=fold(self._hidden).text,
                    scan=scan(self._shown, plain),
                )
            return self._index


MAX_PARTS: Final = 4
"""Maximum number of parts of a page that are shown for one claim."""
MAX_READ_CHARS: Final = 8_000_000
"""The rest of a longer text is not shown. Comparing a text of this length with a claim takes about three seconds."""
PASSAGE_CHARS: Final = 4_000
OVERLAP_CHARS: Final = 200
"""Characters before a passage that are shown with it: the claim may depend on both sides of a division."""
BEGINNING_CHARS: Final = 1_000
GAP: Final = "\n\n[...]\n\n"
PARTS_MARKER: Final = "\n[The page is long: these are parts of it, and [...] stands for text that is left out here.]"
"""Follows the text of a part."""

Span: TypeAlias = "tuple[int, int]"
_HEADING = re.compile(r"^#{1,6} [^\n]{1,200}$|(?<=\n\n)[^\n]{1,100}(?=\n\n)", re.MULTILINE)
_ENDS: Final = ("\n\n", "\n", ". ", " ")
"""Where a text is divided: the last of the first that occurs."""


@dataclass(frozen=True, slots=True)
class PagePart:
    """Part of a page's text. ``spans`` are its ranges in the text, and ``starts`` where they begin in ``text``."""

    text: str
    spans: tuple[Span, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str, spans: Sequence[Span]) -> PagePart:
        """Return the part with these ranges of a text, which are sorted and do not overlap."""
        starts, at = [], 0
        for start, end in spans:
            starts.append(at)
            at += end - start + len(GAP)
        return cls(GAP.join(text[start:end] for start, end in spans), tuple(spans), tuple(starts))

    def locate(self, start: int, end: int) -> Span:
        """Return the range of the page's text that ``text[start:end]`` comes from."""
        place = max(0, bisect_right(self.starts, start) - 1)
        offset = self.spans[place][0] - self.starts[place]
        return start + offset, min(end + offset, self.spans[place][1])


def page_parts(
    text: str, claim: str, size_of: Callable[[int, int], int], limit: int
) -> tuple[tuple[PagePart, ...], bool]:
    """Return the parts of a text, the most relevant to a claim first, and whether they have all of the text.

    ``size_of`` returns the size of a range, of which a part may have ``limit`` together. CPU-bound: call it in a
    thread.
    """
    spans = _passages(text, min(len(text), MAX_READ_CHARS), min(PASSAGE_CHARS, limit // 4))
    headings = [match.span() for match in _HEADING.finditer(text, 0, MAX_READ_CHARS)]
    shown = [(max(0, start - min(OVERLAP_CHARS, limit // 16)), end) for start, end in spans]
    above = [_heading_above(headings, start) for start, _ in shown]
    scores = relevance(claim, text, spans)
    left = sorted(range(len(spans)), key=lambda place: (place > 0, -scores[place], place))  # the beginning comes first
    beginning = (0, min(BEGINNING_CHARS, limit // 8, len(text)))
    gap = len(GAP)  # in characters: more than in tokens
    parts: list[PagePart] = []
    while left and len(parts) < MAX_PARTS:
        room, count = limit - size_of(*beginning) - gap, 0
        for place in left:
            room -= size_of(*shown[place]) + gap + sum(size_of(*heading) + gap for heading in above[place])
            if room < 0 and count:
                break
            count += 1
        chosen = [span for place in left[:count] for span in (shown[place], *above[place])]
        parts.append(PagePart.of(text, _merged([beginning, *chosen])))
        left = left[count:]
    return tuple(parts), not left and len(text) <= MAX_READ_CHARS


def _heading_above(headings: Sequence[Span], start: int) -> tuple[Span, ...]:
    """Return the last heading before a place of the text, if any."""
    place = bisect_left(headings, (start, start))
    return (headings[place - 1],) if place else ()


def _passages(text: str, end: int, max_chars: int) -> list[Span]:
    """Return the ranges of the passages of ``text[:end]``, divided between paragraphs, lines, sentences or words."""
    spans: list[Span] = []
    start = 0
    while end - start > max_chars:
        earliest, latest = start + max_chars // 2, start + max_chars
        found = ((text.rfind(mark, earliest, latest), mark) for mark in _ENDS)
        cut = next((at + len(mark) for at, mark in found if at >= 0), latest)
        spans.append((start, cut))
        start = cut
    return [*spans, (start, end)] if start < end else spans


def _merged(spans: Sequence[Span]) -> list[Span]:
    """Return the union of ranges, sorted."""
    union: list[Span] = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((start, end))
    return union


log = logging.getLogger(__name__)

MAX_LINKS_CHARS: Final = 60_000
DEFAULT_MAX_BYTES: Final = 16 * 1024 * 1024
PICTURES_SHARE: Final = 0.5
IDLE_S: Final = 1.0
"""Time without an answer in progress after which cached pages are released."""
_SMALL_PAGE_CHARS: Final = 10_000
_SMALLEST_LIMITED_CHARS: Final = MAX_TEXT_TOKENS // 4
"""Shorter texts need no tokenizer."""

_HOST_WORD = re.compile(r"[A-Za-z]+")
_NONCES = re.compile(r"<url ([0-9a-f]{32})>.*</page ([0-9a-f]{32})>", re.DOTALL)

_Result = TypeVar("_Result")
_Key: TypeAlias = "tuple[str, tuple[str, ...]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPage:
    """Page prepared for prompts.

    Attributes:
        blocks: URL and text as prompt blocks.
        nonces: Nonces of the tags in ``blocks``.
        text: Original text, to which offsets refer.
        shown: Text in ``blocks``: the original text, or its beginning and a marker.
        links: One ``words<TAB>URL`` per line.
        is_cut: ``shown`` is only the beginning of the text.
        incomplete: What is missing in the capture; empty if it is complete.
        garbled: Why the text of the page is garbled; empty if it is readable.
        has_unseen_pictures: The page has pictures that ``images`` do not show.
        index: Index of the text shown, for grounding checks.
        url_scan: Injection scan of the URL.
        source_signals: Source signals of the URLs.
        url_texts: Search terms and other text in the URLs, folded.
    """

    page_id: str
    url: str
    text: str
    shown: str
    blocks: str
    nonces: tuple[str, ...]
    links: str
    images: tuple[DataURI, ...]
    digests: tuple[str, ...]
    index: PageIndex
    url_scan: Scan
    source_signals: frozenset[SourceSignal]
    url_texts: tuple[str, ...]
    kind: PageKind = PageKind.WEB
    is_cut: bool = False
    incomplete: str = ""
    garbled: str = ""
    has_unseen_pictures: bool = False
    token_counts: dict[tuple[int, int], int] = field(default_factory=dict, compare=False, repr=False)
    """Number of tokens by range of the text, for its parts."""

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        return 2 * len(self.blocks) + len(self.links) + self.index.size + sum(map(len, self.images))


class PagePreparer:
    """Cache of prepared pages, limited to ``max_bytes``. Concurrent requests for the same page are joined.

    Pages with and without screenshots have separate caches. Screenshots need most of the memory but least of the time
    to prepare, so they must not evict texts.
    """

    def __init__(
        self,
        block_builder: BlockBuilder,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        limit_page: bool = True,
    ) -> None:
        """Without ``limit_page``, pages are shown whole because they are already within the limits."""
        self._block_builder = block_builder
        self._limit_page = limit_page
        self._with_pictures: LRUCache[_Key, PreparedPage] = LRUCache(int(max_bytes * PICTURES_SHARE))
        self._texts: LRUCache[_Key, PreparedPage] = LRUCache(int(max_bytes * (1 - PICTURES_SHARE)))
        self._pending: SingleFlight[tuple[_Key, bool], PreparedPage] = SingleFlight()
        # More threads would not be faster: they compete with the event loop for the GIL.
        self._prepare_slot = asyncio.Semaphore(1)
        self._reading_slot = asyncio.Semaphore(1)
        self._in_progress = 0
        self._release: asyncio.TimerHandle | None = None

    @contextmanager
    def judging(self) -> Iterator[None]:
        """Keep cached pages during the block. When no block was active for ``IDLE_S``, their memory is released."""
        self._in_progress += 1
        try:
            yield
        finally:
            self._in_progress -= 1
            if not self._in_progress:
                if self._release is not None:
                    self._release.cancel()
                self._release = asyncio.get_running_loop().call_later(IDLE_S, self._release_memory)

    def _release_memory(self) -> None:
        if not self._in_progress:
            self._texts.clear()
            self._with_pictures.clear()
            unload_encodings()
            return_freed_memory()

    async def prepare(self, evidence: Evidence, *, use_screenshot: bool = True) -> PreparedPage:
        """Return the prepared page of ``evidence``, with its screenshots unless ``use_screenshot`` is False."""
        has_pictures = use_screenshot and bool(evidence.screenshots)
        key = (evidence.page_id, evidence.digests)
        prepared = (self._with_pictures if has_pictures else self._texts).get(key)
        if prepared is not None:
            return prepared
        make = self._add_pictures if has_pictures else self._prepare_text
        return await self._pending.run((key, has_pictures), lambda: make(key, evidence))

    async def parts(
        self, page: PreparedPage, claim: str, *, max_chars: int | None
    ) -> tuple[tuple[PagePart, ...], bool]:
        """Return the parts of a long page for a claim, and whether they have all of its text (see ``page_parts``).

        ``max_chars`` is the maximum length of a part; None: that of any other text, in tokens.
        """
        if max_chars is not None:
            return await asyncio.to_thread(page_parts, page.text, claim, lambda start, end: end - start, max_chars)
        async with self._prepare_slot:
            return await asyncio.to_thread(page_parts, page.text, claim, _token_counter(page), MAX_TEXT_TOKENS)

    async def prepare_part(self, page: PreparedPage, part: PagePart, *, use_screenshot: bool) -> PreparedPage:
        """Return the page with one part of its text. ``use_screenshot``: with its images."""
        async with self._prepare_slot:
            return await asyncio.to_thread(_part_page, page, part, self._block_builder, use_screenshot=use_screenshot)

    async def run_page_check(self, check: Callable[[], _Result], page: PreparedPage | None) -> _Result:
        """Run a CPU-bound function that reads a page: in a thread if the page is long, one at a time."""
        if page is None or len(page.text) < _SMALL_PAGE_CHARS:
            return check()
        async with self._reading_slot:
            return await asyncio.to_thread(check)

    async def _prepare_text(self, key: _Key, evidence: Evidence) -> PreparedPage:
        async with self._prepare_slot:
            if not are_wordings_compiled():
                await asyncio.to_thread(compile_wordings)
            page = await run_cpu_bound(
                lambda: prepare_page(evidence, self._block_builder, use_screenshot=False, limit_page=self._limit_page),
                evidence.text,
                limit_chars=_SMALLEST_LIMITED_CHARS,
            )
        self._texts.put(key, page, page.size)
        return page

    async def _add_pictures(self, key: _Key, evidence: Evidence) -> PreparedPage:
        page = await self.prepare(evidence, use_screenshot=False)
        images, is_cut = await run_image_job(_images, evidence, limit_page=self._limit_page)
        page = replace(page, images=images, has_unseen_pictures=is_cut)
        self._with_pictures.put(key, page, page.size)
        return page


def prepare_page(
    evidence: Evidence, block_builder: BlockBuilder, *, use_screenshot: bool = True, limit_page: bool = True
) -> PreparedPage:
    """Prepare one page. Takes milliseconds for a large page."""
    capture = evidence.capture
    url = capture.url
    visible = shown = evidence.text
    kept = first_tokens(evidence.text, MAX_TEXT_TOKENS) if limit_page else None
    if kept is not None:
        visible, shown = evidence.text[: len(kept)], kept + TRUNCATION_MARKER
    blocks = page_blocks(url, shown, block_builder)
    images, is_cut = _images(evidence, limit_page=limit_page) if use_screenshot else ((), bool(evidence.screenshots))
    return PreparedPage(
        page_id=evidence.page_id,
        url=url,
        text=evidence.text,
        shown=shown,
        blocks=blocks,
        nonces=_nonces_in(blocks),
        links=link_lines(evidence.links),
        images=images,
        digests=evidence.digests,
        index=PageIndex(
            visible,
            extra_words=f"{capture.title}\n{' '.join(_HOST_WORD.findall(urlsplit(url).netloc))}",
            hidden=evidence.hidden_text,
        ),
        url_scan=scan_url(url),
        source_signals=source_signals(capture),
        url_texts=url_texts([url, capture.final_url or url]),
        kind=capture.kind,
        is_cut=kept is not None,
        incomplete=(capture.detail or "no details") if capture.outcome is CaptureOutcome.PARTIAL else "",
        garbled=garbled_reason(evidence.text),
        has_unseen_pictures=is_cut,
    )


def _part_page(
    page: PreparedPage, part: PagePart, block_builder: BlockBuilder, *, use_screenshot: bool
) -> PreparedPage:
    shown = part.text + PARTS_MARKER
    blocks = page_blocks(page.url, shown, block_builder)
    return replace(
        page,
        text=part.text,
        shown=shown,
        blocks=blocks,
        nonces=_nonces_in(blocks),
        images=page.images if use_screenshot else (),
        index=page.index.of_part(part.text, whole=page.text),
        is_cut=False,
    )


def _token_counter(page: PreparedPage) -> Callable[[int, int], int]:
    """Return a function that counts the tokens of a range of the page's text."""
    encoding, counts = text_encoding(), page.token_counts

    def count(start: int, end: int) -> int:
        if (start, end) not in counts:
            counts[start, end] = len(tokens_of(page.text[start:end], encoding))
        return counts[start, end]

    return count


def _nonces_in(blocks: str) -> tuple[str, ...]:
    return found.groups() if (found := _NONCES.fullmatch(blocks)) else ()


def _images(evidence: Evidence, *, limit_page: bool) -> tuple[tuple[DataURI, ...], bool]:
    """Return the images to show: the pages of a PDF, or the parts of any other screenshot. Also whether more follow."""
    shots = evidence.screenshots
    is_limited = not limit_page or evidence.in_parts or evidence.capture.kind is PageKind.PDF
    shown = shots if is_limited else screenshot_parts(shots)
    # The capture code computed or checked the digests. Those of the screenshots come last.
    is_known = len(evidence.digests) > len(shots)
    known = dict(zip(map(id, shots), evidence.digests[-len(shots) :], strict=True)) if is_known and shots else {}
    is_cut = limit_page and evidence.capture.kind is not PageKind.PDF and may_continue(shown)
    return tuple(DataURI.of_jpeg(jpeg, sha256=known.get(id(jpeg), "")) for jpeg in shown), is_cut


def page_blocks(url: str, text: str, block_builder: BlockBuilder, *, beside: Sequence[str] = ()) -> str:
    """Return the blocks of a page's URL and shown text. ``beside`` are the other texts of the prompt, neutralised."""
    page = block_builder.block("page", text, beside=(neutralise(url), *beside))
    return f"{block_builder.block('url', url, beside=(page, *beside))}\n\n{page}"


def link_lines(links: Sequence[tuple[str, str]]) -> str:
    """Return links as lines of ``words<TAB>URL``, as many whole lines as ``MAX_LINKS_CHARS`` allows."""
    lines: list[str] = []
    room = MAX_LINKS_CHARS
    for words, target in links:
        line = f"{' '.join(words.split())}\t{target}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)

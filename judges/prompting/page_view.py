"""A page as models are shown it: made once, off the event loop, and the same bytes for every claim and vote.

Escaping, encoding and hashing a page costs far more than asking about it, and a page is asked about many times.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

from cache.evidence import Evidence
from cache.lru import Recent
from cache.single_flight import SingleFlight
from judges.grounding.injection import Scan, scan_url
from judges.grounding.page_index import PageReading
from judges.grounding.source_signals import SourceMark, echoes, source_marks
from judges.llm.images import DataURI
from judges.prompting.blocks import Separator, neutralise

log = logging.getLogger(__name__)

MAX_TEXT_CHARS: Final = 400_000
MAX_LINKS_CHARS: Final = 60_000
CUT_MARK: Final = "\n[The page goes on; it was cut here.]"
DEFAULT_MAX_BYTES: Final = 32 * 1024 * 1024
PICTURES_SHARE: Final = 0.5

_HOST_WORD = re.compile(r"[A-Za-z]+")
_NONCES = re.compile(r"<url ([0-9a-f]{32})>.*</page ([0-9a-f]{32})>", re.DOTALL)

_Found = TypeVar("_Found")
_Key: TypeAlias = "tuple[str, tuple[str, ...]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPage:
    """What of a page goes into prompts.

    ``blocks`` holds its address and text ready to be sent, ``nonces`` those of their tags, ``text`` the raw text
    that offsets refer to, ``links`` one ``words<TAB>address`` a line, ``reading`` what code makes of as much of the
    text as is shown. ``url_scan`` says what in the address speaks to the judge, ``marks`` what the addresses give
    away, ``echoes`` what they carry, folded.
    """

    page_id: str
    url: str
    text: str
    blocks: str
    nonces: tuple[str, ...]
    links: str
    images: tuple[DataURI, ...]
    digests: tuple[str, ...]
    reading: PageReading
    url_scan: Scan
    marks: frozenset[SourceMark]
    echoes: tuple[str, ...]

    @property
    def size(self) -> int:
        """Roughly, in bytes of memory."""
        return 2 * len(self.blocks) + len(self.links) + self.reading.size + sum(map(len, self.images))


class PagePreparer:
    """Prepares pages and keeps the ones used last, up to ``max_bytes``. Equal requests under way are joined.

    Pages with their pictures are kept apart from those without: pictures take most of the memory and least of the
    time to prepare, so they must not crowd out the texts.
    """

    def __init__(self, separator: Separator, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._separator = separator
        self._with_pictures: Recent[_Key, PreparedPage] = Recent(int(max_bytes * PICTURES_SHARE))
        self._texts: Recent[_Key, PreparedPage] = Recent(int(max_bytes * (1 - PICTURES_SHARE)))
        self._under_way: SingleFlight[tuple[_Key, bool], PreparedPage] = SingleFlight()
        # More threads would not be faster, they would only take turns with the event loop.
        self._turn = asyncio.Semaphore(1)
        self._reading_turn = asyncio.Semaphore(1)

    @property
    def kept_bytes(self) -> int:
        return self._texts.bytes + self._with_pictures.bytes

    async def prepare(self, evidence: Evidence, *, use_screenshot: bool = True) -> PreparedPage:
        """The page of ``evidence``, with its pictures or without."""
        has_pictures = use_screenshot and bool(evidence.screenshots)
        key = (evidence.page_id, evidence.digests)
        kept = (self._with_pictures if has_pictures else self._texts).get(key)
        if kept is not None:
            return kept
        make = self._add_pictures if has_pictures else self._prepare_text
        return await self._under_way.run((key, has_pictures), lambda: make(key, evidence))

    async def work_out(self, question: Callable[[], _Found]) -> _Found:
        """The answer to a question that takes reading pages, worked out off the event loop when its turn comes."""
        async with self._reading_turn:
            return await asyncio.to_thread(question)

    async def _prepare_text(self, key: _Key, evidence: Evidence) -> PreparedPage:
        async with self._turn:
            page = await asyncio.to_thread(prepare_page, evidence, self._separator, use_screenshot=False)
        self._texts.put(key, page, page.size)
        return page

    async def _add_pictures(self, key: _Key, evidence: Evidence) -> PreparedPage:
        page = await self.prepare(evidence, use_screenshot=False)
        page = replace(page, images=await asyncio.to_thread(_images, evidence))
        self._with_pictures.put(key, page, page.size)
        return page


def prepare_page(evidence: Evidence, separator: Separator, *, use_screenshot: bool = True) -> PreparedPage:
    """Prepare one page; takes milliseconds for a large one."""
    capture = evidence.capture
    url = capture.url
    shown = evidence.text[: shown_chars(evidence.text)]
    blocks = page_blocks(url, evidence.text, separator)
    return PreparedPage(
        page_id=evidence.page_id,
        url=url,
        text=evidence.text,
        blocks=blocks,
        nonces=nonces.groups() if (nonces := _NONCES.fullmatch(blocks)) else (),
        links=link_lines(evidence.links),
        images=_images(evidence) if use_screenshot else (),
        digests=evidence.digests,
        reading=PageReading(
            shown,
            besides=f"{capture.title}\n{' '.join(_HOST_WORD.findall(urlsplit(url).netloc))}",
            hidden=evidence.hidden_text,
        ),
        url_scan=scan_url(url),
        marks=source_marks(capture),
        echoes=echoes([url, capture.final_url or url]),
    )


def _images(evidence: Evidence) -> tuple[DataURI, ...]:
    shots = evidence.screenshots
    # The digests were worked out or checked by whoever brought the page, and those of its pictures are the last.
    is_known = len(evidence.digests) > len(shots)
    known = evidence.digests[len(evidence.digests) - len(shots) :] if is_known else ("",) * len(shots)
    return tuple(DataURI.of_jpeg(jpeg, sha256=sha256) for jpeg, sha256 in zip(shots, known, strict=True))


def page_blocks(url: str, text: str, separator: Separator, *, beside: Sequence[str] = ()) -> str:
    """A page's address and text in their blocks; ``beside`` is what else will stand in the prompt, neutralised."""
    page = separator.block("page", cut_text(text), beside=(neutralise(url).text, *beside))
    return f"{separator.block('url', url, beside=(page, *beside))}\n\n{page}"


def cut_text(text: str, *, max_chars: int = MAX_TEXT_CHARS) -> str:
    """A text of at most ``max_chars`` and a mark: white space is collapsed first, then it is cut at a word."""
    if len(text) <= max_chars:
        return text
    collapsed = " ".join(text.split())
    if len(collapsed) <= max_chars:
        return collapsed
    cut = collapsed.rfind(" ", 0, max_chars)
    return collapsed[: cut if cut > 0 else max_chars] + CUT_MARK


def shown_chars(text: str) -> int:
    """How many characters of a text ``cut_text`` shows, counted in the text as it is."""
    if len(text) <= MAX_TEXT_CHARS:
        return len(text)
    shown = cut_text(text)
    if not shown.endswith(CUT_MARK):
        return len(text)
    words = shown.removesuffix(CUT_MARK).split()
    *_, last = islice(re.finditer(r"\S+", text), len(words))
    return last.start() + len(words[-1])


def link_lines(links: Sequence[tuple[str, str]]) -> str:
    """Links as lines of ``words<TAB>address``, as many whole lines as are allowed."""
    lines: list[str] = []
    room = MAX_LINKS_CHARS
    for words, target in links:
        line = f"{' '.join(words.split())}\t{target}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)

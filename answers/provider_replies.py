"""Answers in the JSON replies of model providers, converted to Markdown with their citations as links.

Known replies: OpenAI Responses and Chat Completions, Anthropic Messages, Gemini ``generateContent`` and Interactions,
and Perplexity. The structure identifies the format. The names and units of the fields are those of the providers'
Python SDKs.

Offsets become character offsets (Unicode code points). A citation whose URL the text does not contain at that place is
written as a link behind the cited text. An offset that does not fit the text is an error, because a citation in the
wrong place would be checked against the wrong statement. Runs in linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any
from urllib.parse import quote

from answers.citations import MAX_LABEL_CHARS, MarkdownStructure, citations, clean
from answers.errors import InvalidSubmission, Problem, ProblemCode

MAX_CITATIONS = 30_000
"""Maximum number of citations, and of links in the text. ``answers.binding`` has the same limits."""
MAX_MARKDOWN_CHARS = 4 * 1024 * 1024
"""Maximum length of the Markdown. Links can make it much longer than the reply, because a reply has each URL once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyCitation:
    """Citation of a reply. ``text[start:end]`` (in characters of the Markdown) is the cited text
    without trailing punctuation, white space and table borders.

    For Perplexity, which only gives a mark, it is the mark. ``url`` is None for sources that are not web pages, such as
    uploaded files. ``quote`` is the text of the source, if the provider returns it.
    """

    start: int
    end: int
    url: str | None
    title: str = ""
    quote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyAnswer:
    """Markdown of a reply, and its citations in the order of the reply."""

    text: str
    citations: tuple[ReplyCitation, ...]


def answer_from_reply(reply: Mapping[str, Any], *, path: str = "") -> ReplyAnswer:
    """Convert the JSON reply of a provider to Markdown.

    Takes about 0.5 s per MiB of text and 50 ms per 1,000 citations. In an event loop, run it in a thread. ``path`` is
    the field of the reply in error messages.

    Raises:
        InvalidSubmission: The format is unknown, a field is invalid, there is no text, or the Markdown would have more
            than 4 Mi characters or 30,000 links.
    """
    root = _Field(value=reply, path=path)
    parts = [part for part in _parts(root) if part.text]
    text = "".join(part.text for part in parts)
    if not text.strip():
        raise root.error("contains no text of an answer: send the complete reply of the provider", ProblemCode.EMPTY)
    starts = accumulate((len(part.text) for part in parts), initial=0)
    cited = [one.moved(by) for part, by in zip(parts, starts, strict=False) for one in part.cited]
    return _with_links(text, cited, root)


@dataclass(frozen=True, slots=True)
class _Field:
    """Value in a reply with its path, for error messages. ``value`` is None if the field is missing or null."""

    value: Any
    path: str

    def get(self, *names: str) -> _Field:
        """Return the first field that has a value; names are alternative spellings."""
        if not isinstance(self.value, Mapping):
            raise self.error("is not a JSON object")
        name = next((name for name in names if self.value.get(name) is not None), names[0])
        return _Field(self.value.get(name), f"{self.path}.{name}" if self.path else name)

    def items(self) -> Iterator[_Field]:
        if self.value is not None and not isinstance(self.value, list):
            raise self.error("is not a list")
        return (_Field(item, f"{self.path}.{place}") for place, item in enumerate(self.value or ()))

    def string(self) -> str:
        if self.value is not None and not isinstance(self.value, str):
            raise self.error("is not a string")
        return self.value or ""

    def number(self) -> int | None:
        if isinstance(self.value, float) and self.value.is_integer():
            return int(self.value)
        if isinstance(self.value, bool) or not isinstance(self.value, int | None):
            raise self.error("is not an integer")
        return self.value

    def error(self, message: str, code: ProblemCode = ProblemCode.BAD_REPLY) -> InvalidSubmission:
        return InvalidSubmission([Problem(path=self.path, message=message, code=code)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cited:
    """Citation with its span, in characters of the text before links are inserted."""

    start: int
    end: int
    url: str | None
    title: str
    quote: str | None = None

    def moved(self, by: int) -> _Cited:
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    cited: Sequence[_Cited] = field(default_factory=list)


_PARAGRAPH = _Part("\n\n")


def _parts(reply: _Field) -> Iterator[_Part]:
    """Yield the texts of the answer in order. Texts that other items separate become paragraphs."""
    for name, read in _FORMATS.items():
        if isinstance(reply.value, Mapping) and isinstance(reply.value.get(name), list):
            separated, any_text = False, False
            for part in read(reply):
                if part is None:
                    separated = any_text
                elif part.text:
                    if separated:
                        yield _PARAGRAPH
                    yield part
                    separated, any_text = False, True
            return
    raise reply.error(
        "is not a known reply: expected the JSON object of OpenAI (list 'output' or 'choices'), Anthropic ('content'), "
        "Gemini ('candidates' or 'steps') or Perplexity ('choices' or 'output'); send other answers as 'text'"
    )


def _responses(reply: _Field) -> Iterator[_Part | None]:
    """OpenAI Responses, and the agent API of Perplexity: ``output[].content[].annotations[]``."""
    for item in reply.get("output").items():
        yield None
        # Items of other types are reasoning and tool calls. Commentary is written before the answer is known.
        if item.get("type").value == "message" and item.get("phase").value != "commentary":
            for content in item.get("content").items():
                if content.get("type").value == "output_text":
                    yield _annotated(content.get("text"), content.get("annotations").items(), _Characters)


def _interactions(reply: _Field) -> Iterator[_Part | None]:
    """Gemini Interactions: ``steps[].content[].annotations[]``, with offsets in bytes."""
    for step in reply.get("steps").items():
        yield None
        if step.get("type").value == "model_output":
            for content in step.get("content").items():
                if content.get("type").value == "text":
                    yield _annotated(content.get("text"), content.get("annotations").items(), _Bytes)


def _chat(reply: _Field) -> Iterator[_Part | None]:
    """Chat Completions of OpenAI (``message.annotations[].url_citation``) and Perplexity (marks ``[n]``)."""
    for choice in list(reply.get("choices").items())[:1]:
        message = choice.get("message")
        content = message.get("content")
        texts = [content]
        if isinstance(content.value, list):
            texts = [each.get("text") for each in content.items() if each.get("type").value == "text"]
        sources = list(_perplexity_sources(reply))
        if sources:
            for text in texts:
                yield _numbered(text, sources)
        else:
            annotations = message.get("annotations").items()
            nested = (each.get("url_citation") for each in annotations if each.get("type").value == "url_citation")
            for text in texts[:1]:
                yield _annotated(text, nested, _Characters, nested=True)
            for text in texts[1:]:
                yield _Part(text.string())


def _messages(reply: _Field) -> Iterator[_Part | None]:
    """Anthropic Messages: ``content[].citations[]``. A citation belongs to the whole text block."""
    for block in reply.get("content").items():
        if block.get("type").value != "text":
            yield None
            continue
        text = block.get("text").string()
        yield _Part(
            text,
            [
                _Cited(
                    start=0,
                    end=len(text),
                    # ``source`` of a search result need not be a URL. Documents have none.
                    url=_web_url(each.get("url", "source").string()),
                    title=each.get("title", "document_title").string(),
                    quote=each.get("cited_text").string() or None,
                )
                for each in block.get("citations").items()
            ],
        )


def _candidates(reply: _Field) -> Iterator[_Part | None]:
    """Gemini ``generateContent``: ``groundingSupports`` with offsets in bytes of a part. Names of REST or Python."""
    for candidate in list(reply.get("candidates").items())[:1]:
        metadata = candidate.get("groundingMetadata", "grounding_metadata")
        chunks: list[_Field] = []
        supports: dict[int, list[_Field]] = defaultdict(list)
        parts = list(_optional(candidate.get("content"), "parts"))
        if metadata.value is not None:
            chunks = list(metadata.get("groundingChunks", "grounding_chunks").items())
            for support in metadata.get("groundingSupports", "grounding_supports").items():
                # proto3 omits zeros.
                index = _optional_number(support.get("segment"), "partIndex", "part_index")
                if not 0 <= index < len(parts):
                    message = f"is {index}, but the answer has {len(parts)} parts"
                    raise support.get("segment").get("partIndex", "part_index").error(message)
                supports[index].append(support)
        for place, part in enumerate(parts):
            text = part.get("text")
            if text.value is None or part.get("thought").value:
                yield None
            else:
                yield _grounded(text.string(), supports[place], chunks)


_FORMATS: Mapping[str, Callable[[_Field], Iterator[_Part | None]]] = {
    "output": _responses,
    "choices": _chat,
    "candidates": _candidates,
    "steps": _interactions,
    "content": _messages,
}


def _optional(parent: _Field, name: str) -> Iterator[_Field]:
    return iter(()) if parent.value is None else parent.get(name).items()


def _optional_number(parent: _Field, *names: str) -> int:
    return 0 if parent.value is None else parent.get(*names).number() or 0


REPLY_LISTS = tuple(_FORMATS)
"""Fields of which a reply has one, with a list."""


class _Characters:
    """Offsets in characters. The SDK of OpenAI names no unit, so UTF-16 units are recognised by their result."""

    @staticmethod
    def positions(text: str, spans: Sequence[tuple[int, int]], urls: Sequence[str]) -> Mapping[int, int | None]:
        """Map each offset to a position in the text; to None if it is outside or within a character."""
        offsets = {offset for span in spans for offset in span}
        readings = [{offset: offset if offset <= len(text) else None for offset in offsets}]
        if not text.isascii() and max(text) > "\uffff":
            readings.append(_positions_in(text, offsets, "utf-16-le", 2))
        fits = [
            (
                None not in reading.values(),
                sum(
                    _is_in(text, url, reading[start], reading[end])
                    for (start, end), url in zip(spans, urls, strict=True)
                ),
            )
            for reading in readings
        ]
        return readings[fits.index(max(fits))]


class _Bytes:
    """Offsets in bytes of UTF-8."""

    @staticmethod
    def positions(text: str, spans: Sequence[tuple[int, int]], _urls: Sequence[str]) -> Mapping[int, int | None]:
        return _positions_in(text, {offset for span in spans for offset in span}, "utf-8", 1)


def _is_in(text: str, url: str, start: int | None, end: int | None) -> bool:
    if not url or start is None or end is None or end - start > _MAX_MARK_CHARS:
        return False
    return text.find(url, start, end) >= 0


_MAX_MARK_CHARS = 8192
"""Longer spans are statements, not links. The limit keeps the search linear."""


def _positions_in(text: str, offsets: Iterable[int], encoding: str, unit: int) -> dict[int, int | None]:
    """Convert offsets in units of ``unit`` bytes of an encoding to character positions, in one pass."""
    data = text.encode(encoding, "surrogatepass")
    positions: dict[int, int | None] = {}
    read = position = 0
    for offset in sorted(offsets):
        stop = offset * unit
        try:
            length = len(data[read:stop].decode(encoding, "surrogatepass")) if stop <= len(data) else None
        except UnicodeDecodeError:
            length = None
        if length is None:
            positions[offset] = None
            continue
        position += length
        read = stop
        positions[offset] = position
    return positions


def _annotated(
    text_field: _Field, annotations: Iterable[_Field], unit: type[_Characters] | type[_Bytes], *, nested: bool = False
) -> _Part:
    """Return a text with the URL citations among its annotations. Citations of files have no URL."""
    text = text_field.string()
    if text == "":
        return _Part(text)
    cited = [each for each in annotations if nested or each.get("type").value == "url_citation"]
    spans = [_span(each) for each in cited]
    placed = [span for span in spans if span is not None]
    urls = [each.get("url").string() for each in cited]
    positions = unit.positions(text, placed, [url for url, span in zip(urls, spans, strict=True) if span is not None])
    return _Part(
        text,
        [
            _cited(each, span, positions, len(text), url=url, title=each.get("title").string())
            for each, span, url in zip(cited, spans, urls, strict=True)
        ],
    )


def _span(parent: _Field) -> tuple[int, int] | None:
    """Return the offsets of a citation; None if it has none. Start and end 0 are what converters write for none."""
    start, end = (parent.get(*names).number() for names in _OFFSETS)
    if end is None or (start or 0, end) == (0, 0):
        return None
    start = start or 0
    if start < 0:
        raise parent.get(*_OFFSETS[0]).error(f"is {start}: offsets are not negative")
    if end < start:
        raise parent.get(*_OFFSETS[1]).error(f"is {end}, before the start {start}")
    return start, end


_OFFSETS = (("start_index", "startIndex"), ("end_index", "endIndex"))


def _cited(
    parent: _Field,
    span: tuple[int, int] | None,
    positions: Mapping[int, int | None],
    length: int,
    *,
    url: str,
    title: str,
) -> _Cited:
    """Return a citation with its position. Without offsets, it is placed at the end of the text."""
    if span is None:
        return _Cited(start=length, end=length, url=_web_url(url), title=title)
    start, end = (
        _position(parent.get(*names), positions[offset]) for names, offset in zip(_OFFSETS, span, strict=True)
    )
    return _Cited(start=start, end=end, url=_web_url(url), title=title)


def _position(offset: _Field, position: int | None) -> int:
    if position is None:
        message = (
            f"is {offset.value}, which is beyond the text or within a character; send the text that the offsets "
            "belong to, or remove the offsets to cite at the end of the text"
        )
        raise offset.error(message)
    return position


def _grounded(text: str, supports: Sequence[_Field], chunks: Sequence[_Field]) -> _Part:
    """Return a part of a Gemini reply with the citations of its supports."""
    segments = [support.get("segment") for support in supports]
    spans = [None if segment.value is None else _span(segment) for segment in segments]
    positions = _Bytes.positions(text, [span for span in spans if span is not None], ())
    cited: list[_Cited] = []
    for support, segment, span in zip(supports, segments, spans, strict=True):
        place = _cited(segment, span, positions, len(text), url="", title="")
        if span is not None:
            written = segment.get("text")
            expected = written.string()
            if expected and text[place.start : place.end] != expected:
                message = (
                    "is not the text at the byte offsets of the segment; send the text that the offsets belong to, "
                    "or remove the offsets to cite at the end of the text"
                )
                raise written.error(message)
        for index in support.get("groundingChunkIndices", "grounding_chunk_indices").items():
            number = index.number()
            if number is None or not 0 <= number < len(chunks):
                raise index.error(f"is {number}, but there are {len(chunks)} grounding chunks")
            cited += (replace(place, url=url, title=title) for url, title in _chunk_source(chunks[number]))
    return _Part(text, cited)


def _chunk_source(chunk: _Field) -> Iterator[tuple[str | None, str]]:
    """Yield URL and title of a chunk. URLs of web chunks are redirects; captures follow them."""
    for kind in (("web",), ("retrievedContext", "retrieved_context"), ("maps",), ("image",)):
        source = chunk.get(*kind)
        if source.value is not None:
            title = source.get("title").string() or source.get("domain").string()
            yield _web_url(source.get("uri", "sourceUri", "source_uri").string()), title


_NUMBERS = re.compile(r"(?<![!\[])\[(\d{1,4}(?:[ \t]?,[ \t]?\d{1,4}){0,30})\](?![(:])")


def _perplexity_sources(reply: _Field) -> Iterator[tuple[str | None, str]]:
    """Yield URL and title of each numbered source. ``search_results`` has the titles, older replies only URLs."""
    results = [(each.get("url").string(), each.get("title").string()) for each in reply.get("search_results").items()]
    urls = [each.string() for each in reply.get("citations").items()] or [url for url, _ in results]
    titles = dict(results)
    yield from ((_web_url(url), titles.get(url, "")) for url in urls)


def _numbered(text_field: _Field, sources: Sequence[tuple[str | None, str]]) -> _Part:
    """Turn the marks ``[n]`` of sources into links. Other numbers in brackets, and code, do not change."""
    text = text_field.string()
    code = _Intervals(_code(text))
    pieces: list[str] = []
    cited: list[_Cited] = []
    read = length = 0

    def write(piece: str) -> None:
        nonlocal length
        pieces.append(piece)
        length += len(piece)

    for mark in _NUMBERS.finditer(text):
        numbers = [int(number) for number in mark[1].split(",")]
        if not all(1 <= number <= len(sources) for number in numbers) or code.end_of(mark.start() + 1):
            continue
        write(text[read : mark.start()])
        read = mark.end()
        for place, number in enumerate(numbers):
            url, title = sources[number - 1]
            write(", " if place else "")
            start = length
            write(f"[{number}]" if url is None else f"[[{number}]]({_destination(url)})")
            cited.append(_Cited(start=start, end=length, url=url, title=title))
        _check_count(len(cited), text_field)
        _check_size(length, text_field)
    write(text[read:])
    return _Part("".join(pieces), cited)


_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f<>\"`\\|]+")
_ENTITY = re.compile(r"&(?=#?\w{1,31};)")
_PARENTHESES = re.compile(r"[()]")


def _web_url(written: str) -> str | None:
    """Return a URL without characters that end a Markdown link; None if it is not one of a web page."""
    encoded = _UNSAFE.sub(lambda match: quote(match[0], errors="replace"), written.strip())
    depth = 0
    for parenthesis in _PARENTHESES.findall(encoded):
        depth += 1 if parenthesis == "(" else -1
        if depth < 0:
            break
    if depth:
        encoded = encoded.replace("(", "%28").replace(")", "%29")
    return clean(encoded.replace("](", "%5D("))


def _destination(url: str) -> str:
    return _ENTITY.sub("&amp;", url)


_MARKUP = re.compile(r"([\\`*_\[\]<>|&~])")


def _link(url: str, title: str) -> str:
    label = " ".join(title.split())[:MAX_LABEL_CHARS] or url.partition("://")[2].partition("/")[0]
    escaped = _MARKUP.sub(r"\\\1", label)
    return f"[{escaped}]({_destination(url)})"


def _with_links(text: str, cited: Sequence[_Cited], root: _Field) -> ReplyAnswer:
    """Insert a link behind each citation whose URL is not in its span, and move the spans accordingly."""
    _check_count(len(cited), root)
    places = _Places(text, root)
    links: dict[int, dict[str, str]] = defaultdict(dict)
    ends: list[int] = []
    size = len(text)
    for one in cited:
        if one.url is not None and places.contain(one.url, one.start, one.end):
            ends.append(one.end)
            continue
        at, visible_end = places.after(one.end)
        ends.append(max(one.start, visible_end))
        if one.url is not None and one.url not in links[at]:
            links[at][one.url] = _link(one.url, one.title)
            size += len(links[at][one.url]) + len(" ()")
        _check_size(size, root)
    pieces: list[str] = []
    read = 0
    positions = sorted(links)
    lengths = [0]
    for at in positions:
        inserted = places.insertion(at, ", ".join(links[at].values()))
        pieces += (text[read:at], inserted)
        lengths.append(lengths[-1] + len(inserted))
        read = at
    pieces.append(text[read:])
    return ReplyAnswer(
        text="".join(pieces),
        citations=tuple(
            ReplyCitation(
                start=one.start + lengths[bisect_right(positions, one.start)],
                end=end + lengths[max(bisect_left(positions, end), bisect_right(positions, one.start))],
                url=one.url,
                title=one.title,
                quote=one.quote,
            )
            for one, end in zip(cited, ends, strict=True)
        ),
    )


def _check_size(chars: int, place: _Field) -> None:
    if chars > MAX_MARKDOWN_CHARS:
        message = f"has more than {MAX_MARKDOWN_CHARS} characters with its citations as links"
        raise place.error(message, ProblemCode.TOO_LARGE)


def _check_count(links: int, place: _Field) -> None:
    if links > MAX_CITATIONS:
        message = f"has more than {MAX_CITATIONS} links or citations; divide the answer"
        raise place.error(message, ProblemCode.TOO_LARGE)


class _Intervals:
    """Union of intervals, for lookups in logarithmic time."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(intervals):
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def end_of(self, position: int) -> int | None:
        """Return the end of the interval that contains the position between its two ends; None if there is none."""
        place = bisect_left(self._starts, position) - 1
        return self._ends[place] if place >= 0 and position < self._ends[place] else None


class _Places:
    """Places of a Markdown text at which a link can be inserted without damage."""

    def __init__(self, text: str, root: _Field) -> None:
        self._text = text
        found = citations(text)
        _check_count(len(found), root)
        self._urls: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for each in found:
            self._urls[each.url].append((each.start, each.end))
        self._runs = [run.span() for run in _TRAILING.finditer(text)]
        self._fences = _Intervals((start, end + 1) for start, end in _fences(text))
        self._unbroken = _Intervals([*_inline_code(text), *self._links()])

    def _links(self) -> Iterator[tuple[int, int]]:
        for close, opened in MarkdownStructure(self._text).link_labels().items():
            yield opened, close + 2
        for start, end in (span for spans in self._urls.values() for span in spans):
            before = _BEFORE_URL.search(self._text, max(0, start - 3), start)
            after = _AFTER_URL.match(self._text, end) if before else None
            yield before.start() if before else start, after.end() if after else end

    def contain(self, url: str, start: int, end: int) -> bool:
        """Return whether the text has the URL within the span, at least in part."""
        spans = self._urls.get(url, [])
        place = bisect_left(spans, (end,)) - 1
        return place >= 0 and spans[place][1] > start

    def after(self, end: int) -> tuple[int, int]:
        """Return the position for a link behind a span that ends at ``end``, and the end of its visible text.

        The position is before trailing punctuation, white space and table borders, so that the link belongs to this
        sentence and not to the next one, and behind links and code that it would split.
        """
        place = bisect_left(self._runs, (end,)) - 1
        visible = end
        if place >= 0 and self._runs[place][0] > 0 and end <= self._runs[place][1]:
            visible = self._runs[place][0]
        at = self._unbroken.end_of(visible) or visible
        fence = self._fences.end_of(at)
        return (at if fence is None else fence - 1), visible

    def insertion(self, at: int, links: str) -> str:
        return f"\n\n({links})\n" if self._fences.end_of(at) else f" ({links})"


_TRAILING = re.compile(r"[\s|:.!?\u3002\uff01\uff0e\uff1f-]+")
_BEFORE_URL = re.compile(r"(?:\]\(<?|<)\Z")
_AFTER_URL = re.compile(r"[^)\n]{0,300}\)|>")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_INLINE_CODE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")


def _inline_code(text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _INLINE_CODE.finditer(text))


def _code(text: str) -> Iterator[tuple[int, int]]:
    yield from _inline_code(text)
    yield from _fences(text)


def _fences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each fenced code block. A block that is not closed ends with the text."""
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match if match[1][0] == "~" or "`" not in match[2] else None
        elif match[1].startswith(opened[1]) and not match[2].strip():
            yield opened.start(), match.end()
            opened = None
    if opened is not None:
        yield opened.start(), len(text)

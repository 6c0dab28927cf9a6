"""Answers in the JSON replies of model providers, converted to Markdown with their citations as links.

``REPLY_SHAPES`` lists the known replies. The structure identifies the format. The names and units of the fields are
those of the providers' API references and Python SDKs.

Offsets become character offsets (Unicode code points). A citation whose URL the text does not contain at that place is
written as a link behind the cited text, or in the place of the mark that a product wrote. An offset that does not fit
the text is an error, because a citation in the wrong place would be checked against the wrong statement. Runs in linear
time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, NamedTuple

from answers.errors import InvalidSubmission, ProblemCode, invalid
from answers.reply_links import Cited, Intervals, ReplyAnswer, Source, code_spans, web_url, with_links

_MAX_NAMED_FIELDS: Final = 12
_MAX_FIELD_NAME_CHARS: Final = 40


def answer_from_reply(reply: Mapping[str, Any], *, path: str = "") -> ReplyAnswer:
    """Convert the JSON reply of a provider to Markdown.

    Takes about 0.5 s per MiB of text and 50 ms per 1,000 citations. In an event loop, run it in a thread. ``path`` is
    the field of the reply in error messages.

    Raises:
        InvalidSubmission: The format is unknown, a field is invalid, there is no text, or the Markdown would have more
            than 4 Mi characters or 30,000 links.
    """
    root = _Field(value=reply, path=path)
    parts = list(_parts(root))
    text = "".join(part.text for part in parts)
    if not text.strip():
        raise root.error("contains no text of an answer: send the complete reply of the provider", ProblemCode.EMPTY)
    starts = accumulate((len(part.text) for part in parts), initial=0)
    cited = [one.moved(by) for part, by in zip(parts, starts, strict=False) for one in part.cited]
    return with_links(text, cited, path)


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
        return invalid(self.path, message, code)


@dataclass(frozen=True, slots=True)
class _Part:
    """Text with its citations. A span that starts before 0 begins in the parts before."""

    text: str
    cited: Sequence[Cited] = field(default_factory=list)


_PARAGRAPH = _Part("\n\n")


def _parts(reply: _Field) -> Iterator[_Part]:
    """Yield the texts of the answer in order. Texts that other items separate become paragraphs."""
    found = reply.value if isinstance(reply.value, Mapping) else {}
    shape = next((shape for shape in REPLY_SHAPES if isinstance(found.get(shape.field), shape.kind)), None)
    if shape is None:
        raise reply.error(_unknown(reply.value))
    separated, any_text = False, False
    for part in shape.read(reply):
        if part is None:
            separated = any_text
            continue
        if part.text:
            if separated:
                yield _PARAGRAPH
            separated, any_text = False, True
        yield part


def _unknown(reply: Any) -> str:
    if isinstance(reply, Mapping):
        names = [repr(str(name)[:_MAX_FIELD_NAME_CHARS]) for name in reply]
        more = f" and {len(names) - _MAX_NAMED_FIELDS} more" if len(names) > _MAX_NAMED_FIELDS else ""
        seen = f"fields {', '.join(names[:_MAX_NAMED_FIELDS])}{more}" if names else "no fields"
    else:
        seen = f"a JSON {'list' if isinstance(reply, list) else 'value'} instead of an object"
    known = "; ".join(f"{shape.provider} ({shape.json_type} {shape.field!r})" for shape in REPLY_SHAPES)
    return f"is not a known reply. Found: {seen}. Supported: {known}. Send other answers as 'text'"


def _responses(reply: _Field) -> Iterator[_Part | None]:
    for item in reply.get("output").items():
        yield None
        # Items of other types are reasoning and tool calls. Commentary is written before the answer is known.
        if item.get("type").value == "message" and item.get("phase").value != "commentary":
            yield from _blocks(item.get("content"))


def _converse(reply: _Field) -> Iterator[_Part | None]:
    return _blocks(reply.get("output").get("message").get("content"))


def _interactions(reply: _Field) -> Iterator[_Part | None]:
    for step in reply.get("steps").items():
        yield None
        if step.get("type").value == "model_output":
            yield from _blocks(step.get("content"), units=(_BYTES,))


def _conversation(reply: _Field) -> Iterator[_Part | None]:
    for entry in reply.get("outputs").items():
        yield None
        if entry.get("type").value == "message.output":
            yield from _blocks(entry.get("content"))


def _chat(reply: _Field) -> Iterator[_Part | None]:
    """Numbered sources of Perplexity belong to the whole reply, annotations of OpenAI to the first text."""
    for choice in list(reply.get("choices").items())[:1]:
        message = choice.get("message")
        sources = list(_numbered_sources(reply))
        annotations = () if sources else message.get("annotations").items()
        for part in _blocks(message.get("content"), {_FIRST: list(_annotations(annotations))}):
            yield _Part(part.text, list(_numbered(part.text, sources))) if part and sources else part


def _cohere(reply: _Field) -> Iterator[_Part | None]:
    message = reply.get("message")
    content = message.get("content")
    citing: dict[int, list[_Citing]] = defaultdict(list)
    for each in message.get("citations").items():
        if each.get("type").value in {None, "TEXT_CONTENT"}:  # others cite the reasoning or the plan of tool calls
            index = each.get("content_index").number()
            if index is not None and isinstance(content.value, list) and not 0 <= index < len(content.value):
                raise each.get("content_index").error(f"is {index}, but the answer has {len(content.value)} parts")
            sources = [_cohere_source(source) for source in each.get("sources").items()]
            citing[_FIRST if index is None else index].append(_Citing(sources, place=each, text=each.get("text")))
    return _blocks(content, citing)


def _thread(reply: _Field) -> Iterator[_Part | None]:
    """The newest answer in a list of messages. Without times, it is the first one, because lists are newest first."""
    answers = [one for one in reply.get("data").items() if one.get("role").value == "assistant"]
    newest = max(answers, key=lambda one: one.get("created_at").number() or 0, default=None)
    return iter(()) if newest is None else _messages(newest)


def _messages(reply: _Field) -> Iterator[_Part | None]:
    return _blocks(reply.get("content"))


def _candidates(reply: _Field) -> Iterator[_Part | None]:
    """Grounding supports refer to parts by index. Names of REST or Python."""
    for candidate in list(reply.get("candidates").items())[:1]:
        metadata = candidate.get("groundingMetadata", "grounding_metadata")
        citing: dict[int, list[_Citing]] = defaultdict(list)
        parts = list(_optional(candidate.get("content"), "parts"))
        chunks = list(_optional(metadata, "groundingChunks", "grounding_chunks"))
        for support in _optional(metadata, "groundingSupports", "grounding_supports"):
            segment = support.get("segment")
            # proto3 omits zeros.
            index = 0 if segment.value is None else segment.get("partIndex", "part_index").number() or 0
            if not 0 <= index < len(parts):
                message = f"is {index}, but the answer has {len(parts)} parts"
                raise segment.get("partIndex", "part_index").error(message)
            citing[index].append(_grounding(support, chunks))
        for place, part in enumerate(parts):
            text = part.get("text")
            if text.value is None or part.get("thought").value:
                yield None
            else:
                yield _cited_part(text, citing[place], (_BYTES,))


class ReplyShape(NamedTuple):
    """Format of replies: the provider, and the field (a list or an object) that identifies it."""

    provider: str
    field: str
    kind: type
    read: Callable[[_Field], Iterator[_Part | None]]

    @property
    def json_type(self) -> str:
        """Type of the field in JSON Schema."""
        return "array" if self.kind is list else "object"


REPLY_SHAPES: Final = (
    ReplyShape("OpenAI Responses and Perplexity agents", "output", list, _responses),
    ReplyShape("Bedrock Converse", "output", dict, _converse),
    ReplyShape("OpenAI and Perplexity chat", "choices", list, _chat),
    ReplyShape("Gemini generateContent", "candidates", list, _candidates),
    ReplyShape("Gemini Interactions", "steps", list, _interactions),
    ReplyShape("Mistral conversations", "outputs", list, _conversation),
    ReplyShape("Cohere chat v2", "message", dict, _cohere),
    ReplyShape("Anthropic Messages and messages of agent threads", "content", list, _messages),
    ReplyShape("list of the messages of an agent thread", "data", list, _thread),
)


def _optional(parent: _Field, *names: str) -> Iterator[_Field]:
    return iter(()) if parent.value is None else parent.get(*names).items()


@dataclass(frozen=True, slots=True)
class _Citing:
    """Citation as written by a provider. ``place`` has the offsets; None: the whole text is cited. ``text`` is the
    cited text, if the provider repeats it."""

    sources: Sequence[Source]
    place: _Field | None = None
    text: _Field = _Field(None, "")


_FIRST: Final = -1
"""Key of the citations that belong to the first text."""
_TEXT_TYPES: Final = frozenset({None, "text", "output_text"})


def _blocks(
    content: _Field, citing: Mapping[int, Sequence[_Citing]] | None = None, *, units: Sequence[_Unit] | None = None
) -> Iterator[_Part | None]:
    """Yield the texts in the content of a message, a text or a list of blocks, with their citations; None for others.

    ``citing`` are citations outside of the blocks, by the index of their block. The sources of Mistral and those of
    Bedrock without text are blocks of their own, behind the text that cites them.
    """
    blocks = [_Field({"text": content.value}, content.path)] if isinstance(content.value, str) else content.items()
    outside, length, is_first = citing or {}, 0, True
    for index, block in enumerate(blocks):
        text, kind = block.get("text"), block.get("type").value
        grounded = block.get("citationsContent")
        if kind in _TEXT_TYPES and text.value is not None:
            holder = block
            if isinstance(text.value, Mapping):  # messages of agent threads
                holder, text = text, text.get("value")
            cited = [*_annotations(holder.get("annotations").items()), *_of_block(block.get("citations"))]
            if is_first:
                cited += outside.get(_FIRST, ())
            part = _cited_part(text, [*cited, *outside.get(index, ())], units or (_CHARACTERS, _UTF16))
            is_first, length = False, len(part.text)
            yield part
        elif kind == "tool_reference":
            source = Source(web_url(block.get("url").string()), block.get("title").string())
            yield _Part("", [Cited(start=-length, end=0, source=source)])
        elif grounded.value is not None:
            written = "".join(each.get("text").string() for each in grounded.get("content").items())
            start, end = (0, len(written)) if written.strip() else (-length, 0)
            sources = map(_bedrock_source, grounded.get("citations").items())
            yield _Part(written, [Cited(start=start, end=end, source=source) for source in sources])
            length = end - start
        else:
            yield None


def _annotations(annotations: Iterable[_Field]) -> Iterator[_Citing]:
    """Yield the URL citations among annotations. Citations of files have no URL."""
    for each in annotations:
        if each.get("type").value == "url_citation":
            nested = each.get("url_citation")
            details = each if nested.value is None else nested
            place = each if details.get(*_OFFSETS[1]).value is None else details
            source = Source(web_url(details.get("url").string()), details.get("title").string())
            yield _Citing([source], place=place, text=each.get("text"))


def _of_block(citations: _Field) -> Iterator[_Citing]:
    """Yield the citations of an Anthropic text block. ``source`` of a search result need not be a URL."""
    for each in citations.items():
        url = web_url(each.get("url", "source").string())
        title, cited = each.get("title", "document_title").string(), each.get("cited_text").string()
        yield _Citing([Source(url, title, cited or None)])


def _bedrock_source(citation: _Field) -> Source:
    """Return the source of a citation: the location of a web page, or the source of a search result."""
    location = citation.get("location")
    web = _Field(None, "") if location.value is None else location.get("web")
    url = "" if web.value is None else web.get("url").string()
    quoted = " ".join(each.get("text").string() for each in citation.get("sourceContent").items())
    return Source(web_url(url or citation.get("source").string()), citation.get("title").string(), quoted or None)


def _cohere_source(source: _Field) -> Source:
    """Return a document or the output of a tool. Their fields, and the id, are what the caller of the API chose."""
    details = source.get("document", "tool_output")
    named = dict(details.value) if isinstance(details.value, Mapping) else {}
    fields = (named.get("url"), named.get("link"), named.get("source"), named.get("id"), source.get("id").value)
    url = next((url for each in fields if isinstance(each, str) and (url := web_url(each))), None)
    title = named.get("title")
    return Source(url, title if isinstance(title, str) else "" if url else source.get("id").string())


def _grounding(support: _Field, chunks: Sequence[_Field]) -> _Citing:
    """Return the citation of a Gemini support."""
    sources: list[Source] = []
    for index in support.get("groundingChunkIndices", "grounding_chunk_indices").items():
        number = index.number()
        if number is None or not 0 <= number < len(chunks):
            raise index.error(f"is {number}, but there are {len(chunks)} grounding chunks")
        sources += _chunk_sources(chunks[number])
    segment = support.get("segment")
    return _Citing(sources) if segment.value is None else _Citing(sources, place=segment, text=segment.get("text"))


def _chunk_sources(chunk: _Field) -> Iterator[Source]:
    """Yield the sources of a chunk. URLs of web chunks are redirects; captures follow them."""
    for kind in (("web",), ("retrievedContext", "retrieved_context"), ("maps",), ("image",)):
        source = chunk.get(*kind)
        if source.value is not None:
            title = source.get("title").string() or source.get("domain").string()
            yield Source(web_url(source.get("uri", "sourceUri", "source_uri").string()), title)


class _Unit(NamedTuple):
    """Unit of offsets: so many bytes of an encoding."""

    encoding: str
    size: int


_CHARACTERS, _UTF16, _BYTES = _Unit("utf-32-le", 4), _Unit("utf-16-le", 2), _Unit("utf-8", 1)
_OFFSETS = (("start_index", "startIndex", "start"), ("end_index", "endIndex", "end"))
_MARK = re.compile(r"\u3010[^\u3010\u3011\n]{1,200}\u3011")
"""Mark that a product wrote in the place of a link: ``[3:0+source]`` in other brackets."""
_MAX_MARK_CHARS = 8192
"""Longer spans are statements, not links. The limit keeps the search linear."""


def _cited_part(text_field: _Field, citing: Sequence[_Citing], units: Sequence[_Unit]) -> _Part:
    """Return a text with its citations. ``units`` are those that the provider may use."""
    text = text_field.string()
    if not text:
        return _Part(text)
    spans = [None if one.place is None else _span(one.place) for one in citing]
    positions = _positions(text, [(span, one) for span, one in zip(spans, citing, strict=True) if span], units)
    cited: list[Cited] = []
    for one, span in zip(citing, spans, strict=True):
        start, end = 0 if one.place is None else len(text), len(text)
        if one.place is not None and span is not None:
            start, end = (
                _position(one.place.get(*names), positions[at]) for names, at in zip(_OFFSETS, span, strict=True)
            )
            if one.text.string() and text[start:end] != one.text.string():
                message = (
                    "is not the text at the offsets, in characters, UTF-16 units or bytes; send the text that the "
                    "offsets belong to, or remove the offsets to cite at the end of the text"
                )
                raise one.text.error(message)
        is_mark = _MARK.fullmatch(text, start, end) is not None
        cited += (
            Cited(start=start, end=end, source=source, is_mark=is_mark and source.url is not None)
            for source in one.sources
        )
    return _Part(text, cited)


def _span(place: _Field) -> tuple[int, int] | None:
    """Return the offsets of a citation; None if it has none. Start and end 0 are what converters write for none."""
    start, end = (place.get(*names).number() for names in _OFFSETS)
    if end is None or (start or 0, end) == (0, 0):
        return None
    start = start or 0
    if start < 0:
        raise place.get(*_OFFSETS[0]).error(f"is {start}: offsets are not negative")
    if end < start:
        raise place.get(*_OFFSETS[1]).error(f"is {end}, before the start {start}")
    return start, end


def _positions(
    text: str, spans: Sequence[tuple[tuple[int, int], _Citing]], units: Sequence[_Unit]
) -> Mapping[int, int | None]:
    """Map each offset to a position in the text; to None if it is outside or within a character.

    The unit is the one in which the most spans contain the cited text or the URL of their citation. If there is nothing
    to compare, it is the first of ``units`` in which all offsets fit the text.
    """
    offsets = {offset for span, _ in spans for offset in span}
    others = () if text.isascii() else (unit for unit in (_CHARACTERS, _UTF16, _BYTES) if unit not in units)
    candidates = [*(units[:1] if text.isascii() else units), *others]
    readings = [_positions_in(text, offsets, unit) for unit in candidates]
    if len(readings) == 1:
        return readings[0]
    fits = [
        (
            sum(_fits(text, positions[start], positions[end], one) for (start, end), one in spans),
            unit in units and None not in positions.values(),
        )
        for unit, positions in zip(candidates, readings, strict=True)
    ]
    return readings[fits.index(max(fits))]


def _fits(text: str, start: int | None, end: int | None, one: _Citing) -> bool:
    if start is None or end is None:
        return False
    if expected := one.text.string():
        return end - start == len(expected) and text.startswith(expected, start)
    urls = (source.url for source in one.sources if source.url)
    return end - start <= _MAX_MARK_CHARS and any(text.find(url, start, end) >= 0 for url in urls)


def _positions_in(text: str, offsets: Iterable[int], unit: _Unit) -> dict[int, int | None]:
    """Convert offsets in a unit to character positions, in one pass."""
    data = text.encode(unit.encoding, "surrogatepass")
    positions: dict[int, int | None] = {}
    read = position = 0
    for offset in sorted(offsets):
        stop = offset * unit.size
        try:
            length = len(data[read:stop].decode(unit.encoding, "surrogatepass")) if stop <= len(data) else None
        except UnicodeDecodeError:
            length = None
        if length is None:
            positions[offset] = None
            continue
        position += length
        read = stop
        positions[offset] = position
    return positions


def _position(offset: _Field, position: int | None) -> int:
    if position is None:
        message = (
            f"is {offset.value}, which is beyond the text or within a character; send the text that the offsets "
            "belong to, or remove the offsets to cite at the end of the text"
        )
        raise offset.error(message)
    return position


_NUMBERS = re.compile(r"(?<![!\[])\[(\d{1,4}(?:[ \t]?,[ \t]?\d{1,4}){0,30})\](?![(:])")


def _numbered_sources(reply: _Field) -> Iterator[Source]:
    """Yield each numbered source of Perplexity. ``search_results`` has the titles, older replies only URLs."""
    results = [(each.get("url").string(), each.get("title").string()) for each in reply.get("search_results").items()]
    urls = [each.string() for each in reply.get("citations").items()] or [url for url, _ in results]
    titles = dict(results)
    yield from (Source(web_url(url), titles.get(url, "")) for url in urls)


def _numbered(text: str, sources: Sequence[Source]) -> Iterator[Cited]:
    """Yield the marks ``[n]`` of sources. Other numbers in brackets, and code, are none."""
    code = Intervals(code_spans(text))
    for mark in _NUMBERS.finditer(text):
        numbers = [int(number) for number in mark[1].split(",")]
        if all(1 <= number <= len(sources) for number in numbers) and not code.end_of(mark.start() + 1):
            for number in numbers:
                source = sources[number - 1]
                yield Cited(start=mark.start(), end=mark.end(), source=source, is_mark=True, label=f"[{number}]")

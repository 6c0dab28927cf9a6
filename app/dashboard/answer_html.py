"""An answer's markdown as HTML that is safe to show, with the sentences marked that cite a page.

The text is hostile. Raw HTML is off, so that tags come out as text; what the renderer writes then passes nh3's list of
allowed elements. Nothing in it is fetched: a picture becomes a link.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from answers.citations import citations
from cache.urls import canonical_key

MAX_CHARS = 1_100_000
_TAGS = {
    "a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "span": {"data-cites"}, "ol": {"start"}}
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=\S)")
_WORD = re.compile(r"\w{2,}")
_FEW_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswer:
    """Safe HTML. A sentence that cites a page is ``<span data-cites="MARK ...">``, see ``mark_of``."""

    html: str
    marks: frozenset[str]


def mark_of(url: str) -> str:
    """A short name for a page, the same for every spelling of its URL."""
    return hashlib.sha256(canonical_key(url).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def show_answer(text: str) -> ShownAnswer:
    """The answer for a page of ours. Blocks for some milliseconds a hundred kilobytes."""
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    tokens = markdown.parse(text[:MAX_CHARS])
    marks: set[str] = set()
    for items in _by_list(tokens):
        _mark_sentences(items, marks)
    html = str(markdown.renderer.render(tokens, markdown.options, {}))
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https"},
        attribute_filter=_absolute,
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return ShownAnswer(html=clean, marks=frozenset(marks))


def _absolute(_element: str, attribute: str, value: str) -> str | None:
    """No link of an answer leads to an address of ours."""
    return value if attribute != "href" or value.lower().startswith(("http://", "https://")) else None


def _by_list(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The inline texts: those of one list together, every other one by itself."""
    lists: list[list[Token]] = []
    for token in tokens:
        if token.type in {"bullet_list_open", "ordered_list_open"}:
            lists.append([])
        elif token.type in {"bullet_list_close", "ordered_list_close"}:
            yield lists.pop()
        elif token.type == "inline" and lists:
            lists[-1].append(token)
        elif token.type == "inline":
            yield [token]


def _mark_sentences(inlines: Sequence[Token], marks: set[str]) -> None:
    """Mark what cites. A list with an item that only names sources is cited as a whole."""
    texts = [(inline, list(_joined(_sentences(_linked(inline.children or []))))) for inline in inlines]
    sources = [mark for _, said in texts for each in said if len(texts) > 1 and each.says_little for mark in each.marks]
    for inline, said in texts:
        if sources and not any(each.marks for each in said):
            said = [_Sentence([token for each in said for token in each.tokens], list(sources))]
        inline.children = list(_between_spans(said, marks))


def _linked(children: Sequence[Token]) -> Iterator[Token]:
    """Inline tokens with bare URLs as links, and pictures as links to them."""
    inside = 0
    for token in children:
        inside += token.nesting if token.type in {"link_open", "link_close"} else 0
        if token.type == "image":
            yield from _link(str(token.attrGet("src") or ""), f"picture: {token.content or token.attrGet('src')}")
        elif token.type == "text" and not inside:
            yield from _bare_urls(token)
        else:
            yield token


def _bare_urls(token: Token) -> Iterator[Token]:
    at = 0
    for citation in citations(token.content):
        if citation.start < at:
            continue
        if citation.start > at:
            yield _text(token.content[at : citation.start])
        yield from _link(citation.url, token.content[citation.start : citation.end])
        at = citation.end
    if at < len(token.content):
        yield _text(token.content[at:])


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _link(url: str, label: str) -> Iterator[Token]:
    yield Token("link_open", "a", 1, attrs={"href": url})
    yield _text(label)
    yield Token("link_close", "a", -1)


@dataclass(slots=True)
class _Sentence:
    """Tokens that belong together, and the pages they cite."""

    tokens: list[Token]
    marks: list[str]

    @property
    def says_little(self) -> bool:
        """Whether there is hardly anything but links in it, as in "Source: https://..."."""
        inside, words = 0, 0
        for token in self.tokens:
            inside += token.nesting if token.type in {"link_open", "link_close"} else 0
            if token.type in {"text", "code_inline"} and not inside:
                words += len(_WORD.findall(token.content))
        return words < _FEW_WORDS


def _between_spans(sentences: Iterable[_Sentence], marks: set[str]) -> Iterator[Token]:
    """The tokens, with each citing sentence between a span's ends."""
    for sentence in sentences:
        if not sentence.marks:
            yield from sentence.tokens
            continue
        marks.update(sentence.marks)
        yield Token("cited_open", "span", 1, attrs={"data-cites": " ".join(dict.fromkeys(sentence.marks))})
        yield from sentence.tokens
        yield Token("cited_close", "span", -1)


def _sentences(children: Iterator[Token]) -> Iterator[_Sentence]:
    """Sentences of an inline text; none ends inside of emphasis or a link."""
    now, depth = _Sentence([], []), 0
    for token in children:
        depth += token.nesting
        if token.type == "link_open":
            now.marks.append(mark_of(str(token.attrGet("href") or "")))
        if token.type in {"softbreak", "hardbreak"} and depth == 0:
            now.tokens.append(token)
            continue
        if token.type != "text" or depth:
            now.tokens.append(token)
            continue
        at = 0
        for end in _SENTENCE_END.finditer(token.content):
            now.tokens.append(_text(token.content[at : end.end()]))
            at = end.end()
            yield now
            now = _Sentence([], [])
        if at < len(token.content):
            now.tokens.append(_text(token.content[at:]))
    if now.tokens:
        yield now


def _joined(sentences: Iterator[_Sentence]) -> Iterator[_Sentence]:
    """A sentence that is nothing but a citation belongs to the one before it."""
    before: _Sentence | None = None
    for sentence in sentences:
        if before is not None and sentence.marks and sentence.says_little:
            before.tokens += sentence.tokens
            before.marks += sentence.marks
            continue
        if before is not None:
            yield before
        before = sentence
    if before is not None:
        yield before

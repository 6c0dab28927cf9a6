"""Conversion of an answer's Markdown to safe HTML in which the sentences that cite a page are marked.

``answers.markdown`` makes the HTML safe. This module marks sentences.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from answers.markdown import linked, plain_text, render_markdown
from cache.urls import canonical_key

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=\S)")
_WORD = re.compile(r"\w{2,}")
_FEW_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedAnswer:
    """Safe HTML. A sentence that cites pages is ``<span data-cites="MARK ...">``; see ``page_mark``."""

    html: str
    marks: frozenset[str]


def page_mark(url: str) -> str:
    """Return a short identifier of a page, equal for all spellings of its URL."""
    return hashlib.sha256(canonical_key(url).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def render_answer(text: str) -> RenderedAnswer:
    """Convert an answer to HTML. Blocks for a few milliseconds per 100 kB."""
    marks: set[str] = set()

    def mark_citing_sentences(tokens: Sequence[Token]) -> None:
        for items in _by_list(tokens):
            _mark_sentences(items, marks)

    return RenderedAnswer(html=render_markdown(text, mark_citing_sentences), marks=frozenset(marks))


def _by_list(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Group the inline tokens: those of one list together, every other one alone."""
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
    """Mark the citing sentences. If an item of a list only names sources, the whole list is marked."""
    texts = [(inline, list(_joined(_sentences(linked(inline.children or []))))) for inline in inlines]
    sources = [
        mark
        for _, sentences in texts
        for sentence in sentences
        if len(texts) > 1 and sentence.is_only_links
        for mark in sentence.marks
    ]
    for inline, sentences in texts:
        if sources and not any(sentence.marks for sentence in sentences):
            sentences = [_Sentence([token for sentence in sentences for token in sentence.tokens], list(sources))]
        inline.children = list(_between_spans(sentences, marks))


@dataclass(slots=True)
class _Sentence:
    """Tokens of one sentence, and the marks of the pages that it cites."""

    tokens: list[Token]
    marks: list[str]

    @property
    def is_only_links(self) -> bool:
        """Return whether it has fewer than three words outside links, as in "Source: https://..."."""
        depth, words = 0, 0
        for token in self.tokens:
            depth += token.nesting if token.type in {"link_open", "link_close"} else 0
            if token.type in {"text", "code_inline"} and not depth:
                words += len(_WORD.findall(token.content))
        return words < _FEW_WORDS


def _between_spans(sentences: Iterable[_Sentence], marks: set[str]) -> Iterator[Token]:
    """Return the tokens with a span around each citing sentence."""
    for sentence in sentences:
        if not sentence.marks:
            yield from sentence.tokens
            continue
        marks.update(sentence.marks)
        yield Token("cited_open", "span", 1, attrs={"data-cites": " ".join(dict.fromkeys(sentence.marks))})
        yield from sentence.tokens
        yield Token("cited_close", "span", -1)


def _sentences(children: Iterator[Token]) -> Iterator[_Sentence]:
    """Split an inline text into sentences. No sentence ends inside emphasis or a link."""
    now, depth = _Sentence([], []), 0
    for token in children:
        depth += token.nesting
        if token.type == "link_open":
            now.marks.append(page_mark(str(token.attrGet("href") or "")))
        if token.type in {"softbreak", "hardbreak"} and depth == 0:
            now.tokens.append(token)
            continue
        if token.type != "text" or depth:
            now.tokens.append(token)
            continue
        at = 0
        for end in _SENTENCE_END.finditer(token.content):
            now.tokens.append(plain_text(token.content[at : end.end()]))
            at = end.end()
            yield now
            now = _Sentence([], [])
        if at < len(token.content):
            now.tokens.append(plain_text(token.content[at:]))
    if now.tokens:
        yield now


def _joined(sentences: Iterator[_Sentence]) -> Iterator[_Sentence]:
    """Join each sentence that consists of citations only to the previous one."""
    before: _Sentence | None = None
    for sentence in sentences:
        if before is not None and sentence.marks and sentence.is_only_links:
            before.tokens += sentence.tokens
            before.marks += sentence.marks
            continue
        if before is not None:
            yield before
        before = sentence
    if before is not None:
        yield before

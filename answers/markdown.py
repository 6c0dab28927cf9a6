"""Conversion of an answer's Markdown to safe HTML.

Answers are untrusted. Raw HTML is disabled, so tags appear as text. The rendered HTML is then filtered by nh3 with an
allowlist of elements. Images become links, so that nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from answers.binding import without_product_marks
from answers.citations import citations

MAX_CHARS = 1_100_000
_TAGS = {
    "a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "span": {"data-cites", "data-statement", "data-end"}, "ol": {"start"}}


def render_markdown(text: str, edit: Callable[[Sequence[Token]], None], *, keep_lines: bool = False) -> str:
    """Convert an answer to HTML. Blocks for a few milliseconds per 100 kB.

    Internal marks of products are left out. ``edit`` may change the tokens. With ``keep_lines``, each line break
    of a paragraph is kept, as in lists of sources.
    """
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": keep_lines}).enable(
        ["table", "strikethrough"]
    )
    tokens = markdown.parse(without_product_marks(text[:MAX_CHARS]))
    edit(tokens)
    return nh3.clean(
        str(markdown.renderer.render(tokens, markdown.options, {})),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https"},
        attribute_filter=_absolute,
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def linked(children: Sequence[Token]) -> Iterator[Token]:
    """Turn bare URLs and images into links."""
    depth = 0
    for token in children:
        depth += token.nesting if token.type in {"link_open", "link_close"} else 0
        if token.type == "image":
            yield from _link(str(token.attrGet("src") or ""), f"image: {token.content or token.attrGet('src')}")
        elif token.type == "text" and not depth:
            yield from _bare_urls(token)
        else:
            yield token


def _bare_urls(token: Token) -> Iterator[Token]:
    at = 0
    for citation in citations(token.content):
        if citation.start < at:
            continue
        if citation.start > at:
            yield plain_text(token.content[at : citation.start])
        yield from _link(citation.url, token.content[citation.start : citation.end])
        at = citation.end
    if at < len(token.content):
        yield plain_text(token.content[at:])


def plain_text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _link(url: str, label: str) -> Iterator[Token]:
    yield Token("link_open", "a", 1, attrs={"href": url})
    yield plain_text(label)
    yield Token("link_close", "a", -1)


def _absolute(_element: str, attribute: str, value: str) -> str | None:
    """Drop relative links, so that no link of an answer leads to the page that shows it."""
    return value if attribute != "href" or value.lower().startswith(("http://", "https://")) else None

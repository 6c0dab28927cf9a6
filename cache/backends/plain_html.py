"""Stored or fetched HTML that no browser has rendered, read as text and as the facts that quality asks for."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin

import html2text
from selectolax.lexbor import LexborHTMLParser, LexborNode

_MAX_LINKS = 5000
_UNSEEN = "script, style, noscript, template, [hidden], head"
_NOT_FIELDS = "".join(f":not([type={kind}])" for kind in ("hidden", "submit", "button", "image", "reset"))
_FIELDS = f"input{_NOT_FIELDS}, textarea, select"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPage:
    """What HTML says without being rendered; ``links`` are (text, absolute target)."""

    title: str
    headlines: tuple[str, ...]
    text: str
    links: tuple[tuple[str, str], ...]
    has_password_field: bool
    login_form_chars: int
    inputs: int
    images: int


def read_html(html: str, base_url: str) -> PlainPage:
    """Title, headlines, markdown-like text, links and form facts. Takes time: call it off the event loop."""
    tree = LexborHTMLParser(html)
    title = tree.css_first("title")
    title_text = _text(title) if title is not None else ""
    for node in tree.css(_UNSEEN):
        node.decompose()
    passwords = tree.css("input[type=password]")
    return PlainPage(
        title=title_text,
        headlines=tuple(filter(None, (_text(node) for node in tree.css("h1")))),
        text=_markdown(tree.html or ""),
        links=tuple(_links(tree, base_url)),
        has_password_field=bool(passwords),
        login_form_chars=max((len(_text(_form_of(node))) for node in passwords), default=0),
        inputs=len(tree.css(_FIELDS)),
        images=len(tree.css("img[src], picture, video, svg")),
    )


def _markdown(html: str) -> str:
    converter = html2text.HTML2Text(bodywidth=0)
    converter.ignore_links = True
    converter.ignore_images = True
    converter.ignore_emphasis = True
    return converter.handle(html).strip()


def _links(tree: LexborHTMLParser, base_url: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for node in tree.css("a[href]")[:_MAX_LINKS]:
        try:
            target = urljoin(base_url, node.attributes.get("href") or "")
        except ValueError:
            continue
        if target.startswith(("http://", "https://")):
            found.append((_text(node), target))
    return found


def _form_of(node: LexborNode) -> LexborNode:
    """The form around a field, or the field's parent where there is none."""
    around: LexborNode | None = node.parent
    while around is not None and around.tag != "form":
        around = around.parent
    return around or node.parent or node


def _text(node: LexborNode) -> str:
    return " ".join(node.text(separator=" ").split())

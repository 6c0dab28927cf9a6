# ruff: noqa: RUF001 - words of other scripts
"""Extraction of text and form facts from HTML without rendering it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urljoin

import html2text
from selectolax.lexbor import LexborHTMLParser, LexborNode

_MAX_LINKS = 5000
_MAX_HIDDEN_CHARS = 200_000
_ROOT_TAGS = frozenset({"html", "body"})  # never removed as hidden, because scripts often show them after loading
_NOSCRIPT = re.compile(r"<noscript\b[^>]*>.*?</noscript\s*>", re.IGNORECASE | re.DOTALL)
_CONSENT_WORDS = re.compile(
    r"cookie|consent|gdpr|onetrust|didomi|usercentrics|truste|sp_message|iubenda|qc-cmp|cmpbox|cmp-", re.I
)
_OVERLAY = re.compile(r"position:\s*(?:fixed|sticky)", re.I)
_INVISIBLE = "script, style, noscript, template, head, datalist"
_MAY_BE_HIDDEN = "[hidden], dialog:not([open]), [popover], [style]"
_HIDING_STYLE = re.compile(
    r"(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|content-visibility:hidden|opacity:(?:0|0?\.0\d*)%?"
    r"|font-size:0(?:\.0+)?(?:px|pt|em|rem|%)?)(?:!important)?(?:;|$)"
)
_EXCLUDING_BUTTONS = "".join(f":not([type={kind}])" for kind in ("hidden", "submit", "button", "image", "reset"))
_TEXT_FIELDS = "input:not([type]), input[type=text], input[type=email], input[type=tel]"
_USER_FIELD_WORDS = re.compile(
    r"user|log-?in|e-?mail|account|identifier|member|customer|kunde|benutzer|utilisateur|identifiant|usuario|utente"
    r"|gebruiker|u[zż]ytkownik|логин|почт|kullan[ıi]c|メール|ユーザー|用户|用戶|账号|帳號|아이디|이메일|المستخدم|البريد",
    re.IGNORECASE,
)
_NEWSLETTER_WORDS = re.compile(r"newsletter|subscri|abonn", re.IGNORECASE)
_MAX_FORM_CHARS = 1000
_MAX_NEAR_CHARS = 400
_PAGE_SHARE = 0.8
_FIELDS = f"input{_EXCLUDING_BUTTONS}, textarea, select"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPage:
    """Content of unrendered HTML.

    Attributes:
        links: Pairs of text and absolute target.
        hidden: Text that attributes of its elements hide. Style sheets are not evaluated.
    """

    title: str
    headlines: tuple[str, ...]
    text: str
    links: tuple[tuple[str, str], ...]
    has_password_field: bool
    login_form_chars: int
    consent_chars: int
    inputs: int
    images: int
    hidden: str = ""
    has_user_field: bool = False
    is_registration: bool = False


def read_html(html: str, base_url: str) -> PlainPage:
    """Extract title, headlines, markdown-like text, links and form facts. CPU-bound: run it in a thread."""
    tree = LexborHTMLParser(_without_noscript(html))
    title = tree.css_first("title")
    title_text = _text(title) if title is not None else ""
    for node in reversed(tree.css(_INVISIBLE)):  # inner nodes first: nodes in a removed node must not be accessed
        node.decompose()
    for node in tree.css("select"):
        for option in _unselected_options(node):
            option.decompose()
    hidden = _remove_hidden(tree)
    passwords = tree.css("input[type=password]")
    page_chars = len(_text(tree.body)) if passwords and tree.body is not None else 0
    return PlainPage(
        title=title_text,
        headlines=_headlines(tree, "h1") or _headlines(tree, "h2")[:1],
        text=_markdown(tree.html or ""),
        links=tuple(_links(tree, base_url)),
        has_password_field=bool(passwords),
        login_form_chars=max((_form_chars(node, page_chars) for node in passwords), default=0),
        consent_chars=_consent_chars(tree),
        inputs=len(tree.css(_FIELDS)),
        images=len(tree.css("img[src], picture, video, svg")),
        hidden=hidden,
        has_user_field=any(map(_is_user_field, tree.css(_TEXT_FIELDS))),
        is_registration=bool(passwords) and all(map(_asks_for_new_password, passwords)),
    )


def _remove_hidden(tree: LexborHTMLParser) -> str:
    """Remove elements that their own attributes hide. Return their text."""
    hidden = []
    for node in reversed(tree.css(_MAY_BE_HIDDEN)):  # inner nodes first, as above
        style = "".join((node.attributes.get("style") or "").split()).lower()
        is_declared_hidden = "hidden" in node.attributes or "popover" in node.attributes or node.tag == "dialog"
        if node.tag not in _ROOT_TAGS and (is_declared_hidden or _HIDING_STYLE.search(style)):
            hidden.append(_text(node))
            node.decompose()
    return "\n".join(filter(None, reversed(hidden)))[:_MAX_HIDDEN_CHARS]


def _without_noscript(html: str) -> str:
    """Remove ``noscript`` elements. The parser would treat those in the head as text of the page."""
    end = html.lower().rfind("</noscript")  # unclosed elements after the last end tag would make the search quadratic
    return html if end < 0 else _NOSCRIPT.sub("", html[: end + 11]) + html[end + 11 :]


def _headlines(tree: LexborHTMLParser, tag: str) -> tuple[str, ...]:
    return tuple(filter(None, (_text(node) for node in tree.css(tag))))


def _markdown(html: str) -> str:
    converter = html2text.HTML2Text(bodywidth=0)
    converter.ignore_links = True
    converter.ignore_images = True
    converter.ignore_emphasis = True
    return converter.handle(html).strip()


def _links(tree: LexborHTMLParser, base_url: str) -> list[tuple[str, str]]:
    links: list[tuple[str, str]] = []
    for node in tree.css("a[href]")[:_MAX_LINKS]:
        try:
            target = urljoin(base_url, node.attributes.get("href") or "")
        except ValueError:
            continue
        if target.startswith(("http://", "https://")):
            links.append((_text(node), target))
    return links


def _unselected_options(choice: LexborNode) -> list[LexborNode]:
    """Return the options of a list that are not displayed while it is closed."""
    options = choice.css("option")
    chosen = next((n for n, option in enumerate(options) if "selected" in option.attributes), 0)
    return [*options[:chosen], *options[chosen + 1 :]]


def _enclosing_form(node: LexborNode) -> LexborNode | None:
    ancestor: LexborNode | None = node.parent
    while ancestor is not None and ancestor.tag != "form":
        ancestor = ancestor.parent
    return ancestor


def _form_chars(field: LexborNode, page_chars: int) -> int:
    """Return the length of the visible text of the form around a field.

    A form around most of the page, as ASP.NET generates it, does not count; then the text near the field counts.
    ``page_chars``: length of the page's text.
    """
    form = _enclosing_form(field)
    in_form = 0 if form is None else len(_text(form))
    is_page = in_form > _MAX_FORM_CHARS or (in_form > _MAX_NEAR_CHARS and in_form >= _PAGE_SHARE * page_chars)
    if form is not None and not is_page:
        return in_form
    chars, ancestor = 0, field.parent
    while ancestor is not None and ancestor.tag not in _ROOT_TAGS and ancestor != form:
        text_chars = len(_text(ancestor))
        if text_chars > _MAX_NEAR_CHARS:
            break
        chars, ancestor = text_chars, ancestor.parent
    return chars


def _asks_for_new_password(field: LexborNode) -> bool:
    form = _enclosing_form(field)
    group = [field] if form is None else form.css("input[type=password]")
    autocomplete = [node.attributes.get("autocomplete") or "" for node in group]
    return "new-password" in (field.attributes.get("autocomplete") or "") or (
        len(group) > 1 and "current-password" not in autocomplete
    )


def _is_user_field(field: LexborNode) -> bool:
    labels = " ".join(
        field.attributes.get(name) or "" for name in ("name", "id", "placeholder", "aria-label", "autocomplete")
    )
    form = _enclosing_form(field)
    attributes_text = (
        ""
        if form is None
        else f"{form.attributes.get('class') or ''} {form.attributes.get('id') or ''} {_text(form)[:500]}"
    )
    return bool(_USER_FIELD_WORDS.search(labels)) and not _NEWSLETTER_WORDS.search(attributes_text)


def _consent_chars(tree: LexborHTMLParser) -> int:
    """Return the length of the text in consent dialogs and overlays. Nested ones are not added up."""
    longest = 0
    for node in tree.css("[role=dialog], [role=alertdialog], [style*=fixed], [style*=sticky]"):
        names = f"{node.attributes.get('id') or ''} {node.attributes.get('class') or ''}"
        is_dialog = (node.attributes.get("role") or "").endswith("dialog")
        if _CONSENT_WORDS.search(names) and (is_dialog or _OVERLAY.search(node.attributes.get("style") or "")):
            longest = max(longest, len(_text(node)))
    return longest


def _text(node: LexborNode) -> str:
    return " ".join(node.text(separator=" ").split())

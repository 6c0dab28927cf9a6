# ruff: noqa: RUF001 - words of other scripts
"""Extraction of text and form facts from HTML without rendering it.

Imports no other module of this project, because a confined child process loads this file by its path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import urljoin

import html2text
from selectolax.lexbor import LexborHTMLParser, LexborNode

_MAX_LINKS = 5000
_MAX_LINK_CHARS = 1000
_MAX_TARGET_CHARS = 10_000
_MAX_HEADLINES = 50
_MAX_HEADLINE_CHARS = 2000
_MAX_NODES = 500
_MAX_NESTING = 512
"""Levels of elements that browsers create."""
_MAX_PASSWORD_FIELDS = 5
_MAX_USER_FIELDS = 200
_MAX_OVERLAYS = 10
_MAX_HIDDEN_CHARS = 200_000
_MAX_RUBY_LEVELS = 8
_INLINE = frozenset({"a", "b", "em", "font", "i", "mark", "q", "rb", "rtc", "ruby", "small", "span", "strong", "u"})
_ROOT_TAGS = frozenset({"html", "body"})  # never removed as hidden, because scripts often show them after loading
_NOSCRIPT_START = re.compile(r"<noscript\b", re.IGNORECASE)
_NOSCRIPT_END = re.compile(r"</noscript\s*>", re.IGNORECASE)
_SPACE_RUN = re.compile(r"\s{2,}")
_INDENTING = frozenset({"ul", "ol", "blockquote"})
_MAX_INDENTATION = 50
_MAX_COLUMNS = 1000
_MAX_CHARREF_CHARS = 8
_UNCLOSED = "\ufdd0"
"""Stands for a "<" that opens no tag: the parser takes microseconds for each entity. It is not a character."""
_AMPERSAND = "\ufdd1"
"""Stands for a "&" that begins no reference."""
_BARE_AMPERSAND = re.compile("&(?![a-zA-Z#])")
_MAX_MARKUP_PER_MIB = 110_000
"""Tags, comments and entities per MiB that the converter reads in 1 s. Very long tables of short cells have more."""
_BEFORE_ESCAPED = re.compile(
    rf"(\\(?=[{re.escape(html2text.config.RE_SLASH_CHARS)}])|^\s*\d+(?=\.\s)|^\s*(?=\+\s|-[\s-]))", re.MULTILINE
)
"""What is before a character that would be Markdown: the four patterns of the library in one."""
CONSENT_NAMES: Final = (
    r"cookie|consent|gdpr|onetrust|didomi|usercentrics|truste|sp_message|iubenda|qc-cmp|cmpbox|cmp[-.]|privacy-mgmt"
)
"""In the id or class of a floating element or dialog, or in the title, name or host of a frame."""
CONSENT_WORDS: Final = (
    "cookie|クッキー|쿠키|кук[иі]|ciastecz|çerez|evästee|informa(?:tions|sjons)kaps|kolačić|slapuk|sīkdat|küpsis|sütik"
    "|คุกกี้|कुकी|ملفات تعريف الارتباط|עוגיות|your privacy|privatsphäre|einwilligung|votre vie privée|consentement"
    "|(?:tu|su) privacidad|consentimiento|tua privacy|uw privacy|toestemming|sua privacidade|consentimento|prywatnoś"
    "|конфиденциальност|プライバシー|隐私|隱私|개인정보|store and(?:/or)? access information"
)
"""In the first ``CONSENT_WORDS_WITHIN`` characters of a floating element or dialog."""
CONSENT_WORDS_WITHIN: Final = 500
_CONSENT_NAMES = re.compile(CONSENT_NAMES, re.IGNORECASE)
_CONSENT_WORDS = re.compile(CONSENT_WORDS, re.IGNORECASE)
_CONTENT = "main, article, [role=main], input[type=password]"
_MAX_CONSENT_CHARS = 3000
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
    """Extract title, headlines, markdown-like text, links and form facts. CPU-bound.

    The parser needs quadratic time and memory for some nested elements. Untrusted HTML of more than a few kilobytes
    belongs into a child process: use ``cache.backends.documents.read_html_safely``. All other steps take linear
    time: they examine a limited number of elements that may contain each other.
    """
    return page_of(parse(html), len(html), base_url)


def parse(html: str) -> LexborHTMLParser:
    """Return the elements of HTML. The only step that takes quadratic time for some HTML; 20 ms per MiB for other."""
    return LexborHTMLParser(_without_noscript(html))


def page_of(tree: LexborHTMLParser, source_chars: int, base_url: str) -> PlainPage:
    """Return the content of parsed HTML, which was ``source_chars`` long."""
    title = tree.css_first("title")
    title_text = _text(title) if title is not None else ""
    for node in reversed(tree.css(_INVISIBLE)):  # inner nodes first: nodes in a removed node must not be accessed
        node.decompose()
    for node in tree.css("select"):
        for option in _unselected_options(node):
            option.decompose()
    hidden = _remove_hidden(tree)
    _move_readings(tree)
    passwords = tree.css("input[type=password]")
    examined = passwords[:_MAX_PASSWORD_FIELDS]
    forms = _Forms(tree)
    return PlainPage(
        title=title_text,
        headlines=_headlines(tree, "h1") or _headlines(tree, "h2")[:1],
        text=_text_of(tree, source_chars),
        links=tuple(_links(tree, base_url)),
        has_password_field=bool(passwords),
        login_form_chars=max(map(forms.login_chars, examined), default=0),
        consent_chars=_consent_chars(tree),
        inputs=len(tree.css(_FIELDS)),
        images=len(tree.css("img[src], picture, video, svg")),
        hidden=hidden,
        has_user_field=forms.has_user_field(tree.css(_TEXT_FIELDS)),
        is_registration=bool(passwords) and all(map(forms.asks_for_new_password, examined)),
    )


def _text_of(tree: LexborHTMLParser, source_chars: int) -> str:
    """Return the text of a page; as lines without Markdown if it has so much markup that the converter takes long.

    The rule is a number and not a duration, so that a page has the same text on every machine.
    """
    html = tree.html or ""
    if not is_dense(html, source_chars):
        return html_to_text(html)
    lines = (" ".join(line.split()) for line in tree.root.text(separator="\n").splitlines()) if tree.root else ()
    return "\n".join(filter(None, lines))


def is_dense(html: str, source_chars: int) -> bool:
    """Return whether HTML has so many tags, comments and entities that ``TextConverter`` takes over 1 s per MiB."""
    return html.count("<") + html.count("&") > _MAX_MARKUP_PER_MIB * max(1.0, source_chars / 2**20)


def html_to_text(html: str) -> str:
    """Return markdown-like text of HTML, without links, images and emphasis."""
    converter = TextConverter()
    converter.ignore_links = True
    converter.ignore_images = True
    converter.ignore_emphasis = True
    return converter.handle(html).strip()


class TextConverter(html2text.HTML2Text):
    """Converter of HTML to Markdown, without line wrapping, whose time and output are linear in the length."""

    def __init__(self) -> None:
        super().__init__(bodywidth=0)
        self._depth = self._ignored = 0

    def feed(self, data: str) -> None:
        """Escape tags and comments that are never closed: the parser needs quadratic time for them.

        Escape ampersands that begin no reference, too: the parser handles each of them as a text of its own.
        """
        data = data.replace("<![", "<! [")  # a comment up to the next ">"
        data = _BARE_AMPERSAND.sub(_AMPERSAND, data.replace(_UNCLOSED, "\ufffd").replace(_AMPERSAND, "\ufffd"))
        for opening, closing in (("<!--", "-->"), ("<", ">")):
            head, end, tail = data.rpartition(closing)
            data = head + end + tail.replace(opening, _UNCLOSED + opening[1:])
        super().feed(data)

    def handle_tag(self, tag: str, attrs: dict[str, str | None], start: bool) -> None:
        """Ignore deeply nested lists and quotations, because each of their lines is indented, and very wide tables."""
        if tag in _INDENTING:
            if start and self._depth >= _MAX_INDENTATION:
                self._ignored += 1
                return
            if not start and self._ignored:
                self._ignored -= 1
                return
            self._depth = max(0, self._depth + (1 if start else -1))
        if attrs:
            attrs = {name: value and _unescaped(value) for name, value in attrs.items()}
        super().handle_tag(tag, attrs, start)
        self.td_count = min(self.td_count, _MAX_COLUMNS)

    def handle_data(self, data: str, entity_char: bool = False) -> None:
        """Collapse white space first: the patterns of the library are quadratic in it. Escape in one pass."""
        if self.style:
            return
        if not self.pre:
            is_markup = not entity_char and not self.code
            parts = [_as_text(part, is_markup=is_markup) for part in data.split(_UNCLOSED)]
            data = _UNCLOSED.join(parts) if len(parts) > 1 else parts[0]
        while _UNCLOSED in data and (self.stressed or self.preceding_stressed):  # spaces depend on the next character
            before, _, data = data.partition(_UNCLOSED)
            super().handle_data(_unescaped(before), entity_char=True)
            super().handle_data("<", entity_char=True)
        super().handle_data(_unescaped(data), entity_char=True)

    def updatepos(self, i: int, j: int) -> int:
        """Count no lines: nothing reads the line number, and counting takes a tenth of the time."""
        return j

    def charref(self, name: str) -> str:
        """Replace numbers that are too long for a character, which would raise an error."""
        return super().charref(name if len(name) <= _MAX_CHARREF_CHARS else "xFFFD")


def _unescaped(data: str) -> str:
    return data.replace(_UNCLOSED, "<").replace(_AMPERSAND, "&")


def _as_text(data: str, *, is_markup: bool) -> str:
    data = _SPACE_RUN.sub(_as_one_space, data)
    if not is_markup or len(parts := _BEFORE_ESCAPED.split(data)) == 1:
        return data
    parts[1::2] = [before + "\\" for before in parts[1::2]]
    return "".join(parts)


def _as_one_space(run: re.Match[str]) -> str:
    return "\n" if "\n" in run[0] else " "


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


def _move_readings(tree: LexborHTMLParser) -> None:
    """Move ruby readings to the end of the element around their line, so that they separate no words of it."""
    lines: dict[int, tuple[LexborNode, list[str]]] = {}
    for node in reversed(tree.css("rp, rt")):  # inner nodes first, as above
        around = node.parent
        for _ in range(_MAX_RUBY_LEVELS):
            if around is None or around.tag not in _INLINE or around.parent is None:
                break
            around = around.parent
        if around is not None and node.tag == "rt" and (text := _text(node)):
            lines.setdefault(around.mem_id, (around, []))[1].append(text)
        node.decompose()
    for around, readings in lines.values():
        around.insert_child(f" ({' '.join(reversed(readings))})")


def _without_noscript(html: str) -> str:
    """Remove ``noscript`` elements. The parser would treat those in the head as text of the page."""
    parts, at = [], 0
    while start := _NOSCRIPT_START.search(html, at):
        opened = html.find(">", start.end())
        end = _NOSCRIPT_END.search(html, opened) if opened >= 0 else None
        if end is None:
            break
        parts.append(html[at : start.start()])
        at = end.end()
    return "".join([*parts, html[at:]])


def _headlines(tree: LexborHTMLParser, tag: str) -> tuple[str, ...]:
    nodes = tree.css(tag)[:_MAX_HEADLINES]
    return tuple(filter(None, (_beginning(node, max_chars=_MAX_HEADLINE_CHARS) for node in nodes)))


def _links(tree: LexborHTMLParser, base_url: str) -> list[tuple[str, str]]:
    links: list[tuple[str, str]] = []
    for node in tree.css("a[href]")[:_MAX_LINKS]:
        try:
            target = urljoin(base_url, (node.attributes.get("href") or "")[:_MAX_TARGET_CHARS])
        except ValueError:
            continue
        if target.startswith(("http://", "https://")):
            links.append((_beginning(node, max_chars=_MAX_LINK_CHARS), target))
    return links


def _unselected_options(choice: LexborNode) -> list[LexborNode]:
    """Return the options of a list that are not displayed while it is closed."""
    options = choice.css("option")
    chosen = next((n for n, option in enumerate(options) if "selected" in option.attributes), 0)
    return [*options[:chosen], *options[chosen + 1 :]]


class _Forms:
    """Facts about the forms of a page. The text of each form is read once."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._texts: dict[int, str] = {}
        self._passwords: dict[int, list[str]] = {}
        self._page_chars: int | None = None

    def login_chars(self, field: LexborNode) -> int:
        """Return the length of the visible text of the form around a field.

        A form around most of the page, as ASP.NET generates it, does not count; then the text near the field counts.
        """
        form = _enclosing_form(field)
        if form is None:
            return _near_chars(field, None)
        chars = len(self._text(form))
        if chars > _MAX_FORM_CHARS or (chars > _MAX_NEAR_CHARS and chars >= _PAGE_SHARE * self._chars_of_page()):
            return _near_chars(field, form)
        return chars

    def asks_for_new_password(self, field: LexborNode) -> bool:
        """Return whether a password field is for a new password."""
        form = _enclosing_form(field)
        own = field.attributes.get("autocomplete") or ""
        if form is None:
            return "new-password" in own
        if form.mem_id not in self._passwords:
            fields = form.css("input[type=password]")
            self._passwords[form.mem_id] = [node.attributes.get("autocomplete") or "" for node in fields]
        group = self._passwords[form.mem_id]
        return "new-password" in own or (len(group) > 1 and "current-password" not in group)

    def has_user_field(self, fields: Iterable[LexborNode]) -> bool:
        """Return whether a field asks for a user name or an e-mail address, other than for a newsletter."""
        user_fields = islice(filter(_is_named_after_user, fields), _MAX_USER_FIELDS)
        return not all(map(self._is_newsletter, map(_enclosing_form, user_fields)))

    def _is_newsletter(self, form: LexborNode | None) -> bool:
        if form is None:
            return False
        names = f"{form.attributes.get('class') or ''} {form.attributes.get('id') or ''}"
        return _NEWSLETTER_WORDS.search(f"{names} {self._text(form)[:500]}") is not None

    def _text(self, form: LexborNode) -> str:
        if form.mem_id not in self._texts:
            self._texts[form.mem_id] = _text(form)
        return self._texts[form.mem_id]

    def _chars_of_page(self) -> int:
        if self._page_chars is None:
            self._page_chars = 0 if self._tree.body is None else len(_text(self._tree.body))
        return self._page_chars


def _enclosing_form(node: LexborNode) -> LexborNode | None:
    ancestor: LexborNode | None = node.parent
    for _ in range(_MAX_NESTING):
        if ancestor is None or ancestor.tag == "form":
            return ancestor
        ancestor = ancestor.parent
    return None


def _near_chars(field: LexborNode, form: LexborNode | None) -> int:
    """Return the length of the text of the outermost element around a field with at most 400 characters of text."""
    chars, size, inner, ancestor = 0, 0, field, field.parent
    for _ in range(_MAX_NESTING):
        if ancestor is None or ancestor.tag in _ROOT_TAGS or ancestor == form:
            break
        for child in ancestor.iter(include_text=True):
            if child.mem_id != inner.mem_id:
                size += sum(len(word) + 1 for word in child.text(separator=" ").split())
            if size > _MAX_NEAR_CHARS + 1:
                return chars
        chars, inner, ancestor = max(0, size - 1), ancestor, ancestor.parent
    return chars


def _is_named_after_user(field: LexborNode) -> bool:
    labels = " ".join(
        field.attributes.get(name) or "" for name in ("name", "id", "placeholder", "aria-label", "autocomplete")
    )
    return _USER_FIELD_WORDS.search(labels) is not None


def _consent_chars(tree: LexborHTMLParser) -> int:
    """Return the length of the text in consent dialogs and overlays. Nested ones are not added up."""
    longest = measured = 0
    for node in tree.css(
        "dialog, [role=dialog], [role=alertdialog], [aria-modal=true], [style*=fixed], [style*=sticky]"
    ):
        if measured == _MAX_OVERLAYS:
            break
        names = f"{node.attributes.get('id') or ''} {node.attributes.get('class') or ''}"
        is_dialog = node.tag == "dialog" or "aria-modal" in node.attributes
        is_dialog = is_dialog or (node.attributes.get("role") or "").endswith("dialog")
        if not is_dialog and not _OVERLAY.search(node.attributes.get("style") or ""):
            continue
        text = _text(node)
        measured += 1
        if _CONSENT_NAMES.search(names) or _says_consent(node, text):
            longest = max(longest, len(text))
    return longest


def _says_consent(node: LexborNode, text: str) -> bool:
    has_words = len(text) <= _MAX_CONSENT_CHARS and _CONSENT_WORDS.search(text[:CONSENT_WORDS_WITHIN]) is not None
    return has_words and node.css_first(_CONTENT) is None


def _text(node: LexborNode) -> str:
    return " ".join(node.text(separator=" ").split())


def _beginning(node: LexborNode, *, max_chars: int) -> str:
    """Return the first characters of a node's text, from a limited number of nodes."""
    parts: list[str] = []
    chars = 0
    for inner in islice(node.traverse(include_text=True), _MAX_NODES):
        if inner.tag == "-text":
            parts.append((inner.text_content or "")[: 4 * max_chars])
            chars += len(parts[-1])
            if chars >= 4 * max_chars:
                break
    return " ".join(" ".join(parts).split())[:max_chars]

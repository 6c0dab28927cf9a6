"""Text representation of a pruned page (contracts/mind2web.md, 3.2).

There are two forms: HTML brackets for chat models, round brackets for fine-tuned models and the ranker. The order of
the replacements is part of the format, because published scores depend on it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from lxml import etree

from judges.suites.mind2web.page import ID, TEXT, Element, Page

SALIENT = (
    "role",
    "aria_role",
    "type",
    "alt",
    "aria_description",
    "aria_label",
    "label",
    "title",
    "name",
    "text_value",
    "value",
    "placeholder",
    "input_checked",
    "input_value",
    "option_selected",
    "class",
)
"""Shown attributes, in this order."""
MEANINGLESS = frozenset({"hidden", "none", "presentation", "null", "undefined"})
MAX_WORD_CHARS = 14
MAX_ATTRIBUTE_WORDS = 5
MAX_WORDS = 20
"""Limit for all attributes of an element together, and for a text."""
OPTION_WORDS = 10

_TEXT_TAGS = re.compile(r"<text>(.*?)</text>")
_END_TAG = re.compile(r"</.+?>")
_START_TAG = re.compile(r"<(.+?)>")
_SELF_CLOSED = "\0"
"""Mark of ``/>``. XML cannot contain it."""
_ESCAPES = (
    ("&quot;", '"'),
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&nbsp;", " "),
    ("&ndash;", "-"),
    ("&rsquo;", "'"),
    ("&lsquo;", "'"),
    ("&ldquo;", '"'),
    ("&rdquo;", '"'),
    ("&#39;", "'"),
    ("&#40;", "("),
    ("&#41;", ")"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPage:
    """Representation of a page for a model.

    ``options`` are (backend_node_id, text) in document order. The index of an option is the ``id`` of its element in
    ``context``.
    """

    context: str
    options: tuple[tuple[str, str], ...]

    @property
    def numbers(self) -> dict[str, int]:
        """The index of each candidate."""
        return {id: number for number, (id, _) in enumerate(self.options)}


def show_page(page: Page, candidate_ids: tuple[str, ...], *, html_brackets: bool = True) -> ShownPage:
    """Return the page around the candidates, with each candidate as an option.

    Raises:
        PageUnusable: a candidate is not in the page.
    """
    root = page.pruned(candidate_ids)
    numbered = number_candidates(root)
    return ShownPage(
        context=bracket_text(root, html_brackets=html_brackets),
        options=tuple(
            (id, first_words(bracket_text(element, html_brackets=html_brackets), OPTION_WORDS))
            for id, element in numbered
        ),
    )


def number_candidates(root: Element) -> list[tuple[str, Element]]:
    """Reduce the attributes of a pruned tree in place to ``id`` (candidates only) and ``meta``.

    Returns (backend_node_id, element) of the candidates in document order; the index is the new ``id``.
    """
    candidates: list[tuple[str, Element]] = []
    for element in root.iter(etree.Element):
        if element.tag == TEXT:
            element.text = " ".join((element.text or "").split()[:MAX_WORDS])
            continue
        attributes = element.attrib
        if not attributes:
            continue
        salient = tuple(attributes.get(name, "") for name in SALIENT)
        id = attributes.get(ID)
        attributes.clear()
        if id is not None:
            attributes["id"] = str(len(candidates))
            candidates.append((id, element))
        if meta := _salient_words(salient):
            attributes["meta"] = meta
    return candidates


def bracket_text(element: Element, *, html_brackets: bool) -> str:
    """Return the text of one numbered element and its descendants, on one line."""
    text = etree.tostring(element, encoding="unicode", with_tail=False)
    text = text.replace('"', " ").replace("meta= ", "").replace("id= ", "id=").replace(" >", ">")
    text = _TEXT_TAGS.sub(r"\1", text)
    if not html_brackets:
        text = text.replace("/>", f"{_SELF_CLOSED}>")
        text = _END_TAG.sub(")", text)
        text = _START_TAG.sub(r"(\1", text).replace(_SELF_CLOSED, ")")
    if "&" in text:
        for escaped, plain in _ESCAPES:
            text = text.replace(escaped, plain)
    return " ".join(text.split())


def attribute_words(attributes: str) -> str:
    """Return the salient words of a candidate's attributes, a JSON object as text. Malformed text has none."""
    try:
        values = json.loads(attributes) if attributes else {}
    except (ValueError, RecursionError):
        return ""
    if not isinstance(values, dict):
        return ""
    return _salient_words(tuple(value if isinstance(value := values.get(name), str) else "" for name in SALIENT))


def first_words(text: str, count: int) -> str:
    return " ".join(text.split()[:count])


@lru_cache(maxsize=4096)
def _salient_words(values: tuple[str, ...]) -> str:
    """Return the text of attribute values, which are given in the order of ``SALIENT``; missing ones are empty."""
    unique: dict[str, None] = {}
    for value in values:
        lowered = value.lower()
        if not value or lowered in MEANINGLESS or lowered.startswith("http"):
            continue
        words = [word for word in lowered.split() if len(word) <= MAX_WORD_CHARS][:MAX_ATTRIBUTE_WORDS]
        if words:
            unique[" ".join(words)] = None
    return " ".join(" ".join(unique).split()[:MAX_WORDS])

"""Page of a Mind2Web step: XML elements with ``backend_node_id``, pruned around candidates and represented as text.

Pruning follows docs/mind2web-rules.md. A page is parsed once. Each round copies only the kept elements, so its cost
depends on the number of shown elements and not on the size of the page.

The text representation (docs/mind2web-rules.md) has two forms: HTML brackets for chat models, round brackets for
fine-tuned models and the ranker. The order of the replacements is part of the format, because published scores depend
on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from lxml import etree

from judges.suites.errors import PageUnusable

Element: TypeAlias = etree._Element

ID = "backend_node_id"
TEXT = "text"
MAX_DEPTH = 6
MAX_DESCENDANTS = 50
MAX_SIBLINGS = 3
"""On each side."""


class Page:
    """Parsed page. Treat it as immutable: pruning returns a copy."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self._by_id: dict[str, Element] = {}
        for element in root.iter(etree.Element):
            self._by_id.setdefault(element.get(ID, ""), element)

    @classmethod
    def parse(cls, cleaned_html: str) -> Page:
        """Parse ``cleaned_html``. Nothing is downloaded, and entities are not resolved.

        White space, comments and processing instructions are kept, because the published evaluation shows them.

        Raises:
            PageUnusable: the text is not well-formed XML.
        """
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        try:
            return cls(etree.fromstring(cleaned_html.encode("utf-8", "surrogatepass"), parser))
        except etree.XMLSyntaxError as error:
            raise PageUnusable(f"cleaned_html is not well-formed XML: {error.msg}") from error

    def element(self, id: str) -> Element:
        """Return the element with this ``backend_node_id``, the first one if there are several.

        Raises:
            PageUnusable: there is no such element.
        """
        element = self._by_id.get(id) if id else None
        if element is None:
            raise PageUnusable(f"candidate {id!r} is not in cleaned_html")
        return element

    def candidate(self, id: str) -> Element:
        """Return the element of a candidate.

        Raises:
            PageUnusable: there is none, or it is a ``<text>`` element.
        """
        element = self.element(id)
        if element.tag == TEXT:
            raise PageUnusable(f"candidate {id!r} is a <text> element, which has no actions")
        return element

    def contains(self, id: str) -> bool:
        return bool(id) and id in self._by_id

    def pruned(self, candidate_ids: Iterable[str]) -> Element:
        """Return the root of a copy that contains only the surroundings of the candidates.

        Only the candidates keep their ``backend_node_id``.

        Raises:
            PageUnusable: a candidate is not in the page, or is a ``<text>`` element.
        """
        candidates_shown = frozenset(candidate_ids)
        keep = {id for candidate in candidates_shown for id in self._around(candidate)}
        copy = _copy_kept(self.root, keep)
        for element in reversed(list(copy.iter(etree.Element))):
            _simplify(element, candidates_shown)
        return copy

    def _around(self, candidate: str) -> Iterator[str]:
        """Yield the ids of a candidate, its ancestors, its first descendants and its nearest siblings."""
        element = self.candidate(candidate)
        yield candidate
        for ancestor in element.iterancestors():
            yield ancestor.get(ID, "")
        for descendant in islice(_descendants(element, MAX_DEPTH), MAX_DESCENDANTS):
            yield descendant.attrib.get(ID, "")
        if element.getparent() is not None:
            for preceding in (True, False):
                # Text elements do not count as siblings; comments and processing instructions do.
                siblings = (one for one in element.itersiblings(preceding=preceding) if one.tag != TEXT)
                yield from (one.attrib.get(ID, "") for one in islice(siblings, MAX_SIBLINGS))


def _descendants(element: Element, levels: int) -> Iterator[Element]:
    """Yield the descendants, including comments, in document order, down to ``levels`` levels."""
    for child in element.iterchildren():
        yield child
        if levels > 1:
            yield from _descendants(child, levels - 1)


def _copy_kept(root: Element, keep: set[str]) -> Element:
    """Copy the root with the descendants whose ids are in ``keep``, and their texts and comments.

    A removed element also removes the white space after it, as in lxml.
    """
    copy = etree.Element(root.tag, dict(root.attrib))
    copy.text = root.text
    pending = [(root, copy)]
    while pending:
        source, target = pending.pop()
        has_text = source.get(ID, "") in keep
        for child in source.iterchildren():
            if isinstance(child, etree._Comment | etree._ProcessingInstruction):
                target.append(deepcopy(child))
                continue
            if isinstance(child, etree._Entity):
                continue
            is_text = child.tag == TEXT
            if not (has_text if is_text else child.get(ID, "") in keep):
                continue
            copied = etree.SubElement(target, child.tag, dict(child.attrib))
            copied.text, copied.tail = child.text, child.tail
            if len(child):
                pending.append((child, copied))
    return copy


def _simplify(element: Element, candidate_ids: frozenset[str]) -> None:
    """Remove the id of an element that is not a candidate, then the element if it carries no information."""
    is_text = element.tag == TEXT
    if ID in element.attrib and (is_text or element.get(ID) not in candidate_ids):
        del element.attrib[ID]
    parent = element.getparent()
    if is_text or element.attrib or len(element) > 1 or parent is None:
        return
    if not len(element):
        parent.remove(element)
    elif element[0].tag != TEXT:
        parent.replace(element, element[0])


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

"""Page of a Mind2Web step: XML elements with ``backend_node_id``, pruned around candidates.

Pruning follows contracts/mind2web.md, 3.1. A page is parsed once. Each round copies only the kept elements, so its cost
depends on the number of shown elements and not on the size of the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import islice
from typing import TypeAlias

from lxml import etree

from judges.suites.mind2web.errors import PageUnusable

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

"""A page of the benchmark: XML whose elements carry ``backend_node_id``, and the part of it around some candidates.

Pruning follows contracts/mind2web.md, 3.1. The page is parsed once; what is kept around a few candidates is copied out
of it, so that a round costs what it shows and not what the page is long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    """One parsed page. Not to be changed: what is pruned is a copy."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self._by_id: dict[str, Element] = {}
        for element in root.iter(etree.Element):
            self._by_id.setdefault(element.get(ID, ""), element)

    @classmethod
    def parse(cls, cleaned_html: str) -> Page:
        """Read ``cleaned_html``. White space is kept, entities are not resolved, nothing is fetched.

        Raises:
            PageUnusable: it is not well-formed.
        """
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
        )
        try:
            return cls(etree.fromstring(cleaned_html.encode("utf-8", "surrogatepass"), parser))
        except etree.XMLSyntaxError as error:
            raise PageUnusable(f"cleaned_html is not well-formed XML: {error.msg}") from error

    def element(self, id: str) -> Element:
        """The element with this ``backend_node_id``, the first if there are several.

        Raises:
            PageUnusable: the page has none.
        """
        found = self._by_id.get(id) if id else None
        if found is None:
            raise PageUnusable(f"candidate {id!r} is not in cleaned_html", element=id)
        return found

    def holds(self, id: str) -> bool:
        return bool(id) and id in self._by_id

    def pruned(self, candidate_ids: Iterable[str]) -> Element:
        """The root of a copy that holds what surrounds the candidates. They alone carry their ``backend_node_id``.

        Raises:
            PageUnusable: a candidate is not in the page.
        """
        shown = frozenset(candidate_ids)
        keep = {id for candidate in shown for id in self._around(candidate)}
        copy = _copy_kept(self.root, keep)
        for element in reversed(list(copy.iter())):
            _simplify(element, shown)
        return copy

    def _around(self, candidate: str) -> Iterator[str]:
        """The ids of a candidate, its ancestors, its first descendants and its near siblings."""
        element = self.element(candidate)
        yield candidate
        for ancestor in element.iterancestors():
            yield ancestor.get(ID, "")
        for descendant in islice(_descendants(element, MAX_DEPTH), MAX_DESCENDANTS):
            yield descendant.get(ID, "")
        parent = element.getparent()
        if parent is not None:
            # A text is no sibling, and does not count as a place between two.
            yield from (one.get(ID, "") for one in islice(_beside(element, preceding=True), MAX_SIBLINGS))
            yield from (one.get(ID, "") for one in islice(_beside(element, preceding=False), MAX_SIBLINGS))


def _beside(element: Element, *, preceding: bool) -> Iterator[Element]:
    return (one for one in element.itersiblings(etree.Element, preceding=preceding) if one.tag != TEXT)


def _descendants(element: Element, levels: int) -> Iterator[Element]:
    """In document order, ``levels`` deep."""
    for child in element.iterchildren(etree.Element):
        yield child
        if levels > 1:
            yield from _descendants(child, levels - 1)


def _copy_kept(root: Element, keep: set[str]) -> Element:
    """A copy of the root with those descendants whose ids are kept, and the texts of all that are.

    An element that is left out takes the white space after it along, as it does when lxml removes it.
    """
    copy = etree.Element(root.tag, dict(root.attrib))
    copy.text = root.text
    waiting = [(root, copy)]
    while waiting:
        source, target = waiting.pop()
        has_text = source.get(ID, "") in keep
        for child in source.iterchildren(etree.Element):
            is_text = child.tag == TEXT
            if not (has_text if is_text else child.get(ID, "") in keep):
                continue
            made = etree.SubElement(target, child.tag, dict(child.attrib))
            made.text, made.tail = child.text, child.tail
            if len(child):
                waiting.append((child, made))
    return copy


def _simplify(element: Element, shown: frozenset[str]) -> None:
    """Drop the id of an element that is no candidate, then the element itself if it says nothing."""
    is_text = element.tag == TEXT
    if ID in element.attrib and (is_text or element.get(ID) not in shown):
        del element.attrib[ID]
    parent = element.getparent()
    if is_text or element.attrib or len(element) > 1 or parent is None:
        return
    if not len(element):
        parent.remove(element)
    elif element[0].tag != TEXT:
        parent.replace(element, element[0])

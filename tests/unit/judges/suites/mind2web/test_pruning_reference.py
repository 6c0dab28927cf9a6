"""Pruning by copying compared with a direct implementation of the specification, which removes nodes from a copy."""

from __future__ import annotations

import copy

from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from judges.suites.mind2web.page import ID, Page


def direct_pruning(root, candidates):
    """Implement contracts/mind2web.md, 3.1, sentence by sentence."""
    nodes = {node.get(ID): node for node in reversed(list(root.iter(etree.Element)))}
    keep = set()

    def descendants(node, depth=0):
        for child in node:
            yield child
            if depth < 5:
                yield from descendants(child, depth + 1)

    for id in candidates:
        node = nodes[id]
        keep.add(id)
        keep |= {ancestor.get(ID) for ancestor in node.iterancestors()}
        keep |= {one.attrib.get(ID) for one in list(descendants(node))[:50]}
        if node.getparent() is not None:
            siblings = [one for one in node.getparent() if one.tag != "text"]
            place = siblings.index(node)
            keep |= {sibling.attrib.get(ID) for sibling in siblings[max(0, place - 3) : place + 4]}
    tree = copy.deepcopy(root)
    for node in reversed(list(tree.iter(etree.Element))):
        parent = node.getparent()
        kept = (parent.get(ID) if node.tag == "text" else node.get(ID)) in keep
        if not kept and parent is not None:
            parent.remove(node)
            continue
        if node.get(ID) not in candidates or node.tag == "text":
            node.attrib.pop(ID, None)
        plain = not node.attrib and node.tag != "text" and len(node) <= 1 and parent is not None
        if plain and not any(child.tag == "text" for child in node):
            if len(node):
                parent.replace(node, node[0])
            else:
                parent.remove(node)
    return tree


@st.composite
def pages(draw):
    """Draw a page with some white space, and some of its elements."""
    size = draw(st.integers(1, 60))
    parents = [draw(st.integers(0, place)) for place in range(size)]
    root = etree.Element("html", {ID: "0"})
    elements = [root]
    for number, parent in enumerate(parents, start=1):
        holder = elements[parent] if elements[parent].tag != "text" else root
        if draw(st.integers(0, 9)) == 0:
            remark = draw(st.sampled_from([etree.Comment, etree.ProcessingInstruction]))("note")
            remark.tail = draw(st.sampled_from([None, " "]))
            holder.append(remark)
        tag = draw(st.sampled_from(["div", "div", "a", "text"]))
        element = etree.SubElement(holder, tag, {ID: str(number)})
        if tag == "a" and draw(st.booleans()):
            element.set("title", f"title {number}")
        element.text = f"words {number}" if tag == "text" else draw(st.sampled_from([None, "\n  "]))
        element.tail = draw(st.sampled_from([None, " ", "\n"]))
        elements.append(element)
    normal = [element.get(ID) for element in elements if element.tag != "text"]
    return root, draw(st.lists(st.sampled_from(normal), min_size=1, max_size=5, unique=True))


@settings(max_examples=30, deadline=None)
@given(pages())
def test_pruning_equals_the_direct_implementation(made):
    root, candidates = made
    text = etree.tostring(root, encoding="unicode")
    wanted = etree.tostring(direct_pruning(etree.fromstring(text), candidates), encoding="unicode")
    assert etree.tostring(Page.parse(text).pruned(candidates), encoding="unicode") == wanted

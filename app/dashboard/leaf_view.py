"""Data of the leaf panel: effect, votes, quotes with their context in the pages, sources and their captures."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.dashboard.answer_html import page_mark
from app.dashboard.api_access import Api
from app.dashboard.effects import Effect
from app.dashboard.outline import Node
from app.dashboard.passages import Passage, passages, text_fragment_url
from app.dashboard.result_cache import Tree
from app.dashboard.wording import copies_words
from rubrics.tree_json import page_digests_of
from rubrics.verdict import Outcome

_MAX_BOXES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Rectangle in a screenshot. The full width and height of the screenshot are ``Places.unit`` each."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Boxes of quotes by screenshot number.

    ``top`` is the first screenshot with a box, and the vertical position of its topmost box (0 to 1); None: no position
    is known.
    """

    unit: int
    boxes: Mapping[int, Sequence[Box]]
    top: tuple[int, float] | None


def places_of(known: Mapping[str, Any] | None, spans: Sequence[tuple[int, int]]) -> Places:
    """Return the boxes of the lines that contain ``spans``. Lines are cut where a span begins or ends.

    Positions within a line are estimated as if all characters had the same width.
    """
    lines: Sequence[Sequence[int]] = (known or {}).get("lines") or ()
    unit = int((known or {}).get("unit") or 1)
    starts = [line[0] for line in lines]
    boxes: dict[int, list[Box]] = {}
    for low, high in spans:
        first_line = max(0, bisect_right(starts, low) - 1)
        for start, end, screenshot, *box in lines[first_line : first_line + _MAX_BOXES]:
            if start >= high:
                break
            if end > low:
                boxes.setdefault(screenshot, []).append(_box_of_part(start, end, box, low, high))
    first = min(boxes, default=None)
    top = None if first is None else (first, min(box.top for box in boxes[first]) / unit)
    return Places(unit=unit, boxes=boxes, top=top)


def _box_of_part(start: int, end: int, box: Sequence[int], low: int, high: int) -> Box:
    left, top, width, height = box
    char_width = width / max(1, end - start)
    start_offset, end_offset = max(start, low) - start, min(end, high) - start
    return Box(
        left=left + round(start_offset * char_width),
        top=top,
        width=max(1, round((end_offset - start_offset) * char_width)),
        height=height,
    )


_SCREENSHOT = "screenshot-"
MAX_QUOTED_PAGES = 12
MAX_CLOSEST_PAGES = 3
_MAX_CLAIM_CHARS = 2_000
_EVIDENCE_OUTCOMES = frozenset({"ok", "partial"})
_NO_PAGE = dict.fromkeys(("url", "title", "kind", "source"), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedPage:
    """Page with quotes of the leaf, or with the passage closest to its claim.

    Attributes:
        page: The capture as the API returns it.
        passages: The quotes with the text around them.
        spans: Ranges of the quotes in the text.
        is_closest: The only span is the closest passage, found by code, and no quote.
        from_images: Quotes that were transcribed from screenshots.
        mismatched: Quotes that the stored text does not contain at the recorded position.
        places: Boxes of the quotes in the screenshots.
        screenshots: Numbers of the screenshots.
        live: Address that shows the first quote in the page of today; "": none.
    """

    page_id: str
    page: Mapping[str, Any]
    passages: Sequence[Passage]
    spans: Sequence[tuple[int, int]]
    is_closest: bool
    from_images: Sequence[str]
    mismatched: Sequence[str]
    places: Places
    screenshots: Sequence[int]
    live: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafView:
    """Content of a leaf panel.

    ``sources`` are triples (URL, page of the result or None, judgement or ""). ``has_votes_by_source``: the judgements
    name all votes. ``votes`` are the different votes, with their numbers. ``number`` is the position of a leaf
    among all leaves, from 1. ``neighbours`` are leaves by the name of the step that leads there: ``previous``,
    ``next``, ``previous-missed``, ``next-missed``.
    """

    node: Node
    number: int | None
    neighbours: Mapping[str, Node]
    effect: Effect
    path: Sequence[Node]
    sources: Sequence[tuple[str, Mapping[str, Any] | None, str]]
    has_votes_by_source: bool
    votes: Sequence[tuple[Mapping[str, Any], int]]
    quoted: Sequence[QuotedPage]
    blocker: Node | None
    marks: str
    page_digests: Sequence[str]
    copies: Mapping[str, str]
    """What is known about supplied pages and their captures, by page id."""


async def leaf_view(api: Api, result: Mapping[str, Any], tree: Tree, key: str) -> LeafView:
    """Return the panel of a leaf or inner node; read its pages from the API."""
    node = tree.outline.by_key[key]
    pages = {page["url"]: page for page in result.get("pages") or ()}
    by_mark = {page_mark(url): page for url, page in pages.items()}
    urls = node.fields.get("sources") or ()
    quotes = node.fields.get("quotes") or ()
    evidence = node.fields.get("evidence")
    checks = evidence.get("checks") or () if isinstance(evidence, Mapping) else ()  # a list in schema version 1
    votes = list(node.fields.get("votes") or ())
    judgements = {check["url"]: _judgement(check) for check in checks}
    sources = [(url, pages.get(url) or by_mark.get(page_mark(url)), judgements.get(url, "")) for url in urls]
    quoted_pages = list(dict.fromkeys(str(quote["page_id"]) for quote in quotes))[:MAX_QUOTED_PAGES]
    return LeafView(
        node=node,
        number=None if node.number is None else node.number + 1,
        neighbours=_neighbours(tree, node),
        effect=tree.effects[key],
        path=tree.outline.path(key)[:-1],
        sources=sources,
        has_votes_by_source=bool(urls) and sum(len(each["votes"]) for each in checks) == len(votes),
        votes=[(each, votes.count(each)) for nth, each in enumerate(votes) if votes.index(each) == nth],
        quoted=[
            *[await _quoted_page(api, each, [q for q in quotes if q["page_id"] == each]) for each in quoted_pages],
            *await _closest(api, node, [page for _, page, _ in sources if page], quoted_pages),
        ],
        blocker=tree.outline.by_id(node.fields.get("blocked_by")),
        marks=" ".join(page_mark(url) for url in urls),
        page_digests=page_digests_of(node.fields),
        copies={str(page["page_id"]): copies_words(page) for _, page, _ in sources if page},
    )


def _neighbours(tree: Tree, node: Node) -> dict[str, Node]:
    place = -1 if node.number is None else node.number  # from a group, the next leaf is the first one
    missed = tree.not_passed
    below = bisect_left(missed, place, key=_number)
    above = bisect_right(missed, place, key=_number)
    steps = {
        "previous": tree.outline.leaves[max(place - 1, 0) : max(place, 0)],
        "next": tree.outline.leaves[place + 1 : place + 2],
        "previous-missed": missed[max(below - 1, 0) : below],
        "next-missed": missed[above : above + 1],
    }
    return {name: leaves[0] for name, leaves in steps.items() if leaves}


def _number(leaf: Node) -> int:
    return leaf.number or 0


def _judgement(check: Mapping[str, Any]) -> str:
    """Describe the judgement on one source. A source without a model's reasoning has no verdict."""
    votes = check.get("votes") or ()
    counted = f", {sum(votes)} of {len(votes)} votes" if len(votes) > 1 else ""
    if check["passed"]:
        return f"supports the claim{counted}"
    if check["reasoning"] is not None:
        return f"does not support the claim{counted}"
    return f"no verdict: {check['note']}" if check.get("note") else "no verdict"


async def _closest(api: Api, node: Node, pages: Sequence[Mapping[str, Any]], quoted: Sequence[str]) -> list[QuotedPage]:
    """Return the pages of a claim with the passages closest to it, closest first. A supported claim has quotes."""
    claim = node.fields.get("claim")
    if not claim or (quoted and node.outcome == Outcome.PASSED):
        return []
    query = str(claim)[:_MAX_CLAIM_CHARS].encode("utf-8", "replace").decode()  # JSON can contain lone surrogates
    usable = [page for page in pages if page.get("page_id") and page["outcome"] in _EVIDENCE_OUTCOMES]
    ids = dict.fromkeys(str(page["page_id"]) for page in usable)
    found: list[tuple[float, QuotedPage]] = []
    for page_id in [each for each in ids if each not in quoted][:MAX_CLOSEST_PAGES]:
        closest = await api.get_or_none(f"/v1/pages/{page_id}/closest", claim=query)
        passage = closest and closest["passage"]
        if passage:
            text = await api.text(f"/v1/pages/{page_id}/text") or ""
            spans = [(int(passage["start"]), int(passage["end"]))]
            found.append((passage["score"], await _page_with(api, page_id, text, spans, is_closest=True)))
    return [page for _, page in sorted(found, key=lambda each: -each[0])]


async def _quoted_page(api: Api, page_id: str, quotes: Sequence[Mapping[str, Any]]) -> QuotedPage:
    text = await api.text(f"/v1/pages/{page_id}/text") or ""
    in_text = [quote for quote in quotes if quote.get("origin", "text") == "text"]
    spans = [(int(q["start"]), int(q["end"])) for q in in_text if text[int(q["start"]) : int(q["end"])] == q["text"]]
    return await _page_with(
        api,
        page_id,
        text,
        spans,
        from_images=[str(q["text"]) for q in quotes if q.get("origin") == "image"],
        mismatched=[str(q["text"]) for q in in_text if text[int(q["start"]) : int(q["end"])] != q["text"]],
    )


async def _page_with(
    api: Api,
    page_id: str,
    text: str,
    spans: Sequence[tuple[int, int]],
    *,
    is_closest: bool = False,
    from_images: Sequence[str] = (),
    mismatched: Sequence[str] = (),
) -> QuotedPage:
    page = await api.get_or_none(f"/v1/pages/{page_id}") or _NO_PAGE
    return QuotedPage(
        page_id=page_id,
        page=page,
        passages=passages(text, spans),
        spans=spans,
        is_closest=is_closest,
        from_images=from_images,
        mismatched=mismatched,
        places=places_of(await api.get_or_none(f"/v1/pages/{page_id}/places") if spans else None, spans),
        screenshots=screenshot_numbers(page),
        live=text_fragment_url(page["url"], text[slice(*spans[0])]) if spans and page["kind"] == "web" else "",
    )


def screenshot_numbers(page: Mapping[str, Any]) -> list[int]:
    """Return the numbers of a page's screenshots, from the top."""
    names = (name for name in page.get("blobs") or () if name.startswith(_SCREENSHOT))
    return sorted(int(name.removeprefix(_SCREENSHOT)) for name in names if name.removeprefix(_SCREENSHOT).isdigit())

# ruff: noqa: RUF001 - punctuation and digits of other scripts
"""Citation marks in the text of a report: numbers, footnotes, links, URLs and author-year citations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from answers.binding.references import CIRCLED, Entry, References, circled_number, label_key, note_key
from answers.citations import Citation, CitationKind, MarkdownStructure
from answers.errors import TooManyParts

MAX_MARKS = 30_000
MAX_RANGE = 60
"""Number of sources in a range such as ``[2-4]``. A longer one is not a citation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMark:
    """Mark with the entries or URL that it refers to; ``targets`` has a None for each number without an entry."""

    start: int
    end: int
    targets: tuple[Entry | Citation | None, ...]
    is_number: bool
    """Whether the mark is not part of the sentence's words, so it may follow the full stop."""


def find_marks(text: str, cited: Sequence[Citation], references: References, masked: bytearray) -> list[FoundMark]:
    """Return the marks outside code, mathematics and reference entries, in text order, without overlaps.

    Raises:
        TooManyParts: There are more than ``MAX_MARKS``.
    """
    finder = _MarkFinder(text, references)
    excluded = bytearray(masked)
    for entry in references.entries:
        excluded[entry.start : entry.end] = b"\1" * (entry.end - entry.start)
    strong = [finder.links(cited), finder.bracket_ranges(), finder.brackets(), finder.tags(), finder.cites()]
    strong += [finder.narratives(), finder.of_products()]
    kept = _without_overlaps(_in_text(strong, excluded))
    kept = _without_overlaps(kept + _in_text([finder.superscripts(), finder.circled(), finder.parentheses()], excluded))
    if references.has_numbers and not any(_is_numbered(target) for mark in kept for target in mark.targets):
        kept = _without_overlaps(kept + _in_text([finder.plain_numbers()], excluded))
    return kept


def _is_numbered(target: Entry | Citation | None) -> bool:
    return isinstance(target, Entry) and isinstance(target.key, int)


def _in_text(found: Iterable[Iterable[FoundMark]], excluded: bytearray) -> list[FoundMark]:
    marks: list[FoundMark] = []
    count = 0
    for mark in chain.from_iterable(found):
        if excluded[mark.start]:
            continue
        marks.append(mark)
        count += len(mark.targets)
        if count > MAX_MARKS:
            raise TooManyParts(MAX_MARKS, "citation marks")
    return marks


def _without_overlaps(marks: list[FoundMark]) -> list[FoundMark]:
    marks.sort(key=lambda mark: (mark.start, -mark.end))
    kept: list[FoundMark] = []
    end = 0
    for mark in marks:
        if mark.start >= end:
            kept.append(mark)
            end = mark.end
    return kept


_PREFIX = (
    r"(?:(?:re)?sources?|refs?\.?|references?|cite|cit|citations?|web ?pages?|web|docs?|see"
    r"|来源|引用|参考|参考文献|文献|出典|资料|資料|注)"
)
_SEPARATOR = r"(?:\s{0,3}(?:[-‐‑–—−~～,;，、；&]|和|与|及|と)\s{0,3}|\s{1,3}(?:and|und|et|y|e|и)\s{1,3})"
_NUMBERS = re.compile(
    rf"\s{{0,3}}(?:{_PREFIX}[\s:：#_.]{{0,3}})?(?P<numbers>\^?\d{{1,4}}\^?(?:{_SEPARATOR}(?:{_PREFIX}[\s:#_]{{0,3}})?\^?\d{{1,4}}\^?)*)"
    r"(?P<rest>(?::\d{1,4})?†.*|[,:;]?\s{1,3}(?:pp?|pages?|sections?|sec|chapters?|ch|tables?|figs?|figures?|lines?|paras?|§)\b.*)?\s{0,3}",
    re.I | re.S,
)
_PART = re.compile(r"\^?(\d{1,4})|([-‐‑–—−~～])")
_BRACKET = re.compile(r"\\?([\[［【〔])([^\[\]［］【】〔〕\n\\]{1,160})\\?[\]］】〕]")
_BRACKET_RANGE = re.compile(r"\[(\d{1,4})\][-‐‑–—]\[(\d{1,4})\]")
_ANCHOR = re.compile(r"\((?:#[^()\s]{0,200}(?:\([^()\s]{0,50}\))?)(?:\s[\"'][^\"'\n]{0,200}[\"'])?\)")
_INDEXED_NAME = re.compile(
    r"(?<![\w'’])(?:arr|array|args|argv|nums|dp|idx|buf|vec|matrix)\Z|(?<![\w'’])[a-z_]\Z|[A-Za-z0-9]_\w{0,30}\Z|[a-z_]\([a-z]?\)\Z"
)
_INDEXED = re.compile(r"\s{0,2}(?:[-+*/]?=(?!=)\s|==|\.[a-z_]\w*\b(?!\.\w*/))")
_INTERVAL_BEFORE = re.compile(
    r"(?:\b(?:ranges?|intervals?|within|between|scaled?|vector|shape|matrix|array|values? in)|∈|=|区间|范围)"
    r"(?: of| in| to| from)?\s*\Z",
    re.I,
)
_TAG = re.compile(
    r"<sup(?: [^<>\n]{0,200})?>\s{0,3}(?:<a [^<>\n]{0,300}>\s{0,3})?\[?(\d{1,4}(?:\s{0,3}[-–—,;]\s{0,3}\d{1,4})*)\]?"
    r"\s{0,3}(?:</a>\s{0,3})?</sup>",
    re.I,
)
_SUPERSCRIPT = re.compile(r"[⁰¹²³⁴-⁹]{1,4}(?:\s?[⁻,˒ʼ·‧،⸴﹐᛫–-]\s?[⁰¹²³⁴-⁹]{1,4})*")
_CIRCLED = re.compile(rf"(?<=\S)[{CIRCLED}]{{1,20}}")
_UNIT_BEFORE = re.compile(
    r"(?:(?<![^\W_])(?:[kcdmµμnhM]?m|ft|in|yd|mi|s|[a-zA-Zα-ωΑ-Ω]|mc|km|kg|ha|sec|Adj\.? R|log|sin|cos)"
    r"|[)\]}\d]|[₀-₉])\Z"
)
_YEAR_BEFORE = re.compile(r"(?<!\d)(?:19|20)\d\d[)）]?\Z|[A-Za-z一-龥]{3,}[)）]\Z")
_SUPER_TO_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_OF_PRODUCT = re.compile(
    r"\ue200[^\ue200\ue201\n]{0,400}\ue201|[\ue200-\ue206]"
    r"|(?<![\w-])(?:file)?cite(?:\ue202?turn\d{1,3}(?:search|news|view|fetch|file|academia|image|product)\d{1,3}){1,20}(?!\w)"
    r"|:contentReference\[oaicite:\d{1,4}\](?:\{index=\d{1,4}\})?|[【\[]oaicite:\d{1,4}[】\]]"
)
"""Citations in the internal form of a product, which it replaces when it shows an answer. Copies contain them."""
_CITE = re.compile(r"<(cite|ref)>\s{0,3}([^<>\n]{1,100})</\1>", re.I)
_PLAIN = re.compile(
    r"(?P<before>[^\W\d_]{1,30}|(?<!\d)(?:19|20)\d\d|\d(?= \d{1,3}(?:, ?\d{1,3}){0,8} ?\|)|[)）\]”\"'’%»」』*_])"
    r"(?:[.!?。！？；][”\"'’»」』*_]{0,3}(?P<glued>\d{1,3}(?:[,，]\s?\d{1,3}){0,8})(?=\s|$|[|)）<一-龥])"
    r"|[ \t](?P<apart>\d{1,3}(?:[,，]\s?\d{1,3}){0,8})(?=[.,](?!\s?\d)|[!?。！？；，、]|[ \t]*(?:\n|\||$)))"
)
_COUNTED = re.compile(
    r"(?:(?<![^\W_])(?:chapters?|chs?|sections?|secs?|figures?|figs?|tables?|eqs?|equations?|parts?|phases?|stages?|levels?|tiers?"
    r"|types?|versions?|v|vols?|volumes?|steps?|grades?|class|classes|top|nos?|numbers?|pp?|pages?|articles?|arts?"
    r"|rule|rules|days?|weeks?|months?|years?|age|aged|group|category|step|item|option|question|appendix|annex"
    r"|of|to|than|by|about|in|is|was|were|are|at|from|over|under|least|most|and|or|only|nearly|around|approximately"
    r"|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t|tember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|covid|web|industry|fortune|windows|python|gpt)|[共第约为有达到于图表])\Z",
    re.I,
)
_ABBREVIATED = re.compile(r"(?<![^\W_])(?:nos?|pp?|vols?|v|figs?|chs?|secs?|arts?|eqs?|tabs?)\Z", re.I)
_MAX_SKIPPED = 5
"""Largest gap between a plain number and the numbers before it: sources are numbered in the order of first use."""
_ROUND = re.compile(
    rf"[(（](?P<prefix>(?:see )?{_PREFIX}(?:[\s:：#]{{1,3}}|(?<=[一-龥])))?(\d{{1,3}}(?:{_SEPARATOR}\d{{1,3}})*)[)）]",
    re.I,
)
_AFTER_ROUND = re.compile(r"\s{0,3}(?:[.,;:!?。，；：！？、|(（]|$|\n)")
_ENUMERATION_BEFORE = re.compile(r"(?:[:;,：；，、]|\b(?:and|or|und|y|et)|^|\n)[ \t]*\Z")
_YEARS = re.compile(r"(?<!\d)(?:19|20)\d\d[a-z]?(?!\d)")
_AUTHOR_GROUP = re.compile(r"[(（\[]([^()（）\[\]\n]{5,240})[)）\]]")
_NAME = re.compile(r"[^\W\d_][\w'’.&-]{0,40}")
_NARRATIVE = re.compile(
    r"(?<![\w-])(?P<name>[^\W\d_][\w'’-]{1,40}(?: [A-Z][\w'’-]{1,40}){0,4})"
    r"(?:(?:,? (?:and|&|und|et|y) [^\W\d_][\w'’-]{1,40})?(?:,? et al\.?|,? and colleagues|等人?)?)(?:['’]s)?"
    r"\s{0,2}[(（\[](?P<year>(?:19|20)\d\d[a-z]?)[)）\]]"
)
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Spring|Summer|Fall|Autumn|Winter"
_CITED_NAME = re.compile(
    rf"(?:^|[(（\s])(?!{_MONTHS})[A-Z][\w'’-]+(?:,? et al\.?,?|,? (?:and|&) [A-Z][\w'’-]+,?|,) ?\Z"
)
_AFTER_LINK = re.compile(r">?\s{0,9}(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'|\([^()\n]{0,300}\))?\s{0,9}\)")
_HTML_LINK = re.compile(r"[^<>\n]{0,500}>[^<>\n]{0,500}</a>", re.I)


class _MarkFinder:
    def __init__(self, text: str, references: References) -> None:
        self._text = text
        self._references = references

    # Links and URLs

    def links(self, cited: Sequence[Citation]) -> Iterator[FoundMark]:
        labels = {opened: close for close, opened in MarkdownStructure(self._text).link_labels().items()}
        opened_by_close = {close: opened for opened, close in labels.items()}
        for each in cited:
            span = self._link_span(each, opened_by_close)
            if span is not None:
                label = each.label.strip("[] \\")
                is_empty = not label and each.kind is CitationKind.LINK
                is_number = is_empty or _NUMBERS.fullmatch(label) is not None
                yield FoundMark(start=span[0], end=span[1], targets=(each,), is_number=is_number)

    def _link_span(self, each: Citation, opened_by_close: dict[int, int]) -> tuple[int, int] | None:
        text = self._text
        if each.kind is CitationKind.LINK:
            close = text.rfind("](", max(0, each.start - 12), each.start)
            after = _AFTER_LINK.match(text, each.end)
            return opened_by_close.get(close, each.start), after.end() if after is not None else each.end
        if each.kind is CitationKind.AUTOLINK:
            return each.start - 1, each.end + 1
        if each.kind in {CitationKind.BARE, CitationKind.FOOTNOTE}:
            return each.start, each.end
        if each.kind is CitationKind.REFERENCE and _NUMBERS.fullmatch(each.label.strip("\\")) is None:
            return None if each.label.startswith("^") else (each.start, each.end)
        if each.kind is CitationKind.HTML:
            opened = text.rfind("<a ", max(0, each.start - 200), each.start)
            closed = _HTML_LINK.match(text, each.end) if opened >= 0 else None
            return (opened, closed.end()) if closed is not None else None
        return None

    # Numbers

    def bracket_ranges(self) -> Iterator[FoundMark]:
        """Yield ranges of the form ``[1]-[3]``."""
        for match in _BRACKET_RANGE.finditer(self._text):
            numbers = _expand(f"{match[1]}-{match[2]}")
            targets = tuple(self._references.find(each, match.start()) for each in numbers)
            if targets and any(targets):
                yield FoundMark(start=match.start(), end=match.end(), targets=targets, is_number=True)

    def brackets(self) -> Iterator[FoundMark]:
        text = self._text
        index_end = -1
        for match in _BRACKET.finditer(text):
            body = match[2]
            if body[0] == "^" and not body.strip("^").isdigit() and "," not in body:
                yield from self._footnote(match, body)
                continue
            written = _NUMBERS.fullmatch(body)
            if written is None:
                yield from self._labelled(match, body)
                continue
            start, end = match.span()
            anchor = _ANCHOR.match(text, end)
            if anchor is not None:
                end = anchor.end()
            elif text[start - 1 : start] == "[" and text[end : end + 1] == "]":
                anchor = _ANCHOR.match(text, end + 1)
                start, end = (start - 1, anchor.end()) if anchor is not None else (start, end)
            numbers = _expand(written["numbers"])
            is_note = "^" in body
            targets = tuple(self._references.find(f"^{each}" if is_note else each, start) for each in numbers)
            if not numbers:
                continue
            if is_note or written["rest"] or (start != index_end and self._is_mark(match, numbers, targets)):
                yield FoundMark(start=start, end=end, targets=targets, is_number=True)
            else:
                index_end = end  # the next bracket of a[1][2] is an index too

    def _footnote(self, match: re.Match[str], body: str) -> Iterator[FoundMark]:
        target = self._references.find(note_key(body), match.start())
        if " " not in body or target is not None:
            yield FoundMark(start=match.start(), end=match.end(), targets=(target,), is_number=True)

    def _labelled(self, match: re.Match[str], body: str) -> Iterator[FoundMark]:
        targets = self._labels(body)
        if targets:
            yield FoundMark(start=match.start(), end=match.end(), targets=targets, is_number=True)

    def _labels(self, body: str) -> tuple[Entry | None, ...]:
        """Return the entries of labels such as ``S1, S2``; empty if there is none."""
        if not self._references.forms & {"label", "code"}:
            return ()
        targets = tuple(self._references.find(label_key(each.strip()), 0) for each in re.split("[,;，；、]", body))
        return targets if any(targets) else ()

    def _is_mark(self, match: re.Match[str], numbers: Sequence[int], targets: Sequence[Entry | None]) -> bool:
        """Return whether numbers in brackets are a citation and not an index, an interval or a year."""
        text, (start, end) = self._text, match.span()
        before = text[max(0, start - 40) : start]
        bound = sum(target is not None for target in targets)
        if match[1] == "[":
            if _INDEXED_NAME.search(before) or (
                before[-1:].isalnum() and before[-1:].isascii() and _INDEXED.match(text, end)
            ):
                return False
            if len(numbers) == 2 and (0 in numbers or _INTERVAL_BEFORE.search(before)):
                return False
        if not bound:
            likely = all(0 < number < 1_000 for number in numbers)
            return likely and (len(numbers) == 1 or list(numbers) == sorted(set(numbers)))
        return True

    def tags(self) -> Iterator[FoundMark]:
        for match in _TAG.finditer(self._text):
            numbers = _expand(match[1])
            targets = tuple(self._references.find(each, match.start()) for each in numbers)
            if not self._is_exponent(match.start()):
                yield FoundMark(start=match.start(), end=match.end(), targets=targets, is_number=True)

    def cites(self) -> Iterator[FoundMark]:
        """Yield ``<cite>3</cite>`` and ``<cite>id_3</cite>``."""
        for match in _CITE.finditer(self._text):
            written = _NUMBERS.fullmatch(match[2])
            numbers = _expand(written["numbers"]) if written is not None else []
            targets = tuple(self._references.find(each, match.start()) for each in numbers) or self._labels(match[2])
            if targets:
                yield FoundMark(start=match.start(), end=match.end(), targets=targets, is_number=True)

    def of_products(self) -> Iterator[FoundMark]:
        """Yield marks in the internal form of a product. The report does not say what they refer to."""
        for match in _OF_PRODUCT.finditer(self._text):
            yield FoundMark(start=match.start(), end=match.end(), targets=(None,), is_number=True)

    def _is_exponent(self, start: int) -> bool:
        before = self._text[max(0, start - 12) : start]
        if not before.strip():
            return True
        return _UNIT_BEFORE.search(before) is not None and _YEAR_BEFORE.search(before) is None

    def superscripts(self) -> Iterator[FoundMark]:
        found = []
        for match in _SUPERSCRIPT.finditer(self._text):
            if self._is_exponent(match.start()):
                continue
            numbers = _expand(match[0].translate(_SUPER_TO_DIGITS))
            targets = tuple(self._references.find(each, match.start()) for each in numbers)
            if not any(targets) and len(numbers) == 1 and numbers[0] > 9:  # adjacent marks, such as 1 and 2
                targets = tuple(self._references.find(int(digit), match.start()) for digit in str(numbers[0]))
            if numbers:
                found.append(FoundMark(start=match.start(), end=match.end(), targets=targets, is_number=True))
        return iter(found if any(any(mark.targets) for mark in found) else ())

    def circled(self) -> Iterator[FoundMark]:
        """Yield circled digits behind a word, if the list of sources has their numbers. Others enumerate."""
        if "sup" in self._references.forms:
            for match in _CIRCLED.finditer(self._text):
                numbers = map(circled_number, match[0])
                targets = tuple(self._references.find(each, match.start()) for each in numbers)
                if all(targets):
                    yield FoundMark(start=match.start(), end=match.end(), targets=targets, is_number=True)

    def parentheses(self) -> Iterator[FoundMark]:
        """Yield ``(3)`` if the numbered list has this form, or if it is the only form of numbers in the text."""
        allowed = bool(self._references.forms & {"round", "dot", "sup", "unnumbered"})
        for match in _ROUND.finditer(self._text):
            if not allowed and match["prefix"] is None:
                continue
            numbers = _expand(match[2])
            targets = tuple(self._references.find(each, match.start()) for each in numbers)
            if numbers and all(targets) and (match["prefix"] is not None or self._is_parenthesis(match)):
                yield FoundMark(start=match.start(), end=match.end(), targets=targets, is_number=True)

    def _is_parenthesis(self, match: re.Match[str]) -> bool:
        """Return whether ``(3)`` may be a mark, and not the number of an item in an enumeration."""
        before = self._text[max(0, match.start() - 12) : match.start()]
        ends = _AFTER_ROUND.match(self._text, match.end()) is not None
        return not _ENUMERATION_BEFORE.search(before) and (
            ends or ("round" in self._references.forms and before[-1:].isspace())
        )

    def plain_numbers(self) -> Iterator[FoundMark]:
        """Yield numbers at the end of sentences. Copies of reports lose their superscripts and contain such numbers.

        They are marks only if together they name at least half of the entries of the numbered lists.
        """
        not_a_mark = {"glued": _ABBREVIATED, "apart": _COUNTED}
        found = []
        named: set[int] = set()
        for match in _PLAIN.finditer(self._text):
            group = "glued" if match["glued"] is not None else "apart"
            numbers = _expand(match[group])
            targets = tuple(self._references.find(each, match.start()) for each in numbers)
            if not numbers or not all(targets) or not_a_mark[group].search(match["before"]):
                continue
            if max(numbers) > max(named, default=0) + _MAX_SKIPPED:
                continue
            named.update(numbers)
            found.append(FoundMark(start=match.start(group), end=match.end(group), targets=targets, is_number=True))
        total = sum(isinstance(entry.key, int) for entry in self._references.entries)
        return iter(found if len(named) > 1 and 2 * len(named) >= total else ())

    # Author and year

    def narratives(self) -> Iterator[FoundMark]:
        if not self._references.has_authors:
            return
        for match in _AUTHOR_GROUP.finditer(self._text):
            targets = tuple(self._authors(match[1]))
            if targets:
                yield FoundMark(start=match.start(), end=match.end(), targets=targets, is_number=True)
        for match in _NARRATIVE.finditer(self._text):
            words = match["name"].split()
            for first in range(len(words)):
                entry = self._references.by_author(" ".join(words[first:]), match["year"])
                entry = entry or self._references.by_author(words[first], match["year"])
                entry = entry or self._by_suffix(words[first], match["year"])
                if entry is not None:
                    start = match.start() + len(" ".join(words[:first])) + bool(first)
                    yield FoundMark(start=start, end=match.end(), targets=(entry,), is_number=False)
                    break

    def _by_suffix(self, word: str, year: str) -> Entry | None:
        """Look up the last two to four characters of Chinese or Japanese text, which has no spaces before a name."""
        name = word.removesuffix("人").removesuffix("等")
        if name.isascii():
            return None
        return next(filter(None, (self._references.by_author(name[-n:], year) for n in (4, 3, 2))), None)

    def _authors(self, group: str) -> Iterator[Entry | None]:
        for part in re.split(r"[;；]", group):
            years = list(_YEARS.finditer(part))
            if not years:
                continue
            head = part[: years[0].start()]
            names = _NAME.findall(head)[:12]
            whole = " ".join(head.strip(" ,，").split())
            for year in years[:10]:
                entry = self._references.by_author(whole, year[0])
                for name in names:
                    entry = entry or self._references.by_author(name.rstrip("."), year[0])
                    entry = entry or self._references.by_author(name.rstrip("."), year[0][:4])
                    entry = entry or self._references.by_author(name.split("等")[0], year[0])
                if entry is not None or _CITED_NAME.search(head):
                    yield entry


def _expand(written: str) -> list[int]:
    """Return the numbers of a list with ranges; empty if a range is too long or descends.

    >>> _expand("1, 3-5")
    [1, 3, 4, 5]
    """
    numbers: list[int] = []
    in_range = False
    for match in _PART.finditer(written):
        if match[2]:
            in_range = True
            continue
        number = int(match[1])
        if in_range:
            if not numbers or not 0 < number - numbers[-1] <= MAX_RANGE:
                return []
            numbers.extend(range(numbers[-1] + 1, number))
        numbers.append(number)
        in_range = False
    return numbers

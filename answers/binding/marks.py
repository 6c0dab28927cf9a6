# ruff: noqa: RUF001 - punctuation and digits of other scripts
"""Citation marks in the text of a report: numbers, footnotes, links, URLs and author-year citations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from answers.binding.references import (
    CIRCLED,
    Entry,
    FoundMark,
    References,
    Targets,
    circled_number,
    label_key,
    note_key,
)
from answers.citations import Citation, CitationKind
from answers.errors import TooManyParts

MAX_MARKS = 30_000
MAX_RANGE = 60
"""Number of sources in a range such as ``[2-4]``. A longer one is not a citation."""


def find_marks(text: str, cited: Sequence[Citation], references: References, masked: bytearray) -> list[FoundMark]:
    """Return the marks outside code, mathematics and reference entries, in text order, without overlaps.

    Raises:
        TooManyParts: There are more than ``MAX_MARKS``.
    """
    finder = _MarkFinder(text, references)
    excluded = bytearray(masked)
    for entry in references.entries:
        excluded[entry.start : entry.end] = b"\1" * (entry.end - entry.start)
    kept: list[FoundMark] = []
    for stage in ((finder.links(cited), finder.narratives(), *finder.of(_STRONG)), finder.of(_WEAK)):
        kept = _without_overlaps(kept + _in_text(stage, excluded))
    targets = (target for mark in kept for target in mark.targets)
    if references.has_numbers and not any(isinstance(each, Entry) and isinstance(each.key, int) for each in targets):
        kept = _without_overlaps(kept + _in_text([finder.plain_numbers()], excluded))
    return kept


NUMBER, LINK, URL = MARKS = "\ue000\ue001\ue002"
"""Characters that replace marks: those that are not part of the words of a sentence, labelled links, bare URLs."""
_MAX_LABEL_SPACES = 7
"""A link with a longer label is a statement, and not the name of a source."""


def masked_text(text: str, marks: Iterable[FoundMark], removed: Iterable[tuple[int, int]]) -> str:
    """Return a text in which marks are ``MARKS`` and removed spans, which may overlap, are newlines."""
    parts: list[str] = []
    at = 0
    masks = [(start, end, "\n" * (end - start)) for start, end in removed]
    for start, end, mask in sorted(masks + [(mark.start, mark.end, _mask_of(text, mark)) for mark in marks]):
        parts += (text[at:start], mask[max(0, at - start) :])
        at = max(at, end)
    return "".join([*parts, text[at:]])


def _mask_of(text: str, mark: FoundMark) -> str:
    start, end = mark.start, mark.end
    if not mark.targets:  # an image
        return " " * (end - start)
    label_end = text.find("](", start, end)
    if label_end > 0 and text.count(" ", start, label_end) > _MAX_LABEL_SPACES and not mark.is_number:
        return re.sub(r"\S", "X", text[start:label_end]).ljust(end - start, LINK)
    if mark.is_number or (_GLUED.match(text, start - 1) and not text[end : end + 1].strip(" \t\r\n[")):
        return NUMBER * (end - start)
    return (LINK if text[start] == "[" else URL) * (end - start)


def without_product_marks(text: str) -> str:
    """Return a text without the internal marks and tags of products, for models and readers."""
    return _OF_PRODUCT.sub("", text) if _may_be_of_product(text) else text


def _may_be_of_product(text: str) -> bool:
    """Return whether a search for marks of products can find one. Most texts have none, and the search is slow."""
    return any(hint in text for hint in _HINTS)


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
    r"(?:(?:re)?sources?|quellen?|fuentes?|fontes?|refs?\.?|references?|cite|cit|citations?|web ?pages?|web|docs?|see"
    r"|来源|引用|参考|参考文献|文献|出典|资料|資料|注)"
)
_SEPARATOR = r"(?:\s{0,3}(?:[-‐‑–—−~～,;，、；،؛&]|和|与|及|と)\s{0,3}|\s{1,3}(?:and|und|et|y|e|и)\s{1,3})"
_NUMBERS = re.compile(
    rf"\s{{0,3}}(?:{_PREFIX}[\s:：#_.]{{0,3}})?(?P<numbers>\^?\d{{1,4}}\^?(?:{_SEPARATOR}(?:{_PREFIX}[\s:#_]{{0,3}})?\^?\d{{1,4}}\^?)*)"
    r"(?P<rest>(?::\d{1,4})?†.*|[,:;]?\s{1,3}(?:pp?|pages?|sections?|sec|chapters?|ch|tables?|figs?|figures?|lines?|paras?|§)\b.*)?\s{0,3}",
    re.I | re.S,
)
_PART = re.compile(r"\^?(\d{1,4})|([-‐‑–—−~～])")
_ANCHOR = r"\((?:#[^()\s]{0,200}(?:\([^()\s]{0,50}\))?)(?:\s[\"'][^\"'\n]{0,200}[\"'])?\)"
_BRACKET = re.compile(
    rf"(?P<outer>\[)?\\?[\[［【〔](?P<body>[^\[\]［］【】〔〕\n\\]{{1,160}})\\?[\]］】〕]"
    rf"(?(outer)\]{_ANCHOR}|(?:{_ANCHOR})?)"
)
_BRACKET_RANGE = re.compile(r"\[(\d{1,4})\][-‐‑–—]\[(\d{1,4})\]")
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
_CIRCLED = re.compile(rf"(?<=[^\s:：;；,，、(（])[{CIRCLED}](?:[,，、]?[{CIRCLED}]){{0,20}}")
_EXPONENT = re.compile(
    r"(?:(?<![^\W_])(?:10|log|sin|cos|Adj\.? R)|[)\]}]|[₀-₉⁻⁺^]|(?<![^\W_])(?<![.\d°])(?<!\d )[a-zA-Zα-ωΑ-Ω])\Z"
)
_SQUARE_OR_CUBE = re.compile(r"(?:(?<![^\W_])(?<![.°])(?:[kcdmµμnhM]?m|ft|in|yd|mi|mc|sec|s)|[米里])\Z")
_PROSE_BEFORE = re.compile(r"(?<!\d)(?:19|20)\d\d[)）]\Z|[A-Za-z一-龥]{3,}[)）]\Z")
_SUPER_TO_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_TURN = r"turn\d{1,3}(?:search|news|view|fetch|file|academia|image|product|forecast|finance|sports)\d{1,3}"
_OF_PRODUCT = re.compile(
    r"\ue200[^\ue200\ue201\n]{0,400}\ue201|[\ue200-\ue206]"
    rf"|(?<![\w-])(?:file)?(?:cite)?(?:\ue202?{_TURN}){{1,20}}(?!\w)|[\[【(]{_TURN}(?:[,;\s]{{1,3}}{_TURN}){{0,20}}[\]】)]"
    r"|\[cite_(?:start|end)\]|<(?:antml:)?cite index=[^<>\n]{0,80}>|(?<!\d)</(?:antml:)?cite>|</?co: ?[\d,]{1,20}>"
    r"|<grok:render [^<>\n]{0,300}>(?:<argument [^<>\n]{0,80}>[^<>\n]{0,80}</argument>)?</grok:render>"
    r"|:contentReference\[oaicite:\d{1,4}\](?:\{index=\d{1,4}\})?|[【\[]oaicite:\d{1,4}[】\]]"
)
"""Citations in the internal form of a product, which it replaces when it shows an answer. Copies contain them."""
_GLUED = re.compile(r"[!-~]\[")
"""Link directly behind the text, as in ``rose.[Reuters](URL) It``."""
_HINTS = ("oaicite", "[cite_", "cite index=", "<grok:", "</co:", *"\ue200\ue201\ue202\ue203\ue204\ue205\ue206")
_HINTS += tuple(f"turn{number}" for number in range(10))
_CITE = re.compile(
    r"(?:<(?:cite|ref)>|\\(?:cite|citep|citet|parencite|autocite)\{)(?P<body>[^<>{}\n]{1,100})(?:</(?:cite|ref)>|\})",
    re.I,
)
_PAGE = re.compile(
    r"(?:\b(?:pp?\.?|pages?|seiten?|S\.|slides?|sheets?|folien?)=?|第|(?<=[fx]):)\s?(\d{1,5}(?:\s?[-–—]\s?\d{1,5})?)(?![A-Za-z\d])",
    re.I,
)
_DOCUMENT = re.compile(r"[^\s/:†#][^/:†#]{0,99}\.(?:pdf|docx?|pptx?|xlsx?|csv|txt|html?|epub)", re.I)
_DOCUMENT_KEY = re.compile(rf"({_DOCUMENT.pattern})(?:[†#:].*|\s{{0,3}}{_PAGE.pattern})?", re.I)
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
_DOCUMENT_PAGE = re.compile(rf"[(（]({_DOCUMENT.pattern}),?\s{{0,3}}{_PAGE.pattern}[)）]", re.I)
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Spring|Summer|Fall|Autumn|Winter"
_CITED_NAME = re.compile(
    rf"(?:^|[(（\s])(?!{_MONTHS})[A-Z][\w'’-]+(?:,? et al\.?,?|,? (?:and|&) [A-Z][\w'’-]+,?|,) ?\Z"
)


class _MarkFinder:
    def __init__(self, text: str, references: References) -> None:
        self._text = text
        self._references = references
        self._documents: dict[str, Entry] = {}
        self._index_end = -1

    def of(self, forms: Iterable[_Form]) -> Iterator[Iterator[FoundMark]]:
        for pattern, read in forms:
            if pattern is not _OF_PRODUCT or _may_be_of_product(self._text):
                yield self._of(pattern, read)

    def _of(
        self, pattern: re.Pattern[str], read: Callable[[_MarkFinder, re.Match[str]], Targets]
    ) -> Iterator[FoundMark]:
        for match in pattern.finditer(self._text):
            targets = read(self, match)
            if targets:
                yield FoundMark(*match.span(), targets, pages=tuple(_PAGE.findall(match[0])))

    def _numbered(self, written: str, at: int) -> Targets:
        return tuple(self._references.find(each, at) for each in _expand(written))

    # Links and URLs

    def links(self, cited: Sequence[Citation]) -> Iterator[FoundMark]:
        for each in cited:
            label = each.label.strip("[] \\")
            is_number = _NUMBERS.fullmatch(label) is not None
            is_note = each.kind is CitationKind.REFERENCE and (is_number or label.startswith("^"))
            if each.link is not None and not is_note:
                targets = () if each.kind is CitationKind.IMAGE else (each,)
                yield FoundMark(*each.link, targets, is_number or (not label and each.kind is CitationKind.LINK))

    # Numbers and keys

    def bracket_range(self, match: re.Match[str]) -> Targets:
        """Read ``[1]-[3]``."""
        return _if_any(self._numbered(f"{match[1]}-{match[2]}", match.start()))

    def bracket(self, match: re.Match[str]) -> Targets:
        body, start = match["body"], match.start()
        if body[0] == "^" and "," not in body:
            target = self._references.find(note_key(body), start)
            return (target,) if " " not in body or target is not None else ()
        written = _NUMBERS.fullmatch(body)
        if written is None:
            return self._keys(body, start)
        is_note = "^" in body
        numbers = _expand(written["numbers"])
        targets = tuple(self._references.find(f"^{each}" if is_note else each, start) for each in numbers)
        if is_note or written["rest"] or (start != self._index_end and self._is_citation(match, numbers, targets)):
            return targets
        self._index_end = match.end()  # the next bracket of a[1][2] is an index too
        return ()

    def _keys(self, body: str, at: int) -> Targets:
        """Return the entries of keys such as ``S1, S2``, and of names of documents; empty if there is none."""
        keys = [each.strip() for each in re.split("[,;，；、،؛]", body) if not _PAGE.fullmatch(each.strip())]
        targets = (self._references.find(label_key(key), 0) or self._document(key, at) for key in keys)
        return tuple(each for each in targets if each is not None)  # other parts name a place in the document

    def _document(self, name: str, at: int) -> Entry | None:
        document = _DOCUMENT_KEY.fullmatch(name)
        if document is None:
            return None
        name = document[1]
        entry = Entry(label_key(name), at, at, at, -1, "document", title=name)
        return self._references.find(label_key(name), 0) or self._documents.setdefault(name, entry)

    def _is_citation(self, match: re.Match[str], numbers: Sequence[int], targets: Targets) -> bool:
        """Return whether numbers in brackets are a citation and not an index, an interval or a year."""
        text, (start, end) = self._text, match.span()
        before = text[max(0, start - 40) : start]
        if _INDEXED_NAME.search(before) or (
            before[-1:].isalnum() and before[-1:].isascii() and _INDEXED.match(text, end)
        ):
            return False
        if len(numbers) == 2 and (0 in numbers or _INTERVAL_BEFORE.search(before)):
            return False
        likely = all(0 < number < 1_000 for number in numbers) and list(numbers) == sorted(set(numbers))
        return any(targets) or likely

    def tag(self, match: re.Match[str]) -> Targets:
        return self._not_exponent(match.start(), _expand(match[1]))

    def cite(self, match: re.Match[str]) -> Targets:
        """Read ``<cite>3</cite>`` and ``<cite>id_3</cite>``."""
        written = _NUMBERS.fullmatch(match["body"])
        numbered = self._numbered(written["numbers"], match.start()) if written is not None else ()
        return numbered or self._keys(match["body"], match.start())

    def of_product(self, match: re.Match[str]) -> Targets:
        """Read the internal form of a product. The report does not say what it refers to."""
        return () if match[0].startswith(("[cite_", "<cite ", "<co")) else (None,)

    def superscript(self, match: re.Match[str]) -> Targets:
        numbers = _expand(match[0].translate(_SUPER_TO_DIGITS))
        if len(numbers) == 1 and numbers[0] > 9 and self._references.find(numbers[0], match.start()) is None:
            numbers = list(map(int, str(numbers[0])))  # adjacent marks, such as 1 and 2
        targets = self._not_exponent(match.start(), numbers)
        return targets if self._references.has_numbers or any(targets) else ()

    def _not_exponent(self, start: int, numbers: Sequence[int]) -> Targets:
        before = self._text[max(0, start - 12) : start]
        targets = tuple(self._references.find(each, start) for each in numbers)
        is_year = _YEARS.search(before[-4:]) is not None
        if (
            not before.strip()
            or (_EXPONENT.search(before) is not None and _PROSE_BEFORE.search(before) is None)
            or (_SQUARE_OR_CUBE.search(before) is not None and (set(numbers) <= {2, 3} or not all(targets)))
            or (before[-1].isdigit() and not is_year and not all(targets))
        ):
            return ()
        return targets

    def circled(self, match: re.Match[str]) -> Targets:
        """Read circled digits behind a word, if the list of sources has their numbers. Others enumerate."""
        if "sup" not in self._references.forms:
            return ()
        return _if_all(
            tuple(
                self._references.find(circled_number(each), match.start()) for each in re.sub("[,，、]", "", match[0])
            )
        )

    def parenthesis(self, match: re.Match[str]) -> Targets:
        """Read ``(3)`` if the numbered list has this form, or if it is the only form of numbers in the text."""
        forms = self._references.forms
        if match["prefix"] is None:
            before = self._text[max(0, match.start() - 12) : match.start()]
            ends = _AFTER_ROUND.match(self._text, match.end()) is not None
            if (
                not forms & {"round", "dot", "sup", "unnumbered"}
                or _ENUMERATION_BEFORE.search(before)  # the number of an item in an enumeration
                or not (ends or ("round" in forms and before[-1:].isspace()))
            ):
                return ()
        return _if_all(self._numbered(match[2], match.start()))

    def document(self, match: re.Match[str]) -> Targets:
        """Read ``(report.pdf, p. 3)``."""
        return _if_any((self._document(match[1].strip().removeprefix("see "), match.start()),))

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
            targets = self._numbered(match[group], match.start())
            if not numbers or not all(targets) or not_a_mark[group].search(match["before"]):
                continue
            if max(numbers) > max(named, default=0) + _MAX_SKIPPED:
                continue
            named.update(numbers)
            found.append(FoundMark(*match.span(group), targets))
        total = sum(isinstance(entry.key, int) for entry in self._references.entries)
        return iter(found if len(named) > 1 and 2 * len(named) >= total else ())

    # Author and year

    def narratives(self) -> Iterator[FoundMark]:
        if not self._references.has_authors:
            return
        for match in _AUTHOR_GROUP.finditer(self._text):
            targets = tuple(self._authors(match[1]))
            if targets:
                yield FoundMark(*match.span(), targets, pages=tuple(_PAGE.findall(match[0])))
        for match in _NARRATIVE.finditer(self._text):
            words = match["name"].split()
            for first in range(len(words)):
                entry = self._author([" ".join(words[first:]), words[first]], match["year"])
                if entry is not None:
                    start = match.start() + len(" ".join(words[:first])) + bool(first)
                    yield FoundMark(start, match.end(), (entry,), is_number=False)
                    break

    def _authors(self, group: str) -> Iterator[Entry | None]:
        for part in re.split(r"[;；]", group):
            head = _YEARS.split(part, maxsplit=1)[0]
            names = [" ".join(head.strip(" ,，").split()), *(name.rstrip(".") for name in _NAME.findall(head)[:12])]
            for year in _YEARS.findall(part)[:10]:
                entry = self._author(names, year)
                if entry is not None or _CITED_NAME.search(head):
                    yield entry

    def _author(self, names: Iterable[str], year: str) -> Entry | None:
        for name in names:
            family = name.split("等")[0].removesuffix("人")
            # Chinese and Japanese texts have no space before a name.
            tails = () if family.isascii() else (family[-4:], family[-3:], family[-2:])
            for each in (name, family, *tails):
                entry = self._references.by_author(each, year) or self._references.by_author(each, year[:4])
                if entry is not None:
                    return entry
        return None


_Form = tuple[re.Pattern[str], Callable[[_MarkFinder, re.Match[str]], Targets]]
_STRONG: tuple[_Form, ...] = (
    (_BRACKET_RANGE, _MarkFinder.bracket_range),
    (_BRACKET, _MarkFinder.bracket),
    (_TAG, _MarkFinder.tag),
    (_CITE, _MarkFinder.cite),
    (_OF_PRODUCT, _MarkFinder.of_product),
    (_DOCUMENT_PAGE, _MarkFinder.document),
)
_WEAK: tuple[_Form, ...] = (
    (_SUPERSCRIPT, _MarkFinder.superscript),
    (_CIRCLED, _MarkFinder.circled),
    (_ROUND, _MarkFinder.parenthesis),
)
"""Forms that are marks only if no strong one overlaps them."""


def _if_any(targets: Targets) -> Targets:
    return targets if any(targets) else ()


def _if_all(targets: Targets) -> Targets:
    return targets if all(targets) else ()


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

# ruff: noqa: RUF001 - punctuation and digits of other scripts
"""Reference lists, footnotes and bibliographies of a report, and the source that a number or name refers to.

An entry is found by its form (``[3] https://...``, ``[^3]: ...``) or by its place in a section with a title such as
"References". All other lines are text, also below such a title.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from answers.binding.layout import SOURCE_LABEL, Layout, Line, LineKind
from answers.citations import HTML_TAG, Citation, CitationKind, reference_key

MAX_TITLE_CHARS = 500

_WORDS = (
    r"references?(?: list| cited)?|reference links?|sources?(?: cited| used| list)?|works? cited"
    r"|(?:list of )?citations?"
    r"|bibliography|literature(?: cited)?|foot ?notes?|end ?notes?|notes?|source list|urls?|links"
    r"|references? (?:and|&) (?:sources|notes|links|citations|further reading)"
    r"|sources? (?:and|&) (?:references|citations|links|notes)"
    r"|(?:key|main|primary|selected|full|cited|web|online|external|data) (?:references|sources|citations|links)"
    r"|citations? (?:and|&) (?:references|sources)|further reading|works consulted"
    r"|(?:verwendete )?quellen(?:verzeichnis|angaben)?|literatur(?:verzeichnis)?|einzelnachweise|referenzen|belege"
    r"|fu(?:ß|ss)noten"
    r"|références(?: bibliographiques)?|bibliographie|sources (?:citées|consultées)|referencias(?: bibliográficas)?"
    r"|fuentes(?: consultadas| citadas)?|bibliografía|referências(?: bibliográficas)?"
    r"|fontes(?: consultadas)?|bibliografia|riferimenti|fonti(?: consultate)?"
    r"|bronnen|referenties|källor|kilder|lähteet|źródła|zdroje"
    r"|источники|литература|список литературы|ссылки|джерела|المصادر|المراجع|מקורות"
    r"|(?:主要|相关|部分|核心|数据|信息|资料|引用|参考|引文|文中)?(?:参考|引用|引文)?(?:文献|资料|来源|链接|出处|网址|文章|网站)(?:列表|清单|目录|与链接|和链接)?"
    r"|引用的(?:著作|文献|文章|资料)|参考|引用|引文|注释|脚注|尾注|註釋|注解|(?:參考|引用|資料)(?:文獻|資料|來源|連結)(?:列表)?|來源"
    r"|参照(?:元|文献|資料)?|出典(?:一覧)?|引用(?:元|文献)(?:一覧)?|参考(?:文献|資料|サイト|リンク|URL)(?:一覧)?|情報源|脚注一覧"
    r"|참고\s?문헌|참고\s?자료|출처|각주|인용"
)
_NUMBERING = (
    r"(?:(?:\d{1,3}|[IVXivx]{1,5}|[A-Za-z])(?:\.\d{1,3})*[.)、:：]?[ \t]+|[一二三四五六七八九十]{1,3}[、.．]\s*)?"
)
_TITLE = re.compile(
    rf"\W{{0,12}}{_NUMBERING}\W{{0,12}}(?:{_WORDS})[\s\W]{{0,12}}(?:\([^()\n]{{0,60}}\)|（[^（）\n]{{0,60}}）)?\W{{0,8}}",
    re.I,
)
_HTML_TAG = re.compile(r"</?(?:h[1-6]|b|strong|p|u|summary|details)(?: open)?>|<(?:a|span) [^<>]{1,100}>|</(?:a|span)>")
_INLINE_LABEL = re.compile(
    rf"[^\w\[]{{0,12}}(?:{_WORDS})[*_ \t]{{0,4}}[:：][*_ \t]{{0,6}}(?=\\?[\[【(（]?\d{{1,4}}(?:\\?[\]】)）.])+)", re.I
)
_MAX_HEADING_CHARS = 120
_LABEL_LEVEL = 7
"""Level of a title that is not a heading, such as "Sources:". Any heading ends its section."""

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
CIRCLED = "①-⑳❶-❿"
_TO_DIGITS = str.maketrans(_SUPERSCRIPTS + "０１２３４５６７８９", "01234567890123456789")

_URL = r"<?(?:https?://|www\.)"
_ENTRY = re.compile(
    r"[ \t>]{0,20}(?:\|[ \t]*)?(?:[-*+•·][ \t]+|<li>[ \t]*)?"
    r"(?:<(?:a|span) [^<>\n]{1,100}>(?:</a>)?[ \t]*)?(?:\*\*|__|<sup>)?"
    r"(?:\\?\[\^(?P<note>[^\[\]\n]{1,100})\](?P<note_colon>[:：])?"
    r"|\\?\[?[\[【［〔](?:source|ref|reference|citation|quelle|fuente|fonte|来源|引用)?[\s:#_-]{0,2}(?P<square>\d{1,4})(?:†[^\]】\n]{0,80})?\\?[\]】］〕]\]?(?P<colon>[:：])?"
    r"|\\?[\[【](?P<label>(?!x\\?\])@?[A-Za-z][\w.:+ -]{0,40})\\?[\]】](?![(\[])[:：]?"
    r"|(?P<file>[^\s:|\[\]\n][^:|\[\]\n]{0,99}\.(?:pdf|docx?|pptx?|xlsx?|csv|txt|html?|epub))[ \t]*[:：–—-]"
    r"|(?P<code>(?-i:[A-Z]{1,3})[-_]?\d{1,3})(?=[ \t]?(?:[.:：)—–]|-[ \t]))[ \t]?[.:：)—–-]"
    r"|[(（](?P<round>\d{1,4})[)）]"
    r"|(?:(?:source|ref|reference|citation|quelle|fuente|fonte)[ \t]{1,2}#?|(?:来源|出典|文献)[ \t]?)?(?P<dot>\d{1,4})"
    r"(?:\\?[.．)、:：](?!\d)|(?=[ \t]*(?:\*\*|</sup>|\|))|(?=[ \t]+\[?<?https?:)|(?=\t)|[ \t][-–—](?=[ \t]))"
    rf"|(?P<sup>[{_SUPERSCRIPTS}]{{1,4}}|[{CIRCLED}]))"
    r"(?:\*\*|__|</sup>|</a>|</span>)?[.:：|]?(?:\*\*)?[ \t]*",
    re.I,
)
_NEXT_DOT = re.compile(r"(?<=\s)(\d{1,4})[.、][ \t]+")
_NEXT_ENTRY = re.compile(r"(?<=[\s;,|。；])\\?\[(\d{1,4})\\?\][:：]?[ \t]*")
_IS_URL = re.compile(_URL + r"|\[[^\]\n]{0,300}\]\(<?https?:", re.I)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d[a-z]?(?![\w-])")
_DATED = re.compile(r"[(（](?:19|20)\d\d[a-z]?(?:, [^()（）\n]{1,20})?[)）]|[.,] (?:19|20)\d\d[a-z]?[.;:]")
_HAS_MARK = re.compile(r"[\[【]\d{1,3}[\]】]")
_ENDS_WITH_MARK = re.compile(r"[\[【]\d{1,4}(?:[\s,–-]+\d{1,4})*[\]】][.。\s]*\Z")
_SOURCE_LINE = re.compile(rf"\n[ \t>]*(?:[-*+•][ \t]+)?{SOURCE_LABEL.pattern}", re.I)
_BULLET = re.compile(r"[-*+•·][ \t]+|\d{1,4}[.)][ \t]+")


@dataclass(slots=True)
class Entry:
    """Entry of a reference list. ``key`` is a number, ``^note`` of a footnote, ``@label``, or None if unnumbered."""

    key: int | str | None
    start: int
    end: int
    body: int
    """Start of the text after the number."""
    place: int
    """Index of the list that contains the entry."""
    form: str
    url: str | None = None
    title: str = ""
    urls: list[Citation] = field(default_factory=list)
    below: Line | None = None
    """Title of the list."""


Targets = tuple[Entry | Citation | None, ...]


@dataclass(frozen=True, slots=True)
class FoundMark:
    """Mark with the entries or URL that it refers to; ``targets`` has a None for each number without an entry."""

    start: int
    end: int
    targets: Targets
    is_number: bool = True
    """Whether the mark is not part of the sentence's words, so it may follow the full stop."""
    pages: tuple[str, ...] = ()
    """Pages that the mark names: one per target, or one for all."""


class References:
    """All entries of a report, and the lookup of the entry for a mark."""

    def __init__(self, text: str, layout: Layout, cited: Sequence[Citation], *, without: Container[int] = ()) -> None:
        reader = _Reader(text, layout, cited)
        self.entries, self.untitled = reader.read(without)
        """``untitled`` are the places of numbered lists that are lists of sources only if a mark refers to them. Those
        in ``without`` are not."""
        self.titles = reader.titles
        """Spans of titles without a heading marker, such as ``Sources:``."""
        self.has_numbers = any(isinstance(entry.key, int) for entry in self.entries)
        self._by_key: dict[int | str, list[Entry]] = {}
        self._lists: dict[int, dict[int | str, Entry]] = {}
        for entry in self.entries:
            listed = self._lists.setdefault(entry.place, {})
            if entry.key is None and not self.has_numbers:
                entry.key = len(listed) + 1  # by position
            if entry.key is not None:
                listed.setdefault(entry.key, entry)
                self._by_key.setdefault(entry.key, []).append(entry)
        self.has_numbers = any(isinstance(key, int) for key in self._by_key)
        self._places = [place for place, listed in self._lists.items() if listed]
        self._starts = [next(iter(self._lists[place].values())).start for place in self._places]
        self._has_conflict = any(map(_differ, self._by_key.values()))
        self.forms = {entry.form for entry in self.entries}
        self._authors = self._author_index(text)
        self.has_authors = bool(self._authors)

    def find(self, key: int | str, at: int) -> Entry | None:
        """Return the entry for a mark at ``at``. If lists restart their numbers, it is in the next list."""
        entries = self._by_key.get(key)
        if entries is None:
            other = f"^{key}" if isinstance(key, int) else int(key[1:]) if re.fullmatch(r"\^\d+", key) else key
            return self.find(other, at) if other in self._by_key else None
        if not self._has_conflict:
            return entries[0]
        listed = self._lists[self._places[min(bisect_right(self._starts, at), len(self._places) - 1)]]
        # The list of the whole report follows the short list of a part.
        following = (each for each in entries if each.start > at and len(self._lists[each.place]) > 2 * len(listed))
        return listed.get(key) or next(following, None)

    def unused_lists(self, used: Container[int]) -> dict[Line, list[FoundMark]]:
        """Return the titled lists without an entry whose ``id`` is in ``used``: the marks of their sources by title."""
        lists: dict[Line, list[Entry]] = {}
        for entry in self.entries:
            if entry.below is not None:
                lists.setdefault(entry.below, []).append(entry)
        return {
            title: [FoundMark(each.urls[0].start, each.urls[0].end, (each,)) for each in entries if each.urls]
            for title, entries in lists.items()
            if not any(id(each) in used for each in entries)
        }

    def by_author(self, name: str, year: str) -> Entry | None:
        """Return the entry whose first author or organization is ``name``, published in ``year``."""
        return self._authors.get((name.casefold(), year))

    def _author_index(self, text: str) -> dict[tuple[str, str], Entry]:
        index: dict[tuple[str, str], Entry] = {}
        for entry in self.entries:
            head = text[entry.body : min(entry.end, entry.body + 400)]
            year = _YEAR.search(head)
            if year is None:
                continue
            for name in _names(head[: year.start()]):
                index.setdefault((name, year[0]), entry)
                index.setdefault((name, year[0][:4]), entry)
        return index


def _differ(entries: Sequence[Entry]) -> bool:
    """Return whether lists have different sources for the same number."""
    return any(
        each.place != entries[0].place and (each.url or each.title) != (entries[0].url or entries[0].title)
        for each in entries
    )


def _without_notes(entries: list[Entry]) -> list[Entry]:
    """Remove numbered lists without any URL, such as remarks, if another list has URLs for its numbers."""
    with_url = {entry.place for entry in entries if entry.url is not None}
    cited = {entry.key for entry in entries if entry.place in with_url}
    return [
        entry
        for entry in entries
        if entry.place in with_url or not isinstance(entry.key, int) or entry.key not in cited
    ]


_SEGMENT = re.compile(r"[^,.;，、。(（&:：\n\[\]]+")
_ACRONYM = re.compile(r"[(（]([A-Z][A-Za-z&-]{1,11})[)）]")


def _names(head: str) -> Iterator[str]:
    """Yield the names under which a bibliography entry is cited: surname, organization, acronym."""
    segment = _SEGMENT.search(head.lstrip("*_[ "))
    words = [] if segment is None else segment[0].strip(" *_[").split()
    if words:
        yield " ".join(words).casefold()
        yield words[0].casefold()
        yield words[-1].casefold()
        acronym = "".join(word[0] for word in words if word[0].isupper())
        if len(acronym) > 1:
            yield acronym.casefold()
    for match in _ACRONYM.finditer(head):
        yield match[1].casefold()


class _Reader:
    """Finds the entries in one pass over the lines."""

    def __init__(self, text: str, layout: Layout, cited: Sequence[Citation]) -> None:
        self._text = text
        self._lines = [line for line in layout.lines if line.kind is not LineKind.CODE]
        self._cited = cited
        self._starts = [each.start for each in cited]
        self.titles: list[tuple[int, int]] = []
        self._entries: list[Entry] = []
        self._open: Entry | None = None
        self._title: Line | None = None
        self._region: int | None = None
        """Heading level of the current reference section, or None."""
        self._place = -1
        self._candidates: list[Entry] = []
        self._runs: list[Entry] = []

    def read(self, without: Container[int]) -> tuple[list[Entry], set[int]]:
        """Return all entries, and the places of lists without a title. These count if no other list has numbers."""
        for index, line in enumerate(self._lines):
            self._read_line(line, self._lines[index + 1] if index + 1 < len(self._lines) else None)
        self._close_run(at_end=True)
        is_numbered = any(isinstance(entry.key, int) for entry in self._entries)
        untitled = [] if is_numbered else [entry for entry in self._runs if entry.place not in without]
        entries = sorted(self._entries + untitled, key=lambda entry: entry.start)
        for entry in entries:
            self._finish(entry)
        return _without_notes(entries), {entry.place for entry in untitled}

    def _read_line(self, line: Line, following: Line | None) -> None:
        start = line.start
        if line.kind is LineKind.RULE:
            self._open = None
            self._region = None if self._region == _LABEL_LEVEL else self._region
            return
        if line.kind is LineKind.HEADING:
            self._close_run(at_end=True)
            self._open = None
            match = _ENTRY.match(self._text, line.content, line.end)
            if self._is_title(line, following):
                self._begin(line, line.level)
            elif self._region is not None and match is not None and match["square"] is not None:
                self._add(match, line)
            elif self._region is None or line.level <= self._region:
                self._region = None
            return
        label = _INLINE_LABEL.match(self._text, line.content, line.end)
        if label is not None and self._urls(label.end(), line.end):
            self._begin(line, _LABEL_LEVEL)
            start = label.end()
        elif self._is_title(line, following):
            self._close_run(at_end=True)
            self._begin(line, _LABEL_LEVEL)
            self.titles.append((line.start, line.end))
            return
        title = self._title
        if self._region == _LABEL_LEVEL and title is not None and title is not line:
            is_inside = line.indent > title.indent if title.kind is LineKind.ITEM else line.indent >= title.indent
            self._region = self._region if is_inside else None
        if self._region is not None:
            self._read_in_region(line, start)
        else:
            self._read_outside(line)

    def _begin(self, title: Line, level: int) -> None:
        self._title, self._region, self._open = title, level, None
        self._place += 1

    def _is_title(self, line: Line, following: Line | None) -> bool:
        """Return whether a line is the title of a list: a heading, or for example ``**Sources**``."""
        if line.end - line.content > _MAX_HEADING_CHARS or line.kind is LineKind.TABLE:
            return False
        is_heading = line.kind is LineKind.HEADING
        written = _HTML_TAG.sub("" if is_heading else "**", self._text[line.content : line.end]).strip()
        if not is_heading:
            if following is None or "[" in written:  # a footnote that is called "note"
                return False
            is_marked = written.endswith((":", "：", "**", "__", ">")) or line.after_blank
            if not is_marked and _ENTRY.match(self._text, following.start, following.end) is None:
                return False
        return _TITLE.fullmatch(written.rstrip("#").strip()) is not None

    # Entries

    def _urls(self, start: int, end: int) -> list[Citation]:
        first = bisect_right(self._starts, start - 1)
        found: list[Citation] = []
        while first < len(self._cited) and self._cited[first].start < end and len(found) < 20:
            found.append(self._cited[first])
            first += 1
        return found

    def _read_in_region(self, line: Line, start: int) -> None:
        match = _ENTRY.match(self._text, start, line.end)
        if match is not None and self._is_entry(match, line):
            self._add(match, line)
            return
        if self._continues(line):
            self._entries[-1].end = line.end
            return
        written = self._text[start : line.end]
        if not HTML_TAG.sub("", written[:400]).strip():
            return
        has_source = bool(self._urls(start, line.end))
        dated = _DATED.search(written[:400]) is not None and line.kind is not LineKind.TABLE
        if (has_source or dated) and not _ENDS_WITH_MARK.search(written[-60:]):
            self._add_unnumbered(line, start)
            return
        self._open = None
        if self._region == _LABEL_LEVEL and line.kind is not LineKind.TABLE:
            self._region = None

    def _continues(self, line: Line) -> bool:
        if self._open is None or line.kind in {LineKind.TABLE, LineKind.HEADING}:
            return False
        written = self._text[line.start : min(line.end, line.start + 300)]
        is_open = not self._urls(self._open.start, self._open.end)
        if line.kind is LineKind.ITEM:
            return self._open.key is not None and (
                written[:2].isspace() or (is_open and bool(self._urls(line.start, line.end)))
            )
        if written[:2].isspace():
            return True
        if self._open.key is None and (self._urls(line.start, line.end) or _DATED.search(written)):
            return is_open
        return not line.after_blank or (
            is_open and _IS_URL.match(written.strip().removeprefix("URL:").strip()) is not None
        )

    def _is_entry(self, match: re.Match[str], line: Line) -> bool:
        """Return whether a numbered line in a reference section is an entry and not a sentence with a mark."""
        if self._urls(match.end(), line.end):
            return True
        if match["label"] or match["code"] or match["file"] or (self._open is not None and self._open.key is None):
            return False
        return _HAS_MARK.search(self._text, match.end(), min(line.end, match.end() + 2_000)) is None

    def _read_outside(self, line: Line) -> None:
        match = _ENTRY.match(self._text, line.start, line.end)
        if match is None:
            if self._open is not None and self._continues_outside(line, self._open):
                self._open.end = line.end
            elif self._run_continues(line):
                self._candidates[-1].end = line.end
            else:
                self._open = None
                self._close_run(at_end=False)
            return
        if self._is_strong(match, line):
            self._close_run(at_end=False)
            if self._open is None:
                self._place += 1
            self._add(match, line)
            return
        self._open = None
        if (match["round"] or match["dot"] or match["sup"]) and line.kind is not LineKind.TABLE:
            self._add_candidate(match, line)
        else:
            self._close_run(at_end=False)

    def _continues_outside(self, line: Line, entry: Entry) -> bool:
        if entry.form == "note" and self._text[line.start : line.start + 2].isspace():
            return True
        return not line.after_blank and self._continues(line) and not self._urls(entry.start, entry.end)

    def _is_strong(self, match: re.Match[str], line: Line) -> bool:
        """Return whether a line outside a reference section is an entry by its form alone."""
        if match["note"] is not None:
            return match["note_colon"] is not None
        if match["square"] is None:
            is_key = match["label"] is None or line.end - match.end() < 200
            return (
                is_key and not (match["round"] or match["dot"]) and _IS_URL.match(self._text, match.end()) is not None
            )
        if _IS_URL.match(self._text, match.end()) is not None:
            return True
        urls = self._urls(match.end(), line.end)
        if not urls:
            return False
        tail = self._text[urls[-1].end : line.end].strip(" \t\r)>].。*_|")
        return match["colon"] is not None or not tail or (len(tail) < 80 and _REMARK_AFTER.match(tail) is not None)

    def _add(self, match: re.Match[str], line: Line) -> None:
        """Add the entry at a match, and further entries on the same line."""
        form = next(name for name in _FORMS if match[name] is not None)
        key: int | str
        if form == "note":
            key = note_key(match["note"])
        else:
            key = label_key(match[form]) if form in {"label", "file", "code"} else _number(match[form])
        entry = self._append(key, match.start(), match.end(), line.end, form)
        if form not in {"square", "dot"}:
            return
        pattern = _NEXT_ENTRY if form == "square" else _NEXT_DOT
        for following in pattern.finditer(self._text, match.end(), line.end):
            number = _number(following[1])
            is_url = form == "square" and _IS_URL.match(self._text, following.end()) is not None
            if is_url or (number == int(entry.key or 0) + 1 and self._urls(entry.start, following.start())):
                entry.end = following.start()
                entry = self._append(number, following.start(), following.end(), line.end, form)

    def _append(self, key: int | str | None, start: int, body: int, end: int, form: str) -> Entry:
        if key == 1 and self._open is not None and isinstance(self._open.key, int) and self._open.key > 1:
            self._place += 1
        below = None if self._region is None else self._title
        entry = Entry(key, start, end, body, self._place, form, below=below)
        self._entries.append(entry)
        self._open = entry
        return entry

    def _add_unnumbered(self, line: Line, start: int) -> None:
        """Add the sources of a line without a number. Each URL of running text is a source."""
        urls = self._urls(start, line.end)
        bullet = _BULLET.match(self._text, line.start, line.end)
        self._append(None, start, max(start, line.content) if bullet else start, line.end, "unnumbered")
        if bullet is None and line.kind is not LineKind.TABLE:
            first = self._entries[-1]
            for before, each in pairwise(urls):
                if not self._text[before.end : each.start].strip(" \t([<)>]") or each.url == before.url:
                    continue
                self._entries[-1].end = before.end
                self._append(None, before.end, before.end, line.end, "unnumbered")
            first.place = self._place

    # Numbered lists without a title

    def _add_candidate(self, match: re.Match[str], line: Line) -> None:
        form = next(name for name in ("round", "dot", "sup") if match[name] is not None)
        number = _number(match[form])
        follows = bool(self._candidates) and self._candidates[-1].key == number - 1
        if not follows:
            self._close_run(at_end=False)
            if number != 1:
                return
            self._place += 1
        self._candidates.append(
            Entry(key=number, start=match.start(), end=line.end, body=match.end(), place=self._place, form=form)
        )

    def _run_continues(self, line: Line) -> bool:
        if not self._candidates or line.kind is LineKind.TABLE:
            return False
        last = self._candidates[-1]
        return (
            not line.after_blank
            or self._text[line.start : line.start + 2].isspace()
            or (not self._urls(last.start, last.end) and _IS_URL.match(self._text, line.content) is not None)
        )

    def _close_run(self, *, at_end: bool) -> None:
        """End a run of numbered lines. At the end of a section it is a list of sources if each line has a URL."""
        run, self._candidates = self._candidates, []
        is_list = all(
            self._urls(each.start, each.end) and not _SOURCE_LINE.search(self._text, each.body, each.end)
            for each in run
        )
        if at_end and is_list:
            self._runs.extend(run)

    # Source of an entry

    def _finish(self, entry: Entry) -> None:
        entry.urls = self._urls(entry.body, entry.end)
        written = self._text[entry.body : min(entry.end, entry.body + 3_000)]
        entry.url = entry.urls[0].url if entry.urls else None
        entry.title = title_of(written, [each.label for each in entry.urls if each.kind is CitationKind.LINK])


_FORMS = ("note", "square", "label", "file", "code", "round", "dot", "sup")


def label_key(label: str) -> str:
    """Return the key of an entry with a label, such as ``[S1]`` or ``[Vaswani2017]``."""
    return "@" + reference_key(label.strip().removeprefix("@"))


def note_key(label: str) -> str:
    """Return the key of a footnote. ``[^1^]`` is the same as ``[^1]``."""
    return "^" + reference_key(label.strip("^"))


def _number(written: str) -> int:
    digits = written.translate(_TO_DIGITS)
    return int(digits) if digits.isdecimal() else circled_number(written)


def circled_number(char: str) -> int:
    """Return the number of a circled digit.

    >>> circled_number("⑩")
    10
    """
    return int(unicodedata.numeric(char))


_LINK = re.compile(
    r"!?\[([^\[\]\n]{0,300})\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,500})?(?:\s+[\"'(][^\n]{0,200}?[\"')])?\)"
)
_ANY_URL = re.compile(r"<?(?:https?://|www\.)[^\s<>]{1,4096}>?", re.I)
_QUOTED = re.compile(r"\s*[\"'“「《(]([^\n\"”」》]{1,300})[\"'”」》)]\s*\Z")
_REMARK_AFTER = re.compile(r"[-–—|(（:,，]|(?:last )?accessed|retrieved|访问|检索", re.I)
_REMARK = re.compile(
    r"[\s,;，；(（\[-]*(?:(?:(?:last )?accessed|retrieved|available(?: at| from| online)?)\b|\[?online\]|访问|检索于"
    r"|doi\b[:\s]{0,3}10\.)[^\n]{0,60}\Z"
    r"|(?:\A|[\s,;，；(（\[-])(?:url|link|doi)[:：][^\n]{0,60}\Z|(?:\A|[.,;:，；(（\[|–—-])\s?(?:url|link|doi)\s?\Z",
    re.I,
)
_NO_TITLE = re.compile(r"\W*(?:url|link|source|here|website|online|pdf|链接|原文|来源|リンク)?\W*", re.I)


def title_of(written: str, labels: Sequence[str]) -> str:
    """Return the title in an entry: the label of its link if there is one, else its text without the URL."""
    for label in (_LINK.sub(r"\1", each) for each in labels):  # the text of an image
        if not _is_no_title(label) and not label.strip(" []").isdigit():
            return _trimmed(label)
    without = HTML_TAG.sub(" ", written)
    without = _LINK.sub(lambda match: "" if _is_no_title(match[1]) else f" {match[1]} ", without)
    without = _ANY_URL.sub(" ", without)
    quoted = _QUOTED.fullmatch(without)
    return _trimmed(quoted[1] if quoted is not None else without)


def _is_no_title(label: str) -> bool:
    return _NO_TITLE.fullmatch(label) is not None or _ANY_URL.match(label) is not None


def _trimmed(title: str) -> str:
    title = " ".join(title.replace("|", " | ").replace("**", "").split())
    for _ in range(3):
        title = _REMARK.sub("", title).strip(" \t-–—:：|,，;；.。*_<>·•→^")
        for opener, closer in ("[]", "()", "（）", "【】"):
            if title.startswith(closer) or (title.endswith(closer) and opener not in title):
                title = title.strip(closer)
            if title.endswith(opener) or (title.startswith(opener) and closer not in title):
                title = title.strip(opener)
    return title[:MAX_TITLE_CHARS]

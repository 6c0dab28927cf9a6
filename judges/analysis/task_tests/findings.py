"""Findings of a field test: leaves, fields and citations whose errors no leaf detects, each with line and fix. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from answers.citations import citations
from cache.urls import canonical_key
from judges.analysis.task_tests.edits import EditKind, Field, Path, format_path, has_digits, has_words, shape_of
from judges.analysis.task_tests.field_test import EditRun, FieldTestRuns, compared_by_code, flipped
from judges.analysis.task_tests.judge_file import SourceRange
from judges.analysis.task_tests.leaves import ObservedLeaf
from judges.llm.lexical import decide
from rubrics.verdict import Outcome, Reason

_COMPARING = re.compile(
    r"\b(?:same|equals?|equal to|match(?:es)?|identical|equivalent|refers?|corresponds?|one of|among|before|after"
    r"|earlier|later|at least|at most|more|less|fewer|than|within|between|not|no|either|valid|plausible)\b",
    re.IGNORECASE,
)
"""A claim with one of these words compares values, so it can be judged without a page."""
_ABOUT_WORDING = re.compile(
    r"(?<!\w)(?:'[^']+'|\"[^\"]+\"|`[^`]+`|\u201c[^\u201d]+\u201d)(?!\w)|\banswer\b", re.IGNORECASE
)
"""A claim that quotes a value or is about the answer can be judged without a page, too."""


_MAX_ERRORS = 3
_HEADING = re.compile(r"^#{1,6}[ \t]+(?P<title>[^\n]*)$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_TITLE_CHARS = 60


class FindingCode(StrEnum):
    """Kinds of findings."""

    CONSTANT_LEAF = "constant_leaf"
    FIXED_SOURCES = "fixed_sources"
    FALLBACK_SOURCES = "fallback_sources"
    NO_SOURCES = "no_sources"
    SECTION_NOT_JUDGED = "section_not_judged"
    FIELD_NOT_JUDGED = "field_not_judged"
    ONLY_PRESENCE = "only_presence"
    CITATION_NOT_USED = "citation_not_used"
    ANSWER_ONLY = "answer_only"
    WRONG_ITEM = "wrong_item"
    PARTIAL_COMPARISON = "partial_comparison"
    SECTION_NOT_READ = "section_not_read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Finding. ``subject`` names the leaf, field or citation, ``line`` is its line in the task file.

    ``exempt`` is the reason for an exemption in the task file.
    """

    code: FindingCode
    subject: str
    message: str
    fix: str
    line: int | None = None
    exempt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldReport:
    """All findings. ``notes`` are hints for the author that require no change.

    ``unmoved`` are the keys of the claims that no edit changed and that are not exempt.
    """

    edits: int
    fields: int
    leaves: int
    findings: tuple[Finding, ...]
    exempt: tuple[Finding, ...]
    notes: tuple[str, ...]
    unmoved: tuple[str, ...]


def report(observed: FieldTestRuns) -> FieldReport:
    """Return all findings of the observed runs."""
    finder = _Finder(observed)
    findings = finder.all()
    return FieldReport(
        findings=tuple(finding for finding in findings if not finding.exempt),
        exempt=tuple(finding for finding in findings if finding.exempt),
        notes=tuple(dict.fromkeys(finder.notes)),
        unmoved=tuple(finder.unmoved()),
        edits=len(observed.runs),
        fields=len(observed.fields),
        leaves=len(observed.base),
    )


class _Finder:
    """Applies the rules, one method each."""

    def __init__(self, observed: FieldTestRuns) -> None:
        self._observed = observed
        self._moved = {id(run): observed.changed(run) for run in observed.runs}
        self._reads = {key: list(self._values_of(key)) for key in observed.base}
        self._cites = {key: list(self._citations_of(key)) for key in observed.base}
        self._unrefutable = frozenset(key for key in observed.base if self._is_unrefutable(key))
        self._doubtful = frozenset(key for key in observed.base if self._is_doubtful(key))
        self.notes: list[str] = []

    def all(self) -> list[Finding]:
        rules = (
            self._constant_leaves,
            self._sources,
            self._answer_only,
            self._unused_fields,
            self._wrong_items,
            self._partial_comparisons,
            self._unread_sections,
        )
        findings = [finding for rule in rules for finding in rule()]
        self._note_untested()
        return sorted(_merged(findings), key=lambda each: (each.line is None, each.line or 0))

    def unmoved(self) -> Iterator[str]:
        """Yield the claims that no edit changed and that are not exempt."""
        file = self._observed.file
        for key, leaf in self._observed.base.items():
            if leaf.claim is None or _lacks_value(leaf):
                continue
            if not self._moves(key) and not file.exemption(file.leaf(leaf)):
                yield key

    # What depends on what

    def _values_of(self, key: str) -> Iterator[Field]:
        """Yield the fields whose value is part of the claim of a leaf."""
        for field in self._observed.fields:
            for run in self._observed.of(field, EditKind.WRONG):
                leaf, base = run.leaves.get(key), self._observed.base[key]
                if leaf and leaf.claim and leaf.claim != base.claim and has_words(leaf.claim, run.edit.words):
                    yield field
                    break

    def _citations_of(self, key: str) -> Iterator[Field]:
        """Yield the fields whose URLs are among the sources of a leaf."""
        for field in self._observed.fields:
            for run in self._observed.of(field, EditKind.OTHER_URL):
                leaf = run.leaves.get(key)
                if leaf and leaf.sources and leaf.sources != self._observed.base[key].sources:
                    yield field
                    break

    def _moves(self, key: str) -> bool:
        return any(key in moved for moved in self._moved.values())

    def _sources_move(self, key: str) -> bool:
        before = self._observed.base[key].sources
        return any(
            key not in run.leaves or run.leaves[key].sources != before
            for run in self._observed.runs
            if run.edit.kind in (EditKind.OTHER_URL, EditKind.NO_CITATIONS)
            or (run.edit.kind is EditKind.REMOVED and run.edit.field is not None and run.edit.field.urls)
        )

    def _is_unrefutable(self, key: str) -> bool:
        """Return whether the text of the answer confirms the claim for every value."""
        leaf = self._observed.base[key]
        if leaf.claim is None or leaf.sources is not None or not self._reads[key]:
            return False
        if not _confirmed(leaf.claim, self._observed.answer):
            return False
        edited = [
            (run.leaves.get(key), run.edit.text)
            for field in self._reads[key]
            for run in self._observed.of(field, EditKind.WRONG)
        ]
        return all(
            leaf is not None and leaf.claim is not None and _confirmed(leaf.claim, text) for leaf, text in edited
        )

    def _protecting(self, field: Field) -> frozenset[str]:
        """Return the leaves that detect a wrong value."""
        moved = frozenset[str]().union(*(self._moved[id(run)] for run in self._observed.wrong(field)))
        return moved - self._unrefutable - self._doubtful

    def _is_doubtful(self, key: str) -> bool:
        """Return whether a leaf states a fact but is judged by the answer alone."""
        leaf = self._observed.base[key]
        return leaf.claim is not None and leaf.sources is None and bool(self._reads[key]) and not _compares(leaf)

    # The rules

    def _constant_leaves(self) -> Iterator[Finding]:
        for key, leaf in self._observed.base.items():
            if self._moves(key) or (leaf.claim is not None and (leaf.sources is None or _lacks_value(leaf))):
                continue
            if leaf.claim is None:
                if leaf.check is None:
                    continue
                if leaf.check is False:
                    self.notes.append(f"{key} is not tested: it fails on this answer, and no edit makes it pass")
                    continue
                message = "It always passes: no edit of a value changes it."
                fix = "Use a value of the answer in the check, or let the model judge a claim instead."
            else:
                message = "The claim and its sources do not depend on the answer."
                fix = "Put the extracted value into the claim, and its cited pages into `sources`."
            yield self._finding(FindingCode.CONSTANT_LEAF, key, message, fix)

    def _sources(self) -> Iterator[Finding]:
        has_citations = any(field.urls for field in self._observed.fields) or bool(_cited(self._observed))
        for key, leaf in self._observed.base.items():
            if leaf.claim is None or leaf.sources is None or _lacks_value(leaf) or not has_citations:
                continue
            if not self._sources_move(key):
                if not self._moves(key):
                    continue  # reported as a constant leaf
                if leaf.sources:
                    message = f"Its source is always {leaf.sources[0]}, regardless of the answer's citations."
                    yield self._finding(FindingCode.FIXED_SOURCES, key, message, _USE_CITED)
                else:
                    message = "Its list of sources is always empty, so no answer can pass."
                    yield self._finding(FindingCode.NO_SOURCES, key, message, _USE_CITED)
                continue
            yield from self._left_out(key)
            for run in self._observed.runs:
                if run.edit.kind is not EditKind.NO_CITATIONS or key not in run.leaves or not leaf.sources:
                    continue
                if self._is_gated_by_check(run, key):
                    continue
                after = run.leaves[key].sources
                if after:
                    message = f"If the answer cites nothing, its source is {after[0]}."
                    yield self._finding(FindingCode.FALLBACK_SOURCES, key, message, _NO_FALLBACK)
                elif after is None:
                    message = "If the answer cites nothing, it is judged by the text of the answer."
                    fix = _GATE if self._observed.file.is_script else _NO_FALLBACK
                    yield self._finding(FindingCode.FALLBACK_SOURCES, key, message, fix)

    def _is_gated_by_check(self, run: EditRun, key: str) -> bool:
        """Return whether the leaf is skipped in this run because a check of the judge fails."""
        leaf = run.leaves[key]
        blocker = run.leaves.get(leaf.blocked_by or "")
        return leaf.state == Outcome.SKIPPED and blocker is not None and blocker.check is False

    def _left_out(self, key: str) -> Iterator[Finding]:
        """Find pages in the same list as sources of the claim that are sources of other claims only."""
        lists = {field.path[:-1] for field in self._cites[key] if isinstance(field.path[-1], int)}
        cited_by_others = {field for other, cited in self._cites.items() if other != key for field in cited}
        for field in self._observed.fields:
            if field.path[:-1] in lists and field in cited_by_others and field not in self._cites[key]:
                message = f"Its sources lack {field.name}, which the answer cites together with them."
                yield self._finding(FindingCode.CITATION_NOT_USED, key, message, _USE_CITED)

    def _answer_only(self) -> Iterator[Finding]:
        for key in self._observed.base:
            owners = {field.owner for field in self._reads[key]}
            cited = any(field.urls and field.owner in owners for field in self._observed.fields)
            if key in self._unrefutable:
                alone = any(not self._protecting(field) for field in self._reads[key])
                if cited or alone:
                    message = "It has no sources, and the text of the answer confirms it for every value."
                    yield self._finding(FindingCode.ANSWER_ONLY, key, message, _USE_CITED)
            elif key in self._doubtful:
                names = ", ".join(field.name for field in self._reads[key])
                if cited:
                    message = f"It has no sources, although the answer cites pages for {names}."
                    yield self._finding(FindingCode.ANSWER_ONLY, key, message, _USE_CITED)
                else:
                    self.notes.append(f"{key} is judged by the answer alone ({names})")

    def _unused_fields(self) -> Iterator[Finding]:
        unused: dict[Field, FindingCode] = {}
        for field in self._observed.fields:
            if field.is_empty:
                continue
            runs = self._observed.of(field)
            if not runs:
                self.notes.append(f"{field.name} is not tested: its type accepts no other value")
                continue
            if any(run.new_extractions or run.error for run in runs):
                continue
            wrong, removed = self._observed.wrong(field), self._observed.of(field, EditKind.REMOVED)
            moved_if_removed = any(self._moved[id(run)] for run in removed)
            if field.urls:
                shown_to = [key for key, cited in self._cites.items() if field in cited]
                if not shown_to and not any(self._moved[id(run)] for run in wrong):
                    unused[field] = FindingCode.CITATION_NOT_USED
            elif not any(self._moved[id(run)] for run in wrong):
                if not moved_if_removed:
                    unused[field] = FindingCode.FIELD_NOT_JUDGED
                elif wrong:
                    unused[field] = FindingCode.ONLY_PRESENCE
        yield from self._as_findings(unused)

    def _as_findings(self, unused: dict[Field, FindingCode]) -> Iterator[Finding]:
        by_owner: dict[tuple[str, Path], list[Field]] = defaultdict(list)
        for field in self._observed.fields:
            if not field.is_empty:
                by_owner[field.extraction, field.owner].append(field)
        reported: set[int] = set()
        for (_, owner), fields in by_owner.items():
            idle = [
                field
                for field in fields
                if unused.get(field) in (FindingCode.FIELD_NOT_JUDGED, FindingCode.CITATION_NOT_USED)
            ]
            if owner and len(fields) > 1 and len(idle) == len(fields):
                reported |= {id(field) for field in fields}
                message = f"None of its values is judged: {', '.join(field.name for field in fields)}."
                fix = "Declare claims about these values. If they are not part of the task, remove the fields."
                yield self._field_finding(
                    FindingCode.SECTION_NOT_JUDGED, fields[0], message, fix, subject=format_path(owner)
                )
        by_shape: dict[tuple[FindingCode, Path], list[Field]] = defaultdict(list)
        for field, code in unused.items():
            if id(field) not in reported:
                by_shape[code, field.shape].append(field)
        for (code, _), fields in by_shape.items():
            subject = ", ".join(field.name for field in fields)
            yield self._field_finding(code, fields[0], _MESSAGES[code][0], _MESSAGES[code][1], subject=subject)

    def _wrong_items(self) -> Iterator[Finding]:
        for key in self._observed.base:
            values, citations = self._reads[key], self._cites[key]
            owners = {field.owner for field in values}
            for field in citations:
                parallel = [
                    o for o in owners if shape_of(o) == shape_of(field.owner) or self._same_kind(o, field.owner)
                ]
                own = [o for o in parallel if any(f.urls and f.owner == o for f in self._observed.fields)]
                if own and not any(o == field.owner[: len(o)] or field.owner == o[: len(field.owner)] for o in owners):
                    message = (
                        f"It is about {format_path(own[0])}, but its sources are those of {format_path(field.owner)}."
                    )
                    fix = "Take the claim's values and its sources from the same item."
                    yield self._finding(FindingCode.WRONG_ITEM, key, message, fix)
                    break

    def _same_kind(self, one: Path, other: Path) -> bool:
        """Return whether two objects have the same fields, for items that are separate attributes and not a list."""
        kinds = [{f.declared for f in self._observed.fields if f.owner == owner} for owner in (one, other)]
        return bool(kinds[0]) and kinds[0] == kinds[1]

    def _partial_comparisons(self) -> Iterator[Finding]:
        reported: set[str] = set()
        for field in self._observed.fields:
            for key in sorted(compared_by_code(self._observed, field)):
                if key in reported:
                    continue
                accepted = {
                    kind: run.edit.by
                    for kind in (EditKind.LONGER, EditKind.LONGER_AT_START, EditKind.SHORTER)
                    for run in self._observed.of(field, kind)
                    if key not in flipped(self._observed, run)
                }
                if not accepted:
                    continue
                if self._chooses(field):
                    part = accepted.popitem()[1]
                    self.notes.append(f"{key} finds its item by a part of {field.name}: {part!r} is accepted")
                    continue
                anywhere = EditKind.LONGER_AT_START in accepted and EditKind.SHORTER not in accepted
                if anywhere and not has_digits(field.value):
                    self.notes.append(f"{key} searches for a text anywhere in {field.name}")
                    continue
                reported.add(key)
                shown_value = next(iter(accepted.values()))
                message = f"It accepts {shown_value!r} for {field.value!r} ({field.name}): only a part is compared."
                fix = "Compare the whole value with `==`, after normalizing spaces and case."
                yield self._finding(FindingCode.PARTIAL_COMPARISON, key, message, fix)

    def _chooses(self, field: Field) -> bool:
        """Return whether a field selects an item: with a wrong value, claims lose other values."""
        for run in self._observed.of(field, EditKind.WRONG):
            for key in self._moved[id(run)]:
                base, leaf = self._observed.base.get(key), run.leaves.get(key)
                if base is None or base.claim is None:
                    continue
                if leaf is None or leaf.claim is None or not has_words(leaf.claim, run.edit.words):
                    return True
        return False

    def _unread_sections(self) -> Iterator[Finding]:
        used = {url for leaf in self._observed.base.values() for url in leaf.sources or ()}
        used |= {canonical_key(url) for field in self._observed.fields for url in field.urls}
        cited = _cited(self._observed)
        for section in sections(self._observed.answer):
            section_urls = [url for url, start in cited if section.start <= start < section.end]
            if section_urls and not any(canonical_key(url) in used for url in section_urls):
                message = f"The task uses no citation of this section ({section_urls[0]})."
                fix = "Extract its values and pages and declare claims about them, or remove it from the test answer."
                yield Finding(code=FindingCode.SECTION_NOT_READ, subject=section.title, message=message, fix=fix)

    # Notes and locations

    def _note_untested(self) -> None:
        empty = [field.name for field in self._observed.fields if field.is_empty]
        if empty:
            self.notes.append(f"not tested, because the answer gives no value: {', '.join(empty)}")
        self.notes += [f"{run.edit.title}: {run.error}" for run in self._observed.runs if run.error][:_MAX_ERRORS]
        if self._observed.is_truncated:
            self.notes.append("not all values were edited, because the answer has too many")

    def _finding(self, code: FindingCode, key: str, message: str, fix: str) -> Finding:
        finding = Finding(code=code, subject=key, message=message, fix=fix)
        return self._placed(finding, self._observed.file.leaf(self._observed.base[key]))

    def _field_finding(self, code: FindingCode, field: Field, message: str, fix: str, *, subject: str) -> Finding:
        finding = Finding(code=code, subject=subject, message=message, fix=fix)
        return self._placed(finding, self._observed.file.field(field.declared))

    def _placed(self, finding: Finding, place: SourceRange | None) -> Finding:
        reason = self._observed.file.exemption(place)
        if reason == "":
            finding = replace(finding, fix="Write a reason after `# untested:`.")
        return replace(finding, line=None if place is None else place.first, exempt=reason or None)


_USE_CITED = "Pass the pages that the answer cites for this value as `sources`."
_NO_FALLBACK = "Pass the cited pages unchanged: a claim without sources then fails."
_GATE = "Add a critical sibling that checks for citations: `add_custom_node(bool(urls), ..., critical=True)`."
_MESSAGES = {
    FindingCode.FIELD_NOT_JUDGED: (
        "No leaf changes when this value is wrong or missing.",
        "Put the value into a claim or a check. If it is not part of the task, remove the field.",
    ),
    FindingCode.ONLY_PRESENCE: (
        "A missing value is detected, but a wrong one is not: no claim contains it and no check compares it.",
        "Put the value into the text of its claim.",
    ),
    FindingCode.CITATION_NOT_USED: (
        "No claim has this page as a source: replacing or removing its citation has no effect.",
        "Pass the field as `sources` of the claims for which it is cited.",
    ),
}


def _lacks_value(leaf: ObservedLeaf) -> bool:
    """Return whether the answer gives no value for the claim of a leaf, which is reported with the score."""
    return leaf.reason == Reason.NO_VALUE


def _compares(leaf: ObservedLeaf) -> bool:
    claim = leaf.claim or ""
    return bool(_COMPARING.search(claim) or _ABOUT_WORDING.search(claim))


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """Merge the findings of leaves that the same line declares; the first message is used."""
    merged: dict[tuple[FindingCode, object], Finding] = {}
    for finding in findings:
        place = finding.subject if finding.line is None else finding.line
        first = merged.get((finding.code, place))
        merged[finding.code, place] = (
            finding if first is None else replace(first, subject=f"{first.subject}, {finding.subject}")
        )
    return list(merged.values())


def _confirmed(claim: str, answer: str) -> bool:
    return decide(claim, {"answer": answer}).result


def _cited(observed: FieldTestRuns) -> list[tuple[str, int]]:
    """Return the URLs that the answer cites, with their positions."""
    return [(each.url, each.start) for each in citations(observed.answer)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Text between a heading and the next heading of any level: ``text[start:end]``, without the heading.

    In an answer without headings, a section is a paragraph.
    """

    title: str
    start: int
    end: int


def sections(text: str) -> tuple[Section, ...]:
    """Return the nonempty sections of an answer, in order."""
    headings = list(_HEADING.finditer(text))
    if headings:
        ends = [*(heading.start() for heading in headings[1:]), len(text)]
        parts = [
            Section(title=each["title"].strip(), start=each.end(), end=end)
            for each, end in zip(headings, ends, strict=True)
        ]
    else:
        parts = list(_paragraphs(text))
    return tuple(each for each in parts if text[each.start : each.end].strip())


def _paragraphs(text: str) -> Iterator[Section]:
    at = 0
    for blank in [*_BLANK_LINES.finditer(text), None]:
        end = len(text) if blank is None else blank.start()
        title = " ".join(text[at:end].split())
        yield Section(title=title[:_TITLE_CHARS], start=at, end=end)
        at = end if blank is None else blank.end()

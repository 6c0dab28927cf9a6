"""What a field test found: leaves, fields and citations that nothing protects, each with its line and a fix. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from answers.citations import citations
from cache.urls import canonical_key
from judges.analysis.mutation.edits import EditKind
from judges.analysis.mutation.field_test import Observed, Run, compared_by_code, flipped
from judges.analysis.mutation.fields import Field, Path, has_words, shape_of, shown
from judges.analysis.mutation.leaves import SeenLeaf
from judges.analysis.mutation.pieces import sections
from judges.analysis.mutation.places import Place
from judges.analysis.mutation.variants import has_digits
from judges.llm.lexical import decide
from rubrics.verdict import Outcome

_COMPARING = re.compile(
    r"\b(?:same|equals?|equal to|match(?:es)?|identical|equivalent|refers?|corresponds?|one of|among|before|after"
    r"|earlier|later|at least|at most|more|less|fewer|than|within|between|not|no|either|valid|plausible)\b",
    re.IGNORECASE,
)
"""A claim with one of these compares values, and so can be judged without a page."""
_ABOUT_WORDING = re.compile(
    r"(?<!\w)(?:'[^']+'|\"[^\"]+\"|`[^`]+`|\u201c[^\u201d]+\u201d)(?!\w)|\banswer\b", re.IGNORECASE
)
"""So can one that quotes a value, or is about the answer itself."""


_MAX_ERRORS = 3


class Code(StrEnum):
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
    """One thing that is not protected. ``subject`` names the leaf, field or citation, ``line`` is in the judge file.

    ``exempt`` is the reason that the judge file gives for leaving it so.
    """

    code: Code
    subject: str
    message: str
    fix: str
    line: int | None = None
    exempt: str | None = None

    def json(self) -> dict[str, Any]:
        return {
            "code": self.code.value,
            "subject": self.subject,
            "message": self.message,
            "fix": self.fix,
            "line": self.line,
            "exempt": self.exempt,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldReport:
    """All findings. ``notes`` are what an author should know without having to change anything."""

    findings: tuple[Finding, ...]
    exempt: tuple[Finding, ...]
    notes: tuple[str, ...]
    edits: int
    fields: int
    leaves: int

    def json(self) -> dict[str, Any]:
        return {
            "edits": self.edits,
            "fields": self.fields,
            "leaves": self.leaves,
            "findings": [each.json() for each in self.findings],
            "exempt": [each.json() for each in self.exempt],
            "notes": list(self.notes),
        }


def report(observed: Observed) -> FieldReport:
    """Everything that the runs show."""
    found = _Finder(observed)
    findings = found.all()
    return FieldReport(
        findings=tuple(each for each in findings if not each.exempt),
        exempt=tuple(each for each in findings if each.exempt),
        notes=tuple(dict.fromkeys(found.notes)),
        edits=len(observed.runs),
        fields=len(observed.fields),
        leaves=len(observed.base),
    )


class _Finder:
    """Applies the rules, one method each."""

    def __init__(self, observed: Observed) -> None:
        self._seen = observed
        self._moved = {id(run): observed.moved(run) for run in observed.runs}
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
        found = [finding for rule in rules for finding in rule()]
        self._note_untested()
        return sorted(_merged(found), key=lambda each: (each.line is None, each.line or 0))

    # What depends on what

    def _values_of(self, key: str) -> Iterator[Field]:
        """The fields whose value stands in the claim of a leaf."""
        for field in self._seen.fields:
            for run in self._seen.of(field, EditKind.WRONG):
                leaf, base = run.leaves.get(key), self._seen.base[key]
                if leaf and leaf.claim and leaf.claim != base.claim and has_words(leaf.claim, run.edit.words):
                    yield field
                    break

    def _citations_of(self, key: str) -> Iterator[Field]:
        """The fields whose addresses are among the sources of a leaf."""
        for field in self._seen.fields:
            for run in self._seen.of(field, EditKind.OTHER_URL):
                leaf = run.leaves.get(key)
                if leaf and leaf.sources and leaf.sources != self._seen.base[key].sources:
                    yield field
                    break

    def _moves(self, key: str) -> bool:
        return any(key in moved for moved in self._moved.values())

    def _sources_move(self, key: str) -> bool:
        before = self._seen.base[key].sources
        return any(
            key not in run.leaves or run.leaves[key].sources != before
            for run in self._seen.runs
            if run.edit.kind in (EditKind.OTHER_URL, EditKind.NO_CITATIONS)
            or (run.edit.kind is EditKind.REMOVED and run.edit.field is not None and run.edit.field.urls)
        )

    def _is_unrefutable(self, key: str) -> bool:
        """Whether the answer itself bears the claim out, whatever value it gives."""
        leaf = self._seen.base[key]
        if leaf.claim is None or leaf.sources is not None or not self._reads[key]:
            return False
        if not _confirmed(leaf.claim, self._seen.answer):
            return False
        return all(
            self._confirmed_in(run, key) for field in self._reads[key] for run in self._seen.of(field, EditKind.WRONG)
        )

    def _confirmed_in(self, run: Run, key: str) -> bool:
        leaf = run.leaves.get(key)
        return leaf is not None and leaf.claim is not None and _confirmed(leaf.claim, run.edit.text)

    def _protecting(self, field: Field) -> frozenset[str]:
        """The leaves that would notice a wrong value."""
        moved = frozenset[str]().union(*(self._moved[id(run)] for run in self._seen.wrong(field)))
        return moved - self._unrefutable - self._doubtful

    def _is_doubtful(self, key: str) -> bool:
        """Whether a leaf states a fact and is judged by the answer alone."""
        leaf = self._seen.base[key]
        return leaf.claim is not None and leaf.sources is None and bool(self._reads[key]) and not _compares(leaf)

    # The rules

    def _constant_leaves(self) -> Iterator[Finding]:
        for key, leaf in self._seen.base.items():
            if self._moves(key) or (leaf.claim is not None and leaf.sources is None):
                continue
            if leaf.claim is None:
                if leaf.check is None:
                    continue
                if leaf.check is False:
                    self.notes.append(f"{key} fails on this answer, and no edit makes it pass: not tested")
                    continue
                message = "It passes whatever the answer says: no edit of any value changes it."
                fix = "Pass a value of the answer to `check`, or put the claim to the model with `verify`."
            else:
                message = "The claim and its sources are the same whatever the answer says."
                fix = "Put the value that was read into the claim, and its cited pages into `sources`."
            yield self._finding(Code.CONSTANT_LEAF, key, message, fix)

    def _sources(self) -> Iterator[Finding]:
        has_citations = any(field.urls for field in self._seen.fields) or bool(_cited(self._seen))
        for key, leaf in self._seen.base.items():
            if leaf.claim is None or leaf.sources is None or not has_citations:
                continue
            if not self._sources_move(key):
                if not self._moves(key):
                    continue  # reported as a constant leaf
                if leaf.sources:
                    message = f"It is shown {leaf.sources[0]} whatever the answer cites."
                    yield self._finding(Code.FIXED_SOURCES, key, message, _USE_CITED)
                else:
                    message = "Its list of sources is always empty, so no answer can pass."
                    yield self._finding(Code.NO_SOURCES, key, message, _USE_CITED)
                continue
            yield from self._left_out(key)
            for run in self._seen.runs:
                if run.edit.kind is not EditKind.NO_CITATIONS or key not in run.leaves or not leaf.sources:
                    continue
                if self._is_gated_by_check(run, key):
                    continue
                after = run.leaves[key].sources
                if after:
                    message = f"If the answer cites nothing, it is shown {after[0]}."
                    yield self._finding(Code.FALLBACK_SOURCES, key, message, _NO_FALLBACK)
                elif after is None:
                    message = "If the answer cites nothing, it is judged by the answer's own words."
                    fix = _GATE if self._seen.file.is_script else _NO_FALLBACK
                    yield self._finding(Code.FALLBACK_SOURCES, key, message, fix)

    def _is_gated_by_check(self, run: Run, key: str) -> bool:
        """Whether a check of the judge fails in this run, so that the leaf is not put to the model at all."""
        leaf = run.leaves[key]
        blocker = run.leaves.get(leaf.blocked_by or "")
        return leaf.outcome is Outcome.SKIPPED and blocker is not None and blocker.check is False

    def _left_out(self, key: str) -> Iterator[Finding]:
        """Pages that are cited in the same list as those that the claim is shown, and shown to other claims only."""
        lists = {field.path[:-1] for field in self._cites[key] if isinstance(field.path[-1], int)}
        elsewhere = {field for other, cited in self._cites.items() if other != key for field in cited}
        for field in self._seen.fields:
            if field.path[:-1] in lists and field in elsewhere and field not in self._cites[key]:
                message = f"It is not shown {field.name}, which the answer cites together with its other pages."
                yield self._finding(Code.CITATION_NOT_USED, key, message, _USE_CITED)

    def _answer_only(self) -> Iterator[Finding]:
        for key in self._seen.base:
            owners = {field.owner for field in self._reads[key]}
            cited = any(field.urls and field.owner in owners for field in self._seen.fields)
            if key in self._unrefutable:
                alone = any(not self._protecting(field) for field in self._reads[key])
                if cited or alone:
                    message = "No page is asked, and the answer's own words confirm it whatever value they give."
                    yield self._finding(Code.ANSWER_ONLY, key, message, _USE_CITED)
            elif key in self._doubtful:
                names = ", ".join(field.name for field in self._reads[key])
                if cited:
                    message = f"No page is asked, although the answer cites pages for {names}."
                    yield self._finding(Code.ANSWER_ONLY, key, message, _USE_CITED)
                else:
                    self.notes.append(f"{key} is judged by the answer alone ({names})")

    def _unused_fields(self) -> Iterator[Finding]:
        unused: dict[Field, Code] = {}
        for field in self._seen.fields:
            if field.is_empty:
                continue
            runs = self._seen.of(field)
            if not runs:
                self.notes.append(f"{field.name}: the class takes no other value, so it is not tested")
                continue
            if any(run.new_extractions or run.error for run in runs):
                continue
            wrong, removed = self._seen.wrong(field), self._seen.of(field, EditKind.REMOVED)
            moved_if_removed = any(self._moved[id(run)] for run in removed)
            if field.urls:
                shown_to = [key for key, cited in self._cites.items() if field in cited]
                if not shown_to and not any(self._moved[id(run)] for run in wrong):
                    unused[field] = Code.CITATION_NOT_USED
            elif not any(self._moved[id(run)] for run in wrong):
                if not moved_if_removed:
                    unused[field] = Code.FIELD_NOT_JUDGED
                elif wrong:
                    unused[field] = Code.ONLY_PRESENCE
        yield from self._as_findings(unused)

    def _as_findings(self, unused: dict[Field, Code]) -> Iterator[Finding]:
        by_owner: dict[tuple[str, Path], list[Field]] = defaultdict(list)
        for field in self._seen.fields:
            if not field.is_empty:
                by_owner[field.extraction, field.owner].append(field)
        told: set[int] = set()
        for (_, owner), fields in by_owner.items():
            idle = [field for field in fields if unused.get(field) in (Code.FIELD_NOT_JUDGED, Code.CITATION_NOT_USED)]
            if owner and len(fields) > 1 and len(idle) == len(fields):
                told |= {id(field) for field in fields}
                message = f"Nothing of it is judged: {', '.join(field.name for field in fields)}."
                fix = (
                    "Declare claims about these values; if they are not part of the task, leave them out of the class."
                )
                yield self._field_finding(Code.SECTION_NOT_JUDGED, fields[0], message, fix, subject=shown(owner))
        alike: dict[tuple[Code, Path], list[Field]] = defaultdict(list)
        for field, code in unused.items():
            if id(field) not in told:
                alike[code, field.shape].append(field)
        for (code, _), fields in alike.items():
            subject = ", ".join(field.name for field in fields)
            yield self._field_finding(code, fields[0], _MESSAGES[code][0], _MESSAGES[code][1], subject=subject)

    def _wrong_items(self) -> Iterator[Finding]:
        for key in self._seen.base:
            values, citations = self._reads[key], self._cites[key]
            owners = {field.owner for field in values}
            for field in citations:
                parallel = [
                    o for o in owners if shape_of(o) == shape_of(field.owner) or self._same_kind(o, field.owner)
                ]
                own = [o for o in parallel if any(f.urls and f.owner == o for f in self._seen.fields)]
                if own and not any(_related(o, field.owner) for o in owners):
                    message = f"It is about {shown(own[0])} and is shown the pages cited for {shown(field.owner)}."
                    fix = "Take the claim's values and its sources from the same item."
                    yield self._finding(Code.WRONG_ITEM, key, message, fix)
                    break
            else:
                yield from self._mixed_items(key, values)

    def _mixed_items(self, key: str, values: list[Field]) -> Iterator[Finding]:
        """A claim with one value of one item and another value of another, that is false on a good answer."""
        names: dict[Path, set[Any]] = defaultdict(set)
        for field in values:
            names[field.owner].add(field.declared)
        pairs = [
            (one, other)
            for one in names
            for other in names
            if one < other and shape_of(one) == shape_of(other) and not names[one] & names[other]
        ]
        for one, other in pairs[:1]:
            if key in self._seen.refuted or self._is_fixed_item(key, values):
                message = f"It puts together values of {shown(one)} and {shown(other)}."
                yield self._finding(Code.WRONG_ITEM, key, message, "Take all values of a claim from the same item.")

    def _is_fixed_item(self, key: str, values: list[Field]) -> bool:
        """Whether leaves of the same name read the same field of the same item, while their other fields differ."""
        last = key.rpartition("/")[2]
        place = self._seen.file.leaf(self._seen.base[key])
        for other in self._seen.base:
            same = other.rpartition("/")[2] == last or (
                place is not None and self._seen.file.leaf(self._seen.base[other]) == place
            )
            if other != key and same and set(self._reads[other]) & set(values) and self._reads[other] != values:
                return True
        return False

    def _same_kind(self, one: Path, other: Path) -> bool:
        """Whether two objects have the same fields, as entries named one by one have."""
        kinds = [{f.declared for f in self._seen.fields if f.owner == owner} for owner in (one, other)]
        return bool(kinds[0]) and kinds[0] == kinds[1]

    def _partial_comparisons(self) -> Iterator[Finding]:
        told: set[str] = set()
        for field in self._seen.fields:
            for key in sorted(compared_by_code(self._seen, field)):
                if key in told:
                    continue
                accepted = {
                    kind: run.edit.by
                    for kind in (EditKind.LONGER, EditKind.LONGER_AT_START, EditKind.SHORTER)
                    for run in self._seen.of(field, kind)
                    if key not in flipped(self._seen, run)
                }
                if not accepted:
                    continue
                if self._chooses(field):
                    self.notes.append(f"{key} finds its item by a part of {field.name}: {accepted.popitem()[1]!r} does")
                    continue
                anywhere = EditKind.LONGER_AT_START in accepted and EditKind.SHORTER not in accepted
                if anywhere and not has_digits(field.value):
                    self.notes.append(f"{key} looks for a text anywhere in {field.name}")
                    continue
                told.add(key)
                shown_value = next(iter(accepted.values()))
                message = f"It takes {shown_value!r} for {field.value!r} ({field.name}): only a part is compared."
                fix = "Compare the whole value with `==`, after removing spaces and capitals."
                yield self._finding(Code.PARTIAL_COMPARISON, key, message, fix)

    def _chooses(self, field: Field) -> bool:
        """Whether a field is used to find an item: with a wrong value, claims lose other values."""
        for run in self._seen.of(field, EditKind.WRONG):
            for key in self._moved[id(run)]:
                base, leaf = self._seen.base.get(key), run.leaves.get(key)
                if base is None or base.claim is None:
                    continue
                if leaf is None or leaf.claim is None or not has_words(leaf.claim, run.edit.words):
                    return True
        return False

    def _unread_sections(self) -> Iterator[Finding]:
        used = {url for leaf in self._seen.base.values() for url in leaf.sources or ()}
        used |= {canonical_key(url) for field in self._seen.fields for url in field.urls}
        cited = _cited(self._seen)
        for section in sections(self._seen.answer):
            here = [url for url, start in cited if section.start <= start < section.end]
            if here and not any(canonical_key(url) in used for url in here):
                message = f"The judge reads nothing of what the answer cites there ({here[0]})."
                fix = "Extract its values and pages and declare claims about them, or take it out of the test answer."
                yield Finding(code=Code.SECTION_NOT_READ, subject=section.title, message=message, fix=fix)

    # Notes and places

    def _note_untested(self) -> None:
        empty = [field.name for field in self._seen.fields if field.is_empty]
        if empty:
            self.notes.append(f"the answer gives no value for {', '.join(empty)}: not tested")
        self.notes += [f"{run.edit.title}: {run.error}" for run in self._seen.runs if run.error][:_MAX_ERRORS]
        failed = sorted(self._seen.refuted)
        if failed:
            self.notes.append(f"fail on this answer as it is: {', '.join(failed)}")
        if self._seen.cut:
            self.notes.append("the answer has too many values: not all were edited")

    def _finding(self, code: Code, key: str, message: str, fix: str) -> Finding:
        finding = Finding(code=code, subject=key, message=message, fix=fix)
        return self._placed(finding, self._seen.file.leaf(self._seen.base[key]))

    def _field_finding(self, code: Code, field: Field, message: str, fix: str, *, subject: str) -> Finding:
        finding = Finding(code=code, subject=subject, message=message, fix=fix)
        return self._placed(finding, self._seen.file.field(field.declared))

    def _placed(self, finding: Finding, place: Place | None) -> Finding:
        reason = self._seen.file.exemption(place)
        if reason == "":
            finding = replace(finding, fix="Write a reason after `# untested:`.")
        return replace(finding, line=None if place is None else place.first, exempt=reason or None)


_USE_CITED = "Pass the pages that the answer cites for this value as `sources`."
_NO_FALLBACK = "Pass the cited pages as they are: a claim without any fails, as it should."
_GATE = "Check beside it that pages are cited: `add_custom_node(bool(urls), ..., critical=True)`."
_MESSAGES = {
    Code.FIELD_NOT_JUDGED: (
        "No leaf changes when this value is wrong or missing.",
        "Put the value into a claim or a check; if it is not part of the task, leave it out of the class.",
    ),
    Code.ONLY_PRESENCE: (
        "A missing value is noticed and a wrong one is not: no claim contains it and no check compares it.",
        "Put the value into the text of its claim.",
    ),
    Code.CITATION_NOT_USED: (
        "No claim is shown this page: its citation can be replaced or left out, and nothing else is asked.",
        "Pass the field as `sources` of the claims that it is cited for.",
    ),
}


def _compares(leaf: SeenLeaf) -> bool:
    claim = leaf.claim or ""
    return bool(_COMPARING.search(claim) or _ABOUT_WORDING.search(claim))


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for all leaves that the same line declares, with the message of the first."""
    found: dict[tuple[Code, object], Finding] = {}
    for each in findings:
        place = each.subject if each.line is None else each.line
        first = found.get((each.code, place))
        found[each.code, place] = each if first is None else replace(first, subject=f"{first.subject}, {each.subject}")
    return list(found.values())


def _confirmed(claim: str, answer: str) -> bool:
    return decide(claim, {"answer": answer}).result


def _related(one: Path, other: Path) -> bool:
    return one[: len(other)] == other or other[: len(one)] == one


def _cited(observed: Observed) -> list[tuple[str, int]]:
    """The addresses that the answer cites, and where."""
    return [(each.url, each.start) for each in citations(observed.answer)]

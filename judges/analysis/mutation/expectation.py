"""Expected effect of a mutation: the leaves that must change. Pure and conservative: leaves that may change are left
out.

A leaf must change if it passed on the original answer, has a claim, and the mutation leaves nothing that could support
the claim. Code decides this, without a model:

- Sources: no page that the claim would still have contains all of its numbers and names
  (``judges.grounding.term_overlap.missing_terms``).
- Values from the answer: a value of the claim was replaced by one that occurs in no page, or was removed. For a claim
  about the answer alone this counts only if the claim names the value twice, because it then compares the extracted
  value with the expected one.

Leaves decided by code are never expected to change, because their inputs are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cache.urls import canonical_key
from judges.analysis.mutation.leaves import ObservedLeaf, ObservedRun
from judges.analysis.mutation.mutations import Mutation, MutationKind, values_of
from judges.analysis.mutation.pieces import cited_keys, count_value, without_urls
from judges.grounding.term_overlap import missing_terms, stems_of


class Expectation:
    """Expected changes of the leaves of one run. ``pages``: the texts of the pages that the answer cites, by URL."""

    def __init__(self, answer: str, base: ObservedRun, pages: Mapping[str, str]) -> None:
        self._answer = answer
        self._base = base
        self._stems = {canonical_key(url): stems_of(text) for url, text in pages.items()}
        self._cited = cited_keys(answer)

    def of(self, mutation: Mutation) -> tuple[ObservedLeaf, ...]:
        """Return the leaves that ``mutation`` must change, in tree order."""
        if mutation.kind is MutationKind.UNTOUCHED:
            return ()
        return tuple(leaf for leaf in self._base.passed if self._must_change(leaf, mutation))

    def _must_change(self, leaf: ObservedLeaf, mutation: Mutation) -> bool:
        return self._loses_its_sources(leaf, mutation) or any(True for _ in self.lost_values(leaf, mutation))

    def _loses_its_sources(self, leaf: ObservedLeaf, mutation: Mutation) -> bool:
        """Return whether none of the remaining sources contains all numbers and names of the claim."""
        if not leaf.sources:
            return False
        shown = self.sources_after(leaf, mutation)
        if shown == frozenset(leaf.sources):
            return False
        # A page without text is no evidence, so it cannot support the claim.
        return all(key not in self._stems or missing_terms(leaf.claim or "", self._stems[key]) for key in shown)

    def sources_after(self, leaf: ObservedLeaf, mutation: Mutation) -> frozenset[str]:
        """Return the keys of the leaf's sources after the mutation, as far as they come from the answer."""
        before, left = frozenset(leaf.sources or ()), cited_keys(mutation.text)
        after = {key for key in before if key not in self._cited or key in left}
        if mutation.kind is MutationKind.OTHER_PAGE and canonical_key(mutation.piece) in before:
            after.add(canonical_key(mutation.by))
        return frozenset(after)

    def lost_values(self, leaf: ObservedLeaf, mutation: Mutation) -> Iterable[str]:
        """Yield the values that the claim depends on and that the changed answer no longer contains."""
        claim, left = leaf.claim or "", without_urls(mutation.text)
        for value in values_of(claim, self._base, self._answer):
            if not count_value(value, left) and (leaf.sources is not None or count_value(value, claim) > 1):
                yield value

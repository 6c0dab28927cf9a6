"""Which leaves a change of the answer must move. Pure, and on the careful side: what may move is not expected to.

A leaf is expected to move when it passed on the answer as it was, has a claim, and the change leaves nothing that could
bear the claim out. By code alone, without a model's opinion:

- its sources: no page that it would still be shown has every number and name of the claim
  (``judges.grounding.term_overlap.lacking``);
- a value of the claim that came from the answer: it is swapped for one that stands in no page, or no longer said. For a
  claim about the answer alone that holds only if the claim names the value twice, comparing what was read with what the
  judge expects.

Leaves decided by code are never expected to move: nobody can see what they rest on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cache.urls import canonical_key
from judges.analysis.mutation.leaves import Seen, SeenLeaf
from judges.analysis.mutation.mutations import Kind, Mutation, values_of
from judges.analysis.mutation.pieces import cited_keys, count, without_urls
from judges.grounding.term_overlap import lacking, stems_of


class Expectation:
    """What is to be expected of the leaves of one run, given the texts of the pages that the answer cites, by URL."""

    def __init__(self, answer: str, base: Seen, pages: Mapping[str, str]) -> None:
        self._answer = answer
        self._base = base
        self._stems = {canonical_key(url): stems_of(text) for url, text in pages.items()}
        self._cited = cited_keys(answer)

    def of(self, mutation: Mutation) -> tuple[SeenLeaf, ...]:
        """The leaves that ``mutation`` must move, in the order of the tree."""
        if mutation.kind is Kind.UNTOUCHED:
            return ()
        return tuple(leaf for leaf in self._base.passed if self._must_move(leaf, mutation))

    def _must_move(self, leaf: SeenLeaf, mutation: Mutation) -> bool:
        return self._loses_its_page(leaf, mutation) or any(True for _ in self.lost_values(leaf, mutation))

    def _loses_its_page(self, leaf: SeenLeaf, mutation: Mutation) -> bool:
        """Whether no page that could still be cited for the claim has all that the claim says."""
        if not leaf.sources:
            return False
        shown = self.sources_after(leaf, mutation)
        if shown == frozenset(leaf.sources):
            return False
        # A page whose text nobody has is no evidence, so nothing could rest on it.
        return all(key not in self._stems or lacking(leaf.claim or "", self._stems[key]) for key in shown)

    def sources_after(self, leaf: SeenLeaf, mutation: Mutation) -> frozenset[str]:
        """The keys of the leaf's sources once the answer is changed, as far as they come from the answer."""
        before, left = frozenset(leaf.sources or ()), cited_keys(mutation.text)
        after = {key for key in before if key not in self._cited or key in left}
        if mutation.kind is Kind.OTHER_PAGE and canonical_key(mutation.piece) in before:
            after.add(canonical_key(mutation.by))
        return frozenset(after)

    def lost_values(self, leaf: SeenLeaf, mutation: Mutation) -> Iterable[str]:
        """The values of the claim that the changed answer no longer says, if the claim rests on them."""
        claim, left = leaf.claim or "", without_urls(mutation.text)
        for value in values_of(claim, self._base, self._answer):
            if not count(value, left) and (leaf.sources is not None or count(value, claim) > 1):
                yield value

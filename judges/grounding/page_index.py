"""Index of a page's text for grounding checks, computed once on first use.

Nothing of it goes into a prompt, so it can be computed while the model request is pending.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Final

from judges.grounding.confusables import confusable_skeleton
from judges.grounding.folding import FoldedText, fold
from judges.grounding.injection import Scan, scan
from judges.grounding.term_overlap import distinct_tokens, stems_in, stems_of

_BYTES_PER_CHAR: Final = 6
"""Bytes per character: the folded character and its original position. The stems are small in comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    folded: FoldedText
    stems: frozenset[str]
    unrendered: str
    scan: Scan


class PageIndex:
    """Lazily computed index of a page's text. Thread-safe.

    ``shown`` is the text as shown to the judge, ``extra_words`` further words that count as the page's, ``hidden`` the
    part of a PDF's text that is not rendered. The first property access takes tens of milliseconds for a long page; do
    it in a thread.
    """

    def __init__(self, shown: str, *, extra_words: str = "", hidden: str = "") -> None:
        self._shown = shown
        self._extra_words = extra_words
        self._hidden = hidden
        self._lock = Lock()
        self._index: _Index | None = None

    def of_part(self, part: str, *, whole: str) -> PageIndex:
        """Return the index of a part of the page. The words of the ``whole`` page count as those of the part."""
        words = " ".join(distinct_tokens(whole))
        return PageIndex(part, extra_words=f"{self._extra_words}\n{words}", hidden=self._hidden)

    @property
    def folded(self) -> FoldedText:
        """Folded text, for finding quotes."""
        return self._get().folded

    @property
    def stems(self) -> frozenset[str]:
        """Stems of all words and numbers of the page."""
        return self._get().stems

    @property
    def unrendered(self) -> str:
        """Text that is not rendered, folded."""
        return self._get().unrendered

    @property
    def scan(self) -> Scan:
        """Injection scan of the text."""
        return self._get().scan

    @property
    def size(self) -> int:
        """Approximate memory in bytes after the first use."""
        return _BYTES_PER_CHAR * len(self._shown) + len(self._hidden)

    def _get(self) -> _Index:
        with self._lock:
            if self._index is None:
                folded = fold(self._shown)
                plain = confusable_skeleton(folded)
                self._index = _Index(
                    folded=folded,
                    stems=stems_in(plain.text) | stems_of(self._extra_words),
                    unrendered=fold(self._hidden).text,
                    scan=scan(self._shown, plain),
                )
            return self._index

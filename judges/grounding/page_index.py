"""What code makes of a page's text, to check what a judge says of it: worked out once, when somebody first asks.

None of it goes into a prompt, so it can be worked out while the model thinks.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Final

from judges.grounding.confusables import plain_text
from judges.grounding.folding import FoldedText, fold
from judges.grounding.injection import Scan, scan
from judges.grounding.term_overlap import stems_in, stems_of

_BYTES_PER_CHAR: Final = 6
"""A character folded and its place in the original; the stems are few beside that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    folded: FoldedText
    stems: frozenset[str]
    unseen: str
    scan: Scan


class PageReading:
    """``shown`` is as much of a page's text as a judge is shown, ``besides`` words that count as the page's too,
    ``hidden`` what of a PDF's text no eye sees. The first use of a property takes tens of milliseconds for a long
    page: off the event loop. Safe to use from several threads.
    """

    def __init__(self, shown: str, *, besides: str = "", hidden: str = "") -> None:
        self._shown = shown
        self._besides = besides
        self._hidden = hidden
        self._lock = Lock()
        self._done: _Read | None = None

    @property
    def folded(self) -> FoldedText:
        """The text for finding quotes."""
        return self._read().folded

    @property
    def stems(self) -> frozenset[str]:
        """Those of all words and numbers of the page."""
        return self._read().stems

    @property
    def unseen(self) -> str:
        """What no eye sees, folded."""
        return self._read().unseen

    @property
    def scan(self) -> Scan:
        """What in the text speaks to the judge."""
        return self._read().scan

    @property
    def size(self) -> int:
        """Roughly, in bytes of memory, once it is read."""
        return _BYTES_PER_CHAR * len(self._shown) + len(self._hidden)

    def _read(self) -> _Read:
        with self._lock:
            if self._done is None:
                folded = fold(self._shown)
                plain = plain_text(folded)
                self._done = _Read(
                    folded=folded,
                    stems=stems_in(plain.text) | stems_of(self._besides),
                    unseen=fold(self._hidden).text,
                    scan=scan(self._shown, plain),
                )
            return self._done

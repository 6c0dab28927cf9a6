"""What a judge is shown of a capture: its text and its screenshots, loaded and hash-checked."""

from __future__ import annotations

from dataclasses import dataclass

from cache.capture import Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The readable side of one capture that is evidence.

    ``text`` is the page's visible text, ``links`` its (text, target) pairs, ``screenshots`` 0..n JPEG
    bytes, ``digests`` the SHA-256 (hex) of everything in it, in that order.

    ``hidden_text`` is known for PDFs only: what the file holds and the paper does not show. What a scanner read
    stands in ``text`` as well; whoever needs words that can be seen on the page leaves those out.
    """

    capture: Capture
    text: str
    links: tuple[tuple[str, str], ...] = ()
    screenshots: tuple[bytes, ...] = ()
    digests: tuple[str, ...] = ()
    hidden_text: str = ""

    @property
    def page_id(self) -> str:
        return self.capture.id

    @property
    def size(self) -> int:
        """In bytes of memory, on the careful side: a str takes up to 4 bytes a character."""
        return 4 * (len(self.text) + len(self.hidden_text)) + sum(map(len, self.screenshots))

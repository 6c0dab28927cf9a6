"""Evidence of a capture: the text and screenshots that a judge sees, verified against their hashes."""

from __future__ import annotations

from dataclasses import dataclass

from cache.capture import Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Text, links and screenshots of one capture.

    Attributes:
        text: Visible text of the page.
        links: Pairs of link text and target.
        screenshots: 0..n JPEGs.
        digests: SHA-256 (hex) of text, links and screenshots, in this order.
        hidden_text: Only for PDFs: text that is in the file but not visible. OCR text of a scan is also in ``text``;
            exclude it if the words must be visible on the page.
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
        """Estimated size in bytes of memory. A character of a str takes up to 4 bytes."""
        return 4 * (len(self.text) + len(self.hidden_text)) + sum(map(len, self.screenshots))

"""Write the data sheet of the demo site, a one-page PDF: ``python scripts/make_demo_pdf.py``.

The PDF is committed. Run this only after you change the text, and update app/demo/expected.py, which depends on it.
"""

from __future__ import annotations

from pathlib import Path

import pymupdf

TARGET = Path(__file__).parents[1] / "app" / "demo" / "site" / "files" / "heron-2-data-sheet.pdf"
LINES = (
    (20, "Heron 2"),
    (12, "Data sheet, edition of May 2025"),
    (12, "Pellard Instruments, South Quay 11, Karrow Bay"),
    (12, ""),
    (12, "The Heron 2 weighs 5.8 kg with its frame ring and 5.1 kg without it."),
    (12, "The battery of the Heron 2 lasts 120 hours at one reading a second."),
    (12, "The housing is tight to a depth of 400 m."),
    (12, "The Heron 2 costs 1,350 crowns."),
    (12, ""),
    (12, "The Heron 2 is not delivered with a spare battery."),
)


def write(target: Path) -> None:
    """Write the PDF to ``target``. The same text always gives the same bytes."""
    with pymupdf.open() as document:  # type: ignore[no-untyped-call]
        page = document.new_page(width=595, height=842)
        top = 80
        for size, line in LINES:
            page.insert_text((72, top), line, fontsize=size)
            top += round(size * 1.8)
        document.set_metadata({"title": "Heron 2 data sheet"})
        document.save(target, garbage=4, deflate=True, no_new_id=True)


if __name__ == "__main__":
    write(TARGET)

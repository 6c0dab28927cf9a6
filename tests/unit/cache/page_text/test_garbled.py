# ruff: noqa: RUF001 - letters and punctuation of other scripts
"""Garbled text is recognized; a few unreadable characters, icons, formulas and other scripts are not garbled text."""

from __future__ import annotations

import pytest

from cache.page_text.sentences import garbled_reason, unreadable_chars

ENGLISH = "The Halden Bridge opened in 1931. It crosses the river near the old mill and the market square. "
FRENCH = "Le pont a été ouvert en 1931 près du vieux moulin, à côté de l’hôtel de la place du marché. "
GERMAN = "Die Halden-Brücke wurde 1931 eröffnet. Sie ist 420 Meter lang und liegt nahe der alten Mühle am Markt. "
RUSSIAN = "Мост Халден был открыт в 1931 году. Он пересекает реку возле старой мельницы и площади. "
JAPANESE = "ハルデン橋は1931年に開通しました。川を渡り、古い水車小屋の近くにあります。"


def private(text: str) -> str:
    """Return the text as a font without a mapping to Unicode yields it."""
    return "".join(chr(0xF000 + ord(char)) if char.isalnum() else char for char in text)


@pytest.mark.parametrize(
    "text",
    [
        private(ENGLISH),
        ENGLISH * 8 + private(ENGLISH),  # the font of one paragraph
        "".join(chr(0x100000 + ord(char)) for char in ENGLISH),
        "\ufffd" * 40,
        RUSSIAN.encode("cp1251").decode("utf-8", errors="replace"),
        RUSSIAN.encode("cp1251").decode("cp1252"),
        RUSSIAN.encode().decode("latin-1"),
        JAPANESE.encode().decode("cp1252", errors="replace"),
        "Η γέφυρα άνοιξε το 1931 κοντά στον παλιό μύλο.".encode("cp1253").decode("cp1252"),
        bytes(range(256)).decode("cp1252", errors="replace"),
    ],
)
def test_text_of_another_charset_or_font_is_garbled(text: str) -> None:
    assert garbled_reason(text).endswith("characters are no writing")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ENGLISH,
        FRENCH,
        RUSSIAN,
        JAPANESE,
        "Brúin var opnuð árið 1931. Hún liggur yfir ána, þar sem fólkið býr við Þjóðveginn.",
        "Cầu được khánh thành năm 1931, gần nhà máy cũ và quảng trường chợ.",
        ENGLISH * 2 + "\ufffd" * 7,
        "\ufffd" * 9,
        (GERMAN * 5).encode("latin-1").decode("utf-8", errors="replace"),
        "\uf09a \uf099 \uf16d \uf0e1 \uf002 \uf0c9 Menu Search Contact \uf0e0 \uf095 \uf015 Home \uf013 \uf007",
        "Lamp $12 \uf005\uf005\uf005\uf005\uf089 (7)\n" * 20,
        "\uf8eb\uf8ec\uf8ec\uf8ed a b \uf8f6\uf8f7\uf8f7\uf8f8 = det(A) + \uf061\uf03d\uf062\n" * 20,
        "∫ₐᵇ f(x) dx = ∑ αᵢβᵢ ≤ ‖x‖², 𝔼[X] → ℝⁿ",
        "— “Où ?” … « là » — ¡¿Qué?! ÄÖÜ äöü ß ÷ × ½ ° § – € 12,–",
        "Caf\xc3\xa9 in Z\xc3\xbcrich, it\xe2\u20ac\u2122s open. " * 20,
    ],
)
def test_readable_text_is_not_garbled(text: str) -> None:
    assert garbled_reason(text) == ""


def test_five_percent_of_the_writing_decide() -> None:
    assert not garbled_reason("a" * 950 + " " * 500 + "\ufffd" * 49)
    assert garbled_reason("a" * 950 + " " * 500 + "\ufffd" * 50) == "50 of 1000 characters are no writing"


def test_words_of_less_than_four_different_characters_count_as_icons() -> None:
    assert unreadable_chars("\ue001\ue002\ue003 \ue001\ue002\ue003\ue003\ue003 \xcc\xee\xf1") == 0
    assert unreadable_chars("\ue001\ue002\ue003\ue004 \xcc\xee\xf1\xf2") == 8

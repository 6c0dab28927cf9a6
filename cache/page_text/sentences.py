# ruff: noqa: RUF001 - abbreviations of other scripts
"""Sentences, list items and table cells of a page's text, found by rules around a range.

A boundary that is none hides a part of the sentence, a missed one only makes it longer. In doubt there is no boundary:
behind abbreviations, initials, ordinals and ellipses, before small letters, and at line ends of a wrapped paragraph.

Text is garbled if it was decoded with the wrong charset, or if a font has no mapping to Unicode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

WINDOW: Final = 1_000
"""Characters before and after a range that are searched for the boundaries of its sentence."""
_MAX_STOP: Final = 9
"""Maximum characters of a full stop with the quotation marks and brackets behind it."""

_OPENING = "\"'([{\u201c\u2018\u201e\u00ab\u2039\u00bf\u00a1*_"
_CLOSING = "\"')\\]}\u201d\u2019\u00bb\u203a*_"
_BOUNDARY = re.compile(
    rf"(?P<wide>[\u3002\uff01\uff1f\uff0e\uff61]+[{_CLOSING}\u300d\u300f\uff09]*)"
    rf"|(?P<narrow>[.!?\u0964\u0965\u06d4\u061f\u0589\u1362]+[{_CLOSING}]*)(?=\s)"
    r"|(?P<cell>\|)"
    r"|(?P<line>\n)"
)
_MARKER = re.compile(r"[^\S\n]*(?:[-*+\u2022\u2023\u25e6\u25aa\u25cf\u00b7>] |\(?(?:\d{1,3}|[A-Za-z])[.)] |#{1,6} )")
_HEADING = re.compile(r"[^\S\n]*#{1,6} ")
_LINE_STOP = re.compile(rf"[.!?\u3002\uff01\uff1f\u0964\u06d4\u061f][{_CLOSING} \t]{{0,{_MAX_STOP}}}\Z")
_LAST_TOKEN = re.compile(r"[^\s(\[\"'\u201c\u201e\u00ab]+\Z")
_ORDINAL = re.compile(r"\d{1,2}|[IVX]+")
_WITHOUT_VOWEL = re.compile(
    r"[b-df-hj-np-tv-xz\u0431-\u0434\u0436\u0437\u0439-\u043d\u043f-\u0442\u0444-\u0449]+", re.I
)
_ABBREVIATIONS = frozenset(
    """
    abb abs abt al anm apr approx art aug ave aprox av avda bd bes bijv blvd bldg ca cap capt cf chap cia cie co
    col corp dec dept dez dipl dir doc ed eds eigtl eng enl est etc etw evtl excl exc exkl fa feb fig figs gen
    geb ges ggf gest gov hon hrn hrsg ibid id inc incl ing inkl jan jul jun lic lieut lt ltd maj mag max med
    messrs mgr min mio misc mons mar mrs ms mt mult nov no nos num oct okt op orig pag par pat pl pop pos pres
    prof prop proc pte rep rev rest sec sen sep sept ser sig soc spec sra srta ste suppl tab tel trans tsd univ
    usw ver vol vols vor zab zit ang hab inż lek mec ok prok rej red tow tys ul woj zob akad atd apod hod kpt
    např nar obr odst písm příp tis tzv újk kb kft ld sz ún alin dna dvs ev fork fx gl hr kap kl lektor mfl nuv
    osv stk г гг ген др жен им илл инж кв млн млрд обл озера пер пл пос проф р рис руб с сек см стр тыс ул чел
    αρ δηλ κ κτλ πχ σελ
    """.split()  # noqa: SIM905
)
"""Common abbreviations before a capital letter or a number. Those without a vowel and single letters need no entry."""


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range of the whole sentences, list items or table cells that contain ``text[start:end]``.

    A heading and a list item without a full stop count as a sentence. At most ``WINDOW`` characters are added on each
    side.
    """
    low, high = max(0, start - WINDOW), min(len(text), end + WINDOW)
    before = [after for _, after in _boundaries(text, low, start) if after <= start]
    first = before[-1] if before else low
    # The range can end behind its full stop.
    last = next((until for until, _ in _boundaries(text, max(start, end - _MAX_STOP), high) if until >= end), high)
    return min(first, start), max(last, end)


def is_one_block(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` is within one paragraph, list item or table row.

    A line end behind a full stop counts as the end of a paragraph: the texts of many pages have no empty lines.
    """
    place = text.find("\n", start, end)
    while place >= 0:
        if _ends_block(text, place) or _LINE_STOP.search(text, max(0, place - 2 * _MAX_STOP), place):
            return False
        place = text.find("\n", place + 1, end)
    return True


def _boundaries(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the end of each sentence in ``text[low:high]`` and the start of the next one."""
    for match in _BOUNDARY.finditer(text, low, min(high + 1, len(text))):
        if match.lastgroup == "wide":
            yield match.end(), match.end()
        elif match.lastgroup == "cell":
            yield match.start(), match.end()
        elif match.lastgroup == "line":
            if _ends_block(text, match.start()):
                yield match.start(), match.end()
        elif _is_full_stop(text, match):
            yield match.end(), match.end()


def _ends_block(text: str, line_end: int) -> bool:
    """Return whether a line end ends a paragraph, heading, list item or table row."""
    line = text[max(text.rfind("\n", max(0, line_end - WINDOW), line_end) + 1, line_end - WINDOW, 0) : line_end]
    next_end = text.find("\n", line_end + 1, line_end + WINDOW)
    following = text[line_end + 1 : next_end if next_end >= 0 else line_end + WINDOW]
    if not following.strip() or not line.strip() or "|" in line or "|" in following:
        return True
    if _HEADING.match(line) or _HEADING.match(following):
        return True
    # A wrapped line can begin with a dash or an ordinal, too.
    return bool(_MARKER.match(following)) and (bool(_MARKER.match(line)) or not line.rstrip()[-1].isalnum())


def _is_full_stop(text: str, match: re.Match[str]) -> bool:
    """Return whether a stop before a space ends a sentence."""
    mark = match[0]
    following = text[match.end() : match.end() + 40].lstrip().lstrip(_OPENING)[:1]
    if following.islower() or (following and not following.isalnum()) or ".." in mark:
        return False
    if not mark.startswith("."):
        return True
    found = _LAST_TOKEN.search(text[max(0, match.start() - 40) : match.start()])
    token = found[0] if found else ""
    if (len(token) == 1 and token.isalpha() and token.isascii()) or "." in token.strip("."):
        return token[-1:].isdigit() and len(token) > 1
    is_abbreviation = token.lower() in _ABBREVIATIONS or bool(_WITHOUT_VOWEL.fullmatch(token))
    return not (is_abbreviation or (len(token) == 1 and token.isalpha()) or _ORDINAL.fullmatch(token)) and not (
        following.isdigit() and len(token) <= 4 and token.isalpha()
    )


_MIN_CHARS: Final = 10
_SHARE: Final = 0.05
_MIN_DISTINCT: Final = 4
_UPPER_HALF = "\x80-\x9f" + bytes(range(0x80, 0x100)).decode("cp1252", errors="ignore")
_NO_WRITING = re.compile(
    r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\x80-\x84\x86-\x9f\ufffd]"
    rf"|[\xc0-\xd6\xd8-\xf6\xf8-\xff][{_UPPER_HALF}]{{3,}}"  # other charsets read as Windows-1252
    r"|[\ue000-\uf8ff\U000f0000-\U0010fffd]{4,}"  # private use
)


def unreadable_chars(text: str) -> int:
    r"""Return the number of characters that are no writing.

    These are control and replacement characters, words in private-use characters, and words in accented Latin-1
    characters without other letters. A word has at least four different characters: icons, rows of rating stars and
    bullets, and the pieces of large brackets in formulas are also private-use characters, and no language has words
    of accented letters only.

    >>> unreadable_chars("\uf005\uf005\uf005\uf005 Caf\xe9"), unreadable_chars("\xcc\xee\xf1\xf2")
    (0, 4)
    """
    runs = _NO_WRITING.findall(text)
    return sum(len(run) for run in runs if len(run) == 1 or len(set(run)) >= _MIN_DISTINCT)


def garbled_reason(text: str) -> str:
    """Return why a text is garbled; an empty string if it is readable.

    It is garbled if at least 10 characters and 5% of it, without white space, are no writing. Accented letters are
    usually less than 5% of a text in French or German, so it stays readable if each of them was replaced. If
    the share is greater, whole names or sentences are missing, and a claim may rely on them.
    """
    unreadable = unreadable_chars(text)
    chars = sum(map(len, text.split()))
    if unreadable < _MIN_CHARS or unreadable < _SHARE * chars:
        return ""
    return f"{unreadable} of {chars} characters are no writing"

"""Generated pages: prose, a screenshot, a PDF. All content depends only on the page's number.

The sizes are those of page caches in the field. The public toolkit captures with a random viewport, so about half of
the screenshots are wider than the 1,100 px that a model is shown. Pages are one line or a whole book.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Sequence
from functools import cache
from math import exp, log
from random import Random
from typing import Any

from PIL import Image, ImageDraw, ImageFont

MIN_WIDTH_PX, MAX_WIDTH_PX = 1050, 1150
MIN_HEIGHT_PX, MAX_HEIGHT_PX = 700, 12_000
MIN_CHARS, MAX_CHARS = 20, 450_000
"""About 5 to 100,000 tokens."""
USUAL_CHARS = (2_000, 60_000)
SHORT_SHARE, LONG_SHARE = 0.1, 0.1
TINY_CHARS = 300
TINY_PX = 64
JPEG_QUALITY = 85
_LINE_PX = 30
_LINES = 60
_PICTURE_PX = (420, 280)

_VOCABULARY = (
    "river stone garden north council opened visitors every autumn station library engine harbour record measured "
    "between village market painted bridge second century report minutes walking local museum ticket early morning "
    "winter results table first edition printed metal wooden narrow path along the of and in to with from for by was "
    "were has its their which after before during near under about several small large old new open closed free "
    "caf\u00e9 Z\u00fcrich \u2013 S\u00e3o \u201cna\u00efve\u201d"
)
_WORDS = _VOCABULARY.split()


def page_text(number: int, *, facts: Sequence[str] = (), tiny: bool = False) -> str:
    """Return a heading, ``facts``, and prose with headings and figures, 20 characters to 100,000 tokens (tiny: 300
    characters)."""
    random = Random(f"text {number}")
    wanted = TINY_CHARS if tiny else _chars(random)
    lines = [f"# Page {number}"]
    size = 0
    while size < wanted:
        lines += [f"## {_sentence(random)}"] if random.random() < 0.15 else []
        lines.append(prose(random, random.randint(100, 500)))
        size += len(lines[-1]) + 2
    heading, *rest = "\n\n".join(lines)[:wanted].split("\n\n", 1)
    return "\n\n".join([heading, *facts, *rest])


def _chars(random: Random) -> int:
    """Draw the length of a page: every tenth is short, every tenth is very long, equally likely on a log scale."""
    low, high = USUAL_CHARS
    kind = random.random()
    if kind < SHORT_SHARE:
        low, high = MIN_CHARS, low
    elif kind < SHORT_SHARE + LONG_SHARE:
        low, high = high, MAX_CHARS
    return round(exp(random.uniform(log(low), log(high))))


def prose(random: Random, chars: int) -> str:
    """Return sentences with at least ``chars`` characters in total."""
    sentences: list[str] = []
    while sum(map(len, sentences)) < chars:
        sentences.append(_sentence(random))
    return " ".join(sentences)


def _sentence(random: Random) -> str:
    words = random.choices(_WORDS, k=random.randint(6, 16))
    if random.random() < 0.4:
        words.insert(random.randrange(len(words)), str(random.randint(2, 2020)))
    return " ".join(words).capitalize() + "."


def screenshot(number: int, *, tiny: bool = False) -> bytes:
    """Return a JPEG like a browser screenshot: lines of text and pictures, 700 to 12,000 px high (tiny: 64 px)."""
    random = Random(f"picture {number}")
    if tiny:
        return _jpeg(Image.new("RGB", (TINY_PX, TINY_PX), (number % 256, 90, 160)))
    width = random.randint(MIN_WIDTH_PX, MAX_WIDTH_PX)
    height = round(exp(random.uniform(log(MIN_HEIGHT_PX), log(MAX_HEIGHT_PX))))
    canvas = Image.new("RGB", (width, height), "white")
    lines, pictures = _drawn_lines(), _drawn_pictures()
    top = 40
    while top < height - _LINE_PX:
        if random.random() < 0.03 and top < height - _PICTURE_PX[1]:
            canvas.paste(random.choice(pictures), (random.randint(60, 600), top))
            top += _PICTURE_PX[1]
        else:
            canvas.paste(random.choice(lines), (60, top))
        top += _LINE_PX * random.choice((1, 1, 1, 1, 2))
    return _jpeg(canvas)


@cache
def _drawn_lines() -> list[Image.Image]:
    """Return lines of text to choose from; drawing each page separately would take a hundred times as long."""
    random = Random("lines")
    font = ImageFont.load_default(size=16)
    drawn = []
    for _ in range(_LINES):
        strip = Image.new("RGB", (MIN_WIDTH_PX - 120, _LINE_PX), "white")
        ImageDraw.Draw(strip).text((0, 2), " ".join(random.choices(_WORDS, k=22)), fill=(30, 30, 30), font=font)
        drawn.append(strip)
    return drawn


@cache
def _drawn_pictures() -> list[Image.Image]:
    """Return soft noise, which compresses about as well as a photograph."""
    random = Random("pictures")
    small = (_PICTURE_PX[0] // 8, _PICTURE_PX[1] // 8)
    noise = [Image.frombytes("RGB", small, random.randbytes(small[0] * small[1] * 3)) for _ in range(6)]
    return [each.resize(_PICTURE_PX, Image.Resampling.BICUBIC) for each in noise]


def pdf(number: int, *, facts: Sequence[str] = (), tiny: bool = False) -> bytes:
    """Return a paper of six pages (tiny: one). The first begins with its heading and ``facts``."""
    pymupdf: Any = importlib.import_module("pymupdf")
    random = Random(f"pdf {number}")
    document = pymupdf.open()
    for place in range(1 if tiny else 6):
        page = document.new_page()
        lines = [f"Paper {number}, page {place + 1}", *(facts if place == 0 else ())]
        lines += [_sentence(random)[:90] for _ in range(3 if tiny else 45)]
        page.insert_text((60, 60), lines, fontsize=10)
    # Dates and ids in the file would differ between runs.
    return bytes(document.tobytes(no_new_id=True))


def _jpeg(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return buffer.getvalue()

"""Delimited blocks for untrusted text in prompts, as a defence against prompt injection.

The tags of a block carry a nonce that the author of the text cannot predict: an HMAC of the text with a secret of this
installation. The same text always gets the same nonce, so equal prompts stay identical and reply caches still hit. Text
that imitates prompt syntax, or that is invisible to a human reader, is neutralised first. The original text is not
changed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from typing import Final

from cache.unicode_forms import nfc

MIN_SECRET_BYTES: Final = 16
NONCE_HEX_CHARS: Final = 32
MAX_COMBINING_RUN: Final = 3
"""Maximum number of combining marks per character. Living scripts need no more; longer runs can obscure other lines."""

_LABEL = re.compile(r"[a-z_]+")
_OPENING_TAG = re.compile(r"<([a-z_]+) ([0-9a-f]{32})>\n")


def _ranges(code_points: list[int]) -> str:
    """Return a regex character class of these code points."""
    spans: list[list[int]] = []
    for point in code_points:
        if spans and point == spans[-1][1] + 1:
            spans[-1][1] = point
        else:
            spans.append([point, point])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in spans)


_CONTROL_POINTS = [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0)]
# Format characters (category Cf: zero width, bidi, soft hyphen, tags) with the variation selectors, lone surrogates
# and noncharacters at the end of the first plane. A constant list is faster than a category lookup per character.
_FORMAT_POINTS = [
    0xAD, *range(0x600, 0x606), 0x61C, 0x6DD, 0x70F, *range(0x890, 0x892), 0x8E2, *range(0x180B, 0x1810),
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), 0xFEFF,
    *range(0xFFF9, 0xFFFC), *range(0xFFFE, 0x10000), 0x110BD, 0x110CD, *range(0x13430, 0x13440),
    *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000),
]  # fmt: skip
_INVISIBLE = re.compile(f"[{_ranges(_CONTROL_POINTS)}{_ranges(_FORMAT_POINTS)}\ud800-\udfff]")
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_A_MARK = re.compile(_MARK)
_COMBINING = re.compile(f"({_MARK}{{{MAX_COMBINING_RUN}}}){_MARK}+")
CHAT_TOKEN: Final = re.compile(
    r"<\|[^|<>\n]{0,40}\|>"  # <|im_start|>, <|channel|>, <|end_of_text|>
    r"|<<?/?SYS>>?|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK)\]"
    r"|</?(?:start_of_turn|end_of_turn|bos|eos|s|system|assistant|tool_call|tool_response"
    r"|think|thinking|thoughts?|reasoning|reflection|seed:think)>"
    r"|\u25c1/?think\u25b7|assistantfinal"
    r"|<\uff5c[^<>\n]{0,40}\uff5c>",
    re.IGNORECASE,
)
_LINE_END = re.compile(r"\r\n?|[\u2028\u2029\x85]")


def neutralise(text: str) -> str:
    """Neutralise a text without changing what a human reads in it.

    - Line ends become newlines, and the text is normalized to NFC.
    - Control, format, bidi and tag characters and variation selectors are removed, except newline and tab.
    - Runs of combining marks are cut to three.
    - Tokens of chat templates are broken up: ``<|im_start|>`` becomes ``< |im_start| >``.

    >>> neutralise("a\\u200bb <|im_end|>")
    'ab < |im_end| >'
    """
    # A long text has few distinct characters. Searching those first skips most searches of the whole text.
    distinct = "".join(set(text))
    if _LINE_END.search(distinct):
        text = _LINE_END.sub("\n", text)
    if _INVISIBLE.search(distinct):
        text = _INVISIBLE.sub("", text)
    if _A_MARK.search(distinct):
        text = _COMBINING.sub(r"\1", text)
    text = nfc(text)
    if any(mark in distinct for mark in "<[\u25c1") or "assistantfinal" in text:
        text = CHAT_TOKEN.sub(_broken_up, text)
    return text


def read_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield label and content of the blocks in a prompt. Reading stops at a block that is not closed.

    Tags inside a block are part of its content, because its own nonce does not occur there.
    """
    at = 0
    while tag := _OPENING_TAG.search(text, at):
        end = text.find(f"\n</{tag[1]} {tag[2]}>", tag.end() - 1)
        if end < 0:
            return
        yield tag[1], text[tag.end() : end]
        at = end + 1


def _broken_up(match: re.Match[str]) -> str:
    token = match[0]
    return f"{token[0]} {token[1:-1]} {token[-1]}"


class BlockBuilder:
    """Creates blocks. ``secret`` belongs to the installation and must not be disclosed.

    Raises:
        ValueError: the secret is shorter than 16 bytes.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) < MIN_SECRET_BYTES:
            raise ValueError(f"the secret must have at least {MIN_SECRET_BYTES} bytes")
        self._secret = secret

    def block(self, label: str, text: str, *, beside: Sequence[str] = ()) -> str:
        """Return ``text``, neutralised, between tags with ``label`` and its nonce.

        ``beside`` are the other texts of the same prompt, neutralised. The nonce does not occur in them, so that an
        author who has seen this block before cannot open or close it from another text.
        """
        if not _LABEL.fullmatch(label):
            raise ValueError(f"invalid block label {label!r}: use lower-case letters and underscores")
        clean = neutralise(text)
        nonce = self._nonce(label, clean, beside)
        return f"<{label} {nonce}>\n{clean}\n</{label} {nonce}>"

    def _nonce(self, label: str, text: str, beside: Sequence[str]) -> str:
        """Return a nonce of 128 bits that occurs in none of the texts. A counter varies it on collision."""
        counter = 0
        while True:
            drawn = hmac.new(self._secret, f"{counter}\0{label}\0{text}".encode(), hashlib.sha256)
            nonce = drawn.hexdigest()[:NONCE_HEX_CHARS]
            if not any(nonce in each for each in (text, *beside)):
                return nonce
            counter += 1

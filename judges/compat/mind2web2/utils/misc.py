"""Text and image utilities under the names that public task scripts import."""

from __future__ import annotations

import base64
import inspect
import re
import textwrap
from pathlib import Path
from types import FrameType

__all__ = [
    "encode_image",
    "encode_image_buffer",
    "extract_doc_description",
    "extract_doc_description_from_frame",
    "normalize_url_markdown",
    "strip_extension",
    "text_dedent",
]

_MARKDOWN_ESCAPE = re.compile(r"\\([_()\[\]*#!&?])")
_SECTION = re.compile(
    r"^\s*(?:args|arguments|attributes|example|examples|keyword args|keyword arguments|note|notes|other parameters"
    r"|parameters|params|raises|references|return|returns|see also|todo|warning|warnings|warns|yield|yields)"
    r"\s*(?::.*|\n\s*-{3,}\s*)$|^\s*:(?:param|type|returns?|rtype|raises?)\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
_HAS_DOCSTRING = getattr(inspect, "CO_HAS_DOCSTRING", 0)


def normalize_url_markdown(url: str) -> str:
    r"""Return the URL trimmed and without Markdown's backslashes.

    >>> normalize_url_markdown(r" https://a.com/x\_y\(1\) ")
    'https://a.com/x_y(1)'
    """
    return _MARKDOWN_ESCAPE.sub(r"\1", url.strip())


def text_dedent(text: str) -> str:
    """Return the text without its common indentation and outer white space."""
    return textwrap.dedent(text).strip()


def strip_extension(filename: str) -> str:
    """Return the path without its last suffix; folders are kept.

    >>> strip_extension("a/b.md")
    'a/b'
    """
    return filename.removesuffix(Path(filename).suffix)


def encode_image(path: str | Path) -> str:
    """Return the file's bytes in base64."""
    return encode_image_buffer(Path(path).read_bytes())


def encode_image_buffer(buffer: bytes) -> str:
    """Return bytes in base64."""
    return base64.b64encode(buffer).decode("ascii")


def extract_doc_description(doc: str | None) -> str:
    """Return a docstring up to its first section (Args:, Returns: …), dedented; empty if there is none."""
    text = inspect.cleandoc(doc or "")
    section = _SECTION.search(text)
    return (text[: section.start()] if section else text).strip()


def extract_doc_description_from_frame(frame: FrameType) -> str:
    """Like ``extract_doc_description``, for the docstring of the function that runs in ``frame``."""
    code = frame.f_code
    if _HAS_DOCSTRING and not code.co_flags & _HAS_DOCSTRING:
        return ""
    # The first constant of a function's code is its docstring, or None.
    first = code.co_consts[0] if code.co_consts else None
    return extract_doc_description(first if isinstance(first, str) else None)

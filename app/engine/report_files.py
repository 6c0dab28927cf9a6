"""Text of an answer or report from the bytes of a file: Markdown, a reply of a provider, Word, HTML or PDF.

Every way in calls ``read_report``: commands, the API, archives and the dashboard. Documents are converted in the
confined child process that also decodes captured ones.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from answers.errors import InvalidSubmission, ProblemCode, invalid
from answers.provider_replies import answer_from_reply
from answers.public_layout import DOCUMENT_SUFFIXES, Convert
from cache.backends.documents import ByteKind, DocumentKind, decode_html, decode_in_child, sniff

MAX_DOCUMENT_BYTES: Final = 20_000_000
_DEADLINE_S: Final = 40.0
_ARCHIVE_S: Final = 120.0

_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SUFFIXES: Final[Mapping[str, str]] = {
    **dict(zip(DOCUMENT_SUFFIXES, ("docx", "pdf", "html", "html", "html"), strict=True)),
    ".json": "json",
    ".md": "text",
    ".markdown": "text",
    ".txt": "text",
}
_UNSUPPORTED: Final = frozenset({".doc", ".odt", ".rtf", ".epub", ".pages", ".xlsx", ".pptx", ".mhtml"})
_FORMS: Final = {"docx": "a Word document (.docx)", "pdf": "a PDF", "html": "HTML", "binary": "a binary file"}
_KINDS: Final[Mapping[str, DocumentKind]] = {"docx": "docx-report", "pdf": "pdf-report", "html": "html-report"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReport:
    """Markdown of a file, and warnings about it."""

    text: str
    warnings: tuple[str, ...] = ()


async def read_report(name: str, data: bytes, *, path: str = "") -> ReadReport:
    """Return the text of a file. Its suffix says what it is; without a known one, as for standard input, its bytes do.

    ``path`` names the file or field in errors (default: the name).

    Raises:
        InvalidSubmission: The file is empty, too large, damaged, encrypted, has no text, or is not what its name says.
    """
    path = path or name
    suffix = PurePath(name).suffix.lower()
    expected = _SUFFIXES.get(suffix)
    if not data.strip():
        raise _problem(path, "is empty", ProblemCode.EMPTY)
    if len(data) > MAX_DOCUMENT_BYTES:
        message = f"is larger than {MAX_DOCUMENT_BYTES // 1_000_000} MB: divide it into several files"
        raise _problem(path, message, ProblemCode.TOO_LARGE)
    is_text = expected in {"text", "json"}
    found = _form_of(data, "text/plain" if is_text else "")
    if found == "ole" or suffix in _UNSUPPORTED:
        password = "an encrypted or old Office document" if found == "ole" else f"a {suffix} file"
        raise _problem(path, f"is {password}: save it as .docx without a password, .html, .pdf or Markdown")
    if is_text and found in {"docx", "pdf", "binary"}:
        raise _problem(path, f"is {_FORMS[found]}, not text: {_rename(found)}", ProblemCode.NOT_TEXT)
    if expected in {"docx", "pdf"} and found != expected:
        raise _problem(path, f"is not {_FORMS[expected]}, although its name ends in {suffix}: {_rename(found)}")
    if expected == "html" and found not in {"html", "text"}:
        raise _problem(path, f"is {_FORMS[found]}, although its name ends in {suffix}: {_rename(found)}")
    form = expected or found
    if expected is None and form == "text" and data.lstrip().startswith(b"{"):
        form = "json"
    if form == "json":
        return await asyncio.to_thread(_from_reply, data, path)
    if form == "binary":
        raise _problem(path, "is neither text nor a .docx, .html or .pdf document", ProblemCode.NOT_TEXT)
    if form == "text":
        text = await asyncio.to_thread(_decoded, data, path)
        warning = f"{path} is HTML but is read as Markdown: give it the suffix .html to convert it"
        return ReadReport(text=text, warnings=(warning,) if sniff(data, "") is ByteKind.HTML else ())
    return ReadReport(text=await _converted(form, data, path))


def archive_converter() -> Convert:
    """Return a function that converts the documents of one archive, in a thread without an event loop.

    After ``_ARCHIVE_S`` seconds, it refuses further documents.
    """
    ends = time.monotonic() + _ARCHIVE_S

    def convert(path: str, data: bytes) -> str:
        if time.monotonic() > ends:
            message = f"is not converted: the documents of this archive take over {_ARCHIVE_S:g} s. Divide the archive"
            raise _problem(path, message, ProblemCode.TOO_LARGE)
        return asyncio.run(read_report(path, data)).text

    return convert


def _form_of(data: bytes, declared: str) -> str:
    """Return what the bytes are: docx, ole, pdf, html, text or binary. ``declared`` is a content type or nothing."""
    if data.startswith(_ZIP):
        return "docx"  # another archive is refused when it is converted
    if data.startswith(_OLE):
        return "ole"
    kind = sniff(data, declared)
    return {ByteKind.PDF: "pdf", ByteKind.HTML: "html", ByteKind.TEXT: "text"}.get(kind, "binary")


def _rename(form: str) -> str:
    return f"rename it to .{form}" if form in {"docx", "pdf", "html"} else "check the file, or give it the right suffix"


async def _converted(form: str, data: bytes, path: str) -> str:
    if form == "html":
        data = (await asyncio.to_thread(decode_html, data, "text/html")).encode("utf-8", "replace")
    output = await decode_in_child(_KINDS[form], data, deadline_s=_DEADLINE_S, frame_s=_DEADLINE_S)
    headers = [frame.header for frame in output.frames]
    reason = next((str(header["reason"]) for header in headers if header["type"] == "rejected"), "")
    if reason == "encrypted":
        reason = "is encrypted: remove the password"
    elif reason.startswith("unreadable: "):
        reason = f"is damaged: {reason.removeprefix('unreadable: ')}"
    elif reason.startswith("bomb"):
        reason = "takes too much memory to convert"
    report = next((frame.body for frame in output.frames if frame.header["type"] == "report"), None)
    if report is None:
        raise _problem(path, reason or f"takes too much time or memory to convert (stopped by {output.stop_reason})")
    text = report.decode("utf-8")
    if not text.strip():
        raise _problem(path, "contains no text", ProblemCode.EMPTY)
    return text


def _decoded(data: bytes, path: str) -> str:
    """Decode UTF-8 without changing line ends, so that offsets refer to the file."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 (byte {error.start}): save the file as UTF-8"
        raise _problem(path, message, ProblemCode.NOT_TEXT) from error
    if "\0" in text:
        raise _problem(path, "contains a NUL character: it is no text file", ProblemCode.NOT_TEXT)
    return text


def _from_reply(data: bytes, path: str) -> ReadReport:
    try:
        reply = json.loads(_decoded(data, path))
    except (ValueError, RecursionError) as error:
        raise _problem(path, f"is not JSON: {error}", ProblemCode.NOT_JSON) from error
    answer = answer_from_reply(reply, path=path)
    unchecked = sorted({one.title or "(no title)" for one in answer.citations if one.url is None})
    warning = f"cited sources that are no web pages get no link: {', '.join(unchecked)}"
    return ReadReport(text=answer.text, warnings=(warning,) if unchecked else ())


def _problem(path: str, message: str, code: ProblemCode = ProblemCode.BAD_DOCUMENT) -> InvalidSubmission:
    return invalid(path, message, code)

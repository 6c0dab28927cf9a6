"""WARC 1.1 records (ISO 28500) of captures, one gzip member per record.

The gzip members are not compressed: compressed bytes depend on the zlib version, and equal captures must give equal
bytes.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from uuid import NAMESPACE_URL, uuid5

_GZIP_HEAD: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_BLOCK: Final = 0xFFFF
_HOP_BY_HOP = frozenset(
    {"connection", "content-encoding", "content-length", "keep-alive", "set-cookie", "transfer-encoding", "trailer"}
)


def warc_info(software: str) -> bytes:
    """Return the ``warcinfo`` record, which names the software that wrote the file."""
    fields = f"software: {software}\r\nformat: WARC File Format 1.1\r\n".encode()
    head = {"WARC-Date": _when(datetime(1980, 1, 1, tzinfo=UTC)), "Content-Type": "application/warc-fields"}
    return _record("warcinfo", "assay:warcinfo", head, fields)


def response(url: str, at: datetime, status: int, headers: Mapping[str, str], body: bytes, *, of: str) -> bytes:
    """Return the response record for a request to ``url``. ``of`` makes the record id unique."""
    reason = _reason(status)
    lines = [f"HTTP/1.1 {status} {reason}"]
    lines += [f"{_line(name)}: {_line(value)}" for name, value in headers.items() if name.lower() not in _HOP_BY_HOP]
    lines.append(f"Content-Length: {len(body)}")
    block = ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace") + body
    head = {
        "WARC-Target-URI": url,
        "WARC-Date": _when(at),
        "WARC-Payload-Digest": payload_digest(body),
        "Content-Type": "application/http; msgtype=response",
    }
    return _record("response", of, head, block)


def payload_digest(body: bytes) -> str:
    """Return the SHA-1 digest in the form of web archives.

    It identifies equal bodies; integrity comes from the manifest.
    """
    return f"sha1:{base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()}"


def gzip_member(data: bytes) -> bytes:
    """Return a gzip member that contains ``data`` uncompressed."""
    blocks = [data[begin : begin + _BLOCK] for begin in range(0, len(data), _BLOCK)] or [b""]
    written = [_GZIP_HEAD]
    for number, block in enumerate(blocks, start=1):
        is_last = number == len(blocks)
        written += [struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block]
    written.append(struct.pack("<LL", zlib.crc32(data), len(data) & 0xFFFF_FFFF))
    return b"".join(written)


def _record(kind: str, of: str, head: Mapping[str, str], block: bytes) -> bytes:
    lines = [
        "WARC/1.1",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:uuid:{uuid5(NAMESPACE_URL, f'assay:{of}')}>",
        *(f"{name}: {_line(value)}" for name, value in head.items()),
        f"Content-Length: {len(block)}",
    ]
    return gzip_member(("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace") + block + b"\r\n\r\n")


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _line(text: str) -> str:
    """Return the text on one line: a line break would end the header field."""
    return " ".join(text.split())


def _when(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

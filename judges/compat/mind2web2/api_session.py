"""HTTP session of the tools for task scripts, which limits the size of responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from cache.backends.inflating import ACCEPT_ENCODING, MAX_API_BYTES, limited_inflater
from cache.errors import DocumentRejected


class _LimitedAdapter(HTTPAdapter):
    """Transport that limits responses to 4 MiB, compressed and decompressed, while they are read."""

    def build_response(self, request: Any, raw: Any) -> requests.Response:
        response = super().build_response(request, raw)
        read = raw.stream

        def stream(chunk_size: int, decode_content: bool = True) -> Iterator[bytes]:
            inflater = limited_inflater(raw.headers.get("Content-Encoding", ""), MAX_API_BYTES)
            try:
                for chunk in read(chunk_size, decode_content=False):
                    inflater.feed(chunk)
            except DocumentRejected as rejected:
                raw.close()
                raise requests.exceptions.ContentDecodingError(rejected.detail) from rejected
            yield inflater.content

        raw.stream = stream
        return response


def api_session() -> requests.Session:
    """Return a session for API requests. A larger response raises a ``requests.RequestException``."""
    session = requests.Session()
    session.headers["Accept-Encoding"] = ACCEPT_ENCODING
    for scheme in ("http://", "https://"):
        session.mount(scheme, _LimitedAdapter())
    return session

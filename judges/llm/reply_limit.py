"""Size limit of the responses of model servers, for the HTTP clients under all SDKs.

The SDKs read a whole response before they parse it. The limit is therefore set where the HTTP client reads it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, cast

import httpx2

from cache.backends.inflating import BoundedInflater, limited_inflater
from cache.capture import CaptureOutcome
from cache.errors import DocumentRejected

MAX_ERROR_BYTES: Final = 256 * 1024
"""The rest of the body of an error is not read."""


class ReplyTooLarge(httpx2.DecodingError):
    """The body of a response with status 200 is larger than the limit."""


def limit_reply(max_bytes: int) -> Callable[[httpx2.Response], Awaitable[None]]:
    """Return a hook for responses that limits their size, compressed and decompressed.

    A larger response is closed. If it is an error, its beginning is its body; otherwise ``ReplyTooLarge`` is raised.
    """

    async def hook(response: httpx2.Response) -> None:
        limit = min(max_bytes, MAX_ERROR_BYTES) if response.status_code >= 300 else max_bytes
        inflater = limited_inflater(response.headers.pop("content-encoding", ""), limit)
        stream = cast("httpx2.AsyncByteStream", response.stream)
        response.stream = _LimitedStream(stream, inflater, limit, may_cut=response.status_code >= 300)

    return hook


class _LimitedStream(httpx2.AsyncByteStream):
    """Decompressed body, as one chunk."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, inflater: BoundedInflater, max_bytes: int, *, may_cut: bool
    ) -> None:
        self._stream = stream
        self._inflater = inflater
        self._max_bytes = max_bytes
        self._may_cut = may_cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                self._inflater.feed(chunk)
        except DocumentRejected as rejected:
            if rejected.outcome is not CaptureOutcome.TOO_LARGE:
                raise httpx2.DecodingError(rejected.detail) from None
            if not self._may_cut:
                message = f"its body has more than {self._max_bytes} bytes"
                raise ReplyTooLarge(message) from None
        yield self._inflater.content[: self._max_bytes]

    async def aclose(self) -> None:
        await self._stream.aclose()

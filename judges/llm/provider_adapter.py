"""Provider adapter interface: the protocol ``ProviderAdapter`` and the ``RawReply`` of one attempt.

Every response with status 200 is a raw reply. ``replies`` decides whether it is usable.

The SDKs read a whole response before they parse it. The size limit of responses is therefore set where the HTTP client
reads it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, cast

import httpx2

from cache.backends.inflating import MAX_API_BYTES, BoundedInflater, limited_inflater
from cache.capture import CaptureOutcome
from cache.errors import DocumentRejected
from judges.llm.client import LLMRequest
from judges.llm.learned_formats import FormatFile, Images, LearnedFormats
from judges.llm.request_formats import RequestFormat

CONNECT_TIMEOUT_S: Final = 10.0
"""Time limit of a connection attempt. Replies have no time limit here: the retrier has it, and it can be an hour."""
MAX_BROKEN_CHARS: Final = 4_000
"""Characters stored of a body that is not a chat completion."""


AZURE_API_VERSION: Final = "2024-10-21"
"""Default API version of Azure OpenAI."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """API keys and addresses of the providers, from the settings. None: not configured."""

    openai_api_key: str | None = None
    openai_base_url: str | None = None
    azure_api_key: str | None = None
    azure_endpoint: str | None = None
    azure_api_version: str = AZURE_API_VERSION
    aws_access_key: str | None = None
    aws_secret_key: str | None = None
    aws_session_token: str | None = None
    aws_region: str = "us-east-1"
    max_reply_bytes: int = MAX_API_BYTES
    """Maximum size of a response, compressed and decompressed."""
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    """Time limit to open a connection, with TLS."""
    images: Images = Images.AUTO
    """Whether requests include the screenshots of pages."""
    format_file: FormatFile | None = None
    """File for the learned request formats; None: in memory only."""
    explores: bool = True
    """Whether other request formats are tried after any rejection that may be about the format."""


class FinishReason(StrEnum):
    """Why the model stopped, in the same terms for all providers."""

    STOP = "stop"
    LENGTH = "length"
    REFUSAL = "refusal"
    FILTER = "filter"
    BROKEN = "broken"
    """The body of the HTTP response does not follow the provider's API, or an error ended the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawReply:
    """Raw reply of one attempt. ``text`` is the text of the model, ``detail`` the provider's message about a reply.

    ``text`` also contains the text of a refusal, or the beginning of an invalid body, for the call log; no verdict is
    read from these. ``input_tokens`` includes ``cached_tokens``, read from the provider's prompt cache, and
    ``cache_write_tokens``, written to it. ``output_tokens`` includes ``reasoning_tokens``. Token counts are None if the
    provider does not report them. ``text_only``: images were left out. ``request_format`` is None if the provider has
    only one.
    """

    text: str
    finish: FinishReason
    model: str
    detail: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    request_format: RequestFormat | None = None
    text_only: bool = False


def broken_reply(
    body: str, detail: str = "its body is not a chat completion: check the provider's address"
) -> RawReply:
    """Return the raw reply for the body of a response with status 200 that does not follow the provider's API."""
    return RawReply(text=body[:MAX_BROKEN_CHARS], finish=FinishReason.BROKEN, model="", detail=detail)


class ProviderAdapter(Protocol):
    """Provider adapter. It sends a request without retries, repair or accounting.

    It raises only ``LLMUnavailable``, ``LLMRejected``, ``LLMOutputUnusable`` and ``CancelledError``.
    """

    @property
    def provider(self) -> str: ...

    @property
    def endpoint(self) -> str:
        """Return the base URL or region. With ``provider`` it is part of the cache key."""
        ...

    @property
    def learned_formats(self) -> LearnedFormats | None:
        """Return the request formats of the server's models; None if there is only one format."""
        ...

    async def send(self, request: LLMRequest, params: Mapping[str, Any]) -> RawReply: ...

    async def aclose(self) -> None: ...


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


_MIN_SECRET_CHARS: Final = 4
_PLACEHOLDERS: Final = frozenset(
    {"assay", "dummy", "empty", "local", "none", "not-needed", "null", "ollama", "test", "vllm"}
)
"""In lower case: usual keys of local model servers, and the access key ID in docker-compose.yml."""


def is_secret(value: str) -> bool:
    """Return whether a key or password has to be masked. Pages and messages contain the others as words or letters."""
    return len(value) >= _MIN_SECRET_CHARS and value.lower() not in _PLACEHOLDERS

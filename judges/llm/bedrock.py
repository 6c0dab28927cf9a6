"""Claude on AWS Bedrock, through the optional ``anthropic`` SDK (``pip install assay[bedrock]``).

Structured output is a forced tool call whose input schema is the requested schema. Images are left out if the model
rejects them (``ASSAY_IMAGES=auto``), and always with ``off``. The SDK is imported when the first Bedrock client opens.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cache.backends.inflating import ACCEPT_ENCODING
from judges.errors import ModelNotConfigured, advice
from judges.llm.client import LLMRequest, Message, has_images, without_images
from judges.llm.error_mapping import (
    ErrorReturned,
    connection_error,
    error_for_response,
    images_rejected,
    read_error,
    timeout_error,
)
from judges.llm.json_schema import json_schema_of
from judges.llm.learned_formats import Images, LearnedFormats
from judges.llm.provider_adapter import (
    Access,
    FinishReason,
    RawReply,
    ReplyTooLarge,
    broken_reply,
    limit_reply,
)
from judges.llm.request_formats import says_no_images

MAX_OUTPUT_TOKENS = 8192
REPLY_TOOL = "reply"
_REPLY_LOST = ("ReadError", "RemoteProtocolError")
"""Names of the errors of the SDK's HTTP library for a connection that ended after the request was sent."""

_FINISH = {
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.REFUSAL,
}


class BedrockAdapter:
    """Adapter for one AWS account in one region.

    ``sdk`` is the ``anthropic`` module, ``client`` its async Bedrock client.
    """

    provider = "bedrock"
    learned_formats: LearnedFormats | None = None

    def __init__(self, *, client: Any, sdk: Any, region: str, images: Images = Images.AUTO) -> None:
        self.endpoint = region
        self.images = images
        self._client = client
        self._sdk = sdk
        self._text_only: set[str] = set()
        """Models that rejected images."""

    async def send(self, request: LLMRequest, params: Mapping[str, Any]) -> RawReply:
        """Send a request. If the model takes no images, send it again without them."""
        with_images = has_images(request)
        is_shown = with_images and self.images is not Images.OFF and request.model not in self._text_only
        try:
            reply = await self._send(request if is_shown else without_images(request), params)
        except ErrorReturned as error:
            if not (is_shown and says_no_images(error.response)):
                raise error_for_response(error.response, now=time.time()) from error.__cause__
            if self.images is Images.ON:
                raise images_rejected(error.response) from error.__cause__
            self._text_only.add(request.model)
            return await self.send(request, params)
        return replace(reply, text_only=with_images and not is_shown)

    async def _send(self, request: LLMRequest, params: Mapping[str, Any]) -> RawReply:
        sdk = self._sdk
        try:
            message = await self._client.messages.create(**message_body(request, params))
        except sdk.APITimeoutError as error:
            raise timeout_error(self.provider) from error
        except sdk.APIConnectionError as error:
            cause = error.__cause__ or error
            if isinstance(cause, ReplyTooLarge):
                return broken_reply("", str(cause))
            raise connection_error(self.provider, cause, was_sent=type(cause).__name__ in _REPLY_LOST) from error
        except sdk.APIStatusError as error:
            response = read_error(
                error.body,
                provider=self.provider,
                status=error.status_code,
                headers=error.response.headers,
                default_message=error.message,
            )
            raise ErrorReturned(response) from error
        except ValueError as error:  # a body that is not JSON
            return broken_reply(str(error))
        return read_message(message)

    async def aclose(self) -> None:
        await self._client.close()


def open_bedrock(access: Access) -> BedrockAdapter:
    """Return the adapter for AWS keys. Temporary keys need a session token.

    Raises:
        ModelNotConfigured: the ``anthropic`` SDK is not installed.
    """
    try:
        sdk: Any = importlib.import_module("anthropic")
    except ImportError as error:
        raise ModelNotConfigured(f"bedrock models need the anthropic SDK: {advice('bedrock')}") from error
    client = sdk.AsyncAnthropicBedrock(
        aws_access_key=access.aws_access_key,
        aws_secret_key=access.aws_secret_key,
        aws_session_token=access.aws_session_token,
        aws_region=access.aws_region,
        max_retries=0,
        timeout=sdk.Timeout(None, connect=access.connect_timeout_s),
        http_client=sdk.DefaultAsyncHttpxClient(
            headers={"Accept-Encoding": ACCEPT_ENCODING},
            event_hooks={"response": [limit_reply(access.max_reply_bytes)]},
        ),
    )
    return BedrockAdapter(client=client, sdk=sdk, region=access.aws_region, images=access.images)


def message_body(request: LLMRequest, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of ``messages.create`` for a request in OpenAI's format."""
    rules = [str(message["content"]) for message in request.messages if message["role"] == "system"]
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": MAX_OUTPUT_TOKENS,
        **params,
        "messages": [
            {"role": message["role"], "content": _content(message)}
            for message in request.messages
            if message["role"] != "system"
        ],
    }
    if rules:
        body["system"] = "\n\n".join(rules)
    if request.schema is not None:
        schema = dict(json_schema_of(request.schema))
        body["tools"] = [{"name": REPLY_TOOL, "description": "Give your reply.", "input_schema": schema}]
        body["tool_choice"] = {"type": "tool", "name": REPLY_TOOL}
    return body


def read_message(message: Any) -> RawReply:
    """Convert an ``anthropic`` message. The input of a tool call becomes the text of the reply.

    The SDK does not validate messages. One that cannot be read is ``FinishReason.BROKEN``.
    """
    try:
        return _read_message(message)
    except (AttributeError, TypeError):
        return broken_reply(str(message))


def _read_message(message: Any) -> RawReply:
    texts = []
    for block in message.content:
        if block.type == "tool_use":
            texts = [json.dumps(block.input)]
            break
        if block.type == "text":
            texts.append(block.text)
    usage = message.usage
    cached = getattr(usage, "cache_read_input_tokens", None) or 0
    written = getattr(usage, "cache_creation_input_tokens", None) or 0
    return RawReply(
        text="".join(texts),
        finish=_FINISH.get(message.stop_reason, FinishReason.STOP),
        model=message.model,
        input_tokens=None if usage is None else usage.input_tokens + cached + written,
        output_tokens=None if usage is None else usage.output_tokens,
        cached_tokens=cached,
        cache_write_tokens=written,
    )


def _content(message: Message) -> str | list[dict[str, Any]]:
    content = message["content"]
    return content if isinstance(content, str) else _parts(content)


def _parts(content: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for part in content:
        if part["type"] == "text":
            parts.append({"type": "text", "text": part["text"]})
        else:
            head, _, data = part["image_url"]["url"].partition(",")
            media = head.removeprefix("data:").removesuffix(";base64")
            parts.append({"type": "image", "source": {"type": "base64", "media_type": media, "data": data}})
    return parts

"""Probe of a model server: finds its request format with two small requests, and retries in other formats."""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass
from typing import Any

from PIL import Image
from pydantic import BaseModel

from judges.errors import LLMError, ModelNotConfigured
from judges.llm.cached import CachedLLM
from judges.llm.client import LLMRequest
from judges.llm.images import DataURI, image_part
from judges.llm.request_formats import to_json

_WORD = "lighthouse"
_ASK = f'Fill the form: "word" is the word {_WORD}, "holds" is true.'


class Probe(BaseModel):
    """What the model is asked to fill in."""  # part of the schema that is sent

    word: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """Result of a probe. ``request_format`` is the name of the request format, ``facts`` its JSON value.

    ``right``: the model filled in the correct values.
    """

    request_format: str
    right: bool
    images: bool
    facts: dict[str, Any]


async def probe(client: object, model: str) -> ProbeResult:
    """Request a small JSON object from ``model``, first without and then with an image, and learn its request format.

    Raises:
        ModelNotConfigured: the provider has only one request format.
        LLMError: the server accepts the first request in no format.
    """
    if not isinstance(client, CachedLLM) or client.remote.learned_formats is None:
        raise ModelNotConfigured("this provider has only one request format, so it cannot be probed")
    remote, formats = client.remote, client.remote.learned_formats
    formats.forget(model)
    reply = await remote.complete(
        LLMRequest(
            model=model,
            messages=({"role": "system", "content": "You fill in forms."}, _user_message(_ASK)),
            schema=Probe,
        )
    )
    right = isinstance(reply.parsed, Probe) and reply.parsed.word.strip().lower() == _WORD and reply.parsed.holds
    image = image_part(await asyncio.to_thread(_white_image))
    message = _user_message([image, {"type": "text", "text": _ASK}])
    images = formats.known(model).request_format.images
    if images:
        try:
            images = not (await remote.complete(LLMRequest(model=model, messages=(message,), schema=Probe))).text_only
        except LLMError:
            images = False
    request_format = formats.known(model).request_format
    facts = {**to_json(request_format), "images": images, "calls": reply.usage.calls}
    return ProbeResult(request_format=str(request_format), right=right, images=images, facts=facts)


def _user_message(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _white_image() -> DataURI:
    body = io.BytesIO()
    Image.new("RGB", (64, 64), "white").save(body, "JPEG")
    return DataURI.of_jpeg(body.getvalue())

"""Find out how a model server wants to be asked, with two small requests and whatever it refuses on the way."""

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
from judges.llm.dialects import to_json
from judges.llm.images import DataURI, image_part

_WORD = "lighthouse"
_ASK = f'Fill the form: "word" is the word {_WORD}, "holds" is true.'


class Probe(BaseModel):
    """What the model is asked to fill in."""

    word: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a probe found. ``form`` is the dialect in words, ``facts`` the same as JSON values."""

    form: str
    right: bool
    images: bool
    facts: dict[str, Any]


async def probe(client: object, model: str) -> Found:
    """Ask ``model`` for a small form, then for one beside a picture; what is found is remembered.

    Raises:
        ModelNotConfigured: the client's provider has one form only, so there is nothing to find out.
        LLMError: the server answers neither request, in whatever form.
    """
    if not isinstance(client, CachedLLM) or client.remote.dialects is None:
        raise ModelNotConfigured("this provider takes requests in one form: there is nothing to probe")
    remote, dialects = client.remote, client.remote.dialects
    dialects.forget(model)
    reply = await remote.complete(
        LLMRequest(
            model=model, messages=({"role": "system", "content": "You fill in forms."}, _said(_ASK)), schema=Probe
        )
    )
    right = isinstance(reply.parsed, Probe) and reply.parsed.word.strip().lower() == _WORD and reply.parsed.holds
    picture = image_part(await asyncio.to_thread(_picture))
    shown = _said([picture, {"type": "text", "text": _ASK}])
    images = dialects.known(model).dialect.images
    if images:
        try:
            images = not (await remote.complete(LLMRequest(model=model, messages=(shown,), schema=Probe))).text_only
        except LLMError:
            images = False
    dialect = dialects.known(model).dialect
    facts = {**to_json(dialect), "images": images, "calls": reply.usage.calls}
    return Found(form=str(dialect), right=right, images=images, facts=facts)


def _said(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _picture() -> DataURI:
    body = io.BytesIO()
    Image.new("RGB", (64, 64), "white").save(body, "JPEG")
    return DataURI.of_jpeg(body.getvalue())

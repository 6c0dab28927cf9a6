"""One recorded call to the stand-in model, parsed for rules and assertions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.standin.http import HttpRequest

_NO_PARAMETERS = frozenset({"model", "messages", "response_format", "tools", "tool_choice"})
_BLOCK = r"<{label} (?P<nonce>[0-9a-f]+)>\n(?P<text>.*?)\n</{label} (?P=nonce)>"


@dataclass(frozen=True)
class Call:
    """One model request. ``index`` counts from 0. ``text`` is all text of the messages, in order."""

    index: int
    model: str
    messages: Sequence[Mapping[str, Any]]
    params: Mapping[str, Any]
    schema_name: str = ""
    schema: Mapping[str, Any] | None = None
    api_key: str | None = None
    form: str = "prompt"
    """Request format of the schema: ``json_schema``, ``json_object``, ``tool``, or only in the ``prompt``."""
    is_strict: bool = False
    path: str = ""
    """Path with query."""
    body_bytes: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        return "\n".join(part for message in self.messages for part in _texts(message["content"]))

    @cached_property
    def images(self) -> list[str]:
        """Data URIs of the pictures, in order."""
        return [
            part["image_url"]["url"]
            for message in self.messages
            if not isinstance(message["content"], str)
            for part in message["content"]
            if part["type"] == "image_url"
        ]

    @property
    def prompt_tokens(self) -> int:
        return len(self.text) // 4 + 1000 * len(self.images)

    @property
    def claim(self) -> str:
        """Last block labelled ``claim``; for a prompt without blocks, the last paragraph."""
        return self.block("claim") or self.text.rstrip().rsplit("\n\n", 1)[-1]

    @property
    def page(self) -> str:
        return self.block("page")

    def block(self, label: str) -> str:
        """Return the text of the last block with this label, or an empty text."""
        found = list(re.finditer(_BLOCK.format(label=label), self.text, re.DOTALL))
        return found[-1]["text"] if found else ""


def read_call(request: HttpRequest, *, index: int) -> Call:
    body = json.loads(request.body)
    wanted = body.get("response_format") or {}
    asked = wanted.get("json_schema") or {}
    tools = [tool["function"] for tool in body.get("tools") or ()]
    if tools:
        asked = {"name": tools[0]["name"], "schema": tools[0]["parameters"]}
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return Call(
        index=index,
        model=body["model"],
        messages=body["messages"],
        params={name: body[name] for name in body if name not in _NO_PARAMETERS},
        schema_name=asked.get("name", ""),
        schema=asked.get("schema"),
        form=wanted.get("type") or ("tool" if tools else "prompt"),
        is_strict="strict" in asked,
        api_key=key if scheme.lower() == "bearer" else request.headers.get("api-key"),
        path=request.path,
        body_bytes=len(request.body),
        headers=request.headers,
    )


def schema_in_words(text: str) -> Mapping[str, Any] | None:
    """Return the JSON schema written into a prompt, if any."""
    found = list(re.finditer(r'^\{.*"properties".*\}$', text, re.MULTILINE))
    return json.loads(found[-1][0]) if found else None


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part["type"] == "text"]

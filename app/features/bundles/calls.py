"""The record of a result's calls as files of a bundle: one line a call, long texts and pictures under their hashes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from app.features.bundles.contents import calls_path, evidence_path, prompt_path, schema_path, text_path
from app.features.bundles.contents import json_bytes as as_json
from app.features.bundles.withholding import short_reply, shortened, without_pages
from judges.llm.recorded_calls import RecordedCalls, joined


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file of the payload."""

    path: str
    data: bytes


def call_files(result_id: str, record: RecordedCalls, *, content: bool) -> Iterator[File]:
    """All files that a record makes. Without ``content`` no text of a page is in them."""
    for ref, text in sorted(record.prompts.items()):
        yield File(path=prompt_path(ref), data=f"{text}\n".encode())
    for sha256, schema in sorted(record.schemas.items()):
        yield File(path=schema_path(sha256), data=as_json(schema))
    if content:
        for sha256 in record.pieces:
            piece = record.piece(sha256)
            path = text_path(sha256) if piece.kind == "text" else evidence_path(sha256, piece.kind)
            yield File(path=path, data=piece.data)

    def text_of(sha256: str) -> str:
        return record.piece(sha256).data.decode("utf-8") if sha256 in record.pieces else f"[{sha256}]"

    lines = [
        json.dumps(_line(call, text_of, content=content), ensure_ascii=False, sort_keys=True) for call in record.calls
    ]
    yield File(path=calls_path(result_id), data="".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))


def _line(call: dict[str, Any], text_of: Callable[[str], str], *, content: bool) -> dict[str, Any]:
    if content:
        return call
    own_prompt = call["prompt"] is not None
    call = _exchange(call, text_of, own_prompt=own_prompt)
    if "shortened" in call:
        call["shortened"] = _exchange(call["shortened"], text_of, own_prompt=own_prompt)
    return call


def _exchange(said: dict[str, Any], text_of: Callable[[str], str], *, own_prompt: bool) -> dict[str, Any]:
    """What was sent and what was said to it, without what pages say."""
    changed = {"messages": _withheld(said["messages"], text_of, own_prompt=own_prompt)}
    if "reply" in said:
        changed["reply"] = short_reply(said["reply"])
    if "unusable" in said:
        changed["unusable"] = [
            {**each, "reply": short_reply(each["reply"]), "detail": shortened(each["detail"])}
            for each in said["unusable"]
        ]
    return {**said, **changed}


def _withheld(value: Any, text_of: Callable[[str], str], *, own_prompt: bool) -> Any:
    if isinstance(value, str):
        return without_pages(value, own_prompt=own_prompt)
    if isinstance(value, dict):
        if "pieces" in value:
            return without_pages(joined(value, text_of), own_prompt=own_prompt)
        return {name: _withheld(each, text_of, own_prompt=own_prompt) for name, each in value.items()}
    if isinstance(value, list):
        return [_withheld(each, text_of, own_prompt=own_prompt) for each in value]
    return value

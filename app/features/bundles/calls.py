"""Files of a bundle that record the model calls of one result.

``calls/<result>.jsonl`` has one line per call. Long texts and images are separate files, named by their SHA-256.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from app.features.bundles.contents import calls_path, evidence_path, prompt_path, schema_path, text_path
from app.features.bundles.contents import json_bytes as as_json
from app.features.bundles.withholding import short_reply, shortened, without_pages
from judges.llm.recorded_calls import ParsedCallLog, join_pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """File of the payload."""

    path: str
    data: bytes


def call_files(result_id: str, record: ParsedCallLog, *, content: bool) -> Iterator[File]:
    """Yield all files for a record of calls. Without ``content``, page text is removed."""
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


def _exchange(exchange: dict[str, Any], text_of: Callable[[str], str], *, own_prompt: bool) -> dict[str, Any]:
    """Return a request and its replies with page text removed."""
    changed = {"messages": _withheld(exchange["messages"], text_of, own_prompt=own_prompt)}
    if "reply" in exchange:
        changed["reply"] = short_reply(exchange["reply"])
    if "unusable" in exchange:
        changed["unusable"] = [
            {**each, "reply": short_reply(each["reply"]), "detail": shortened(each["detail"])}
            for each in exchange["unusable"]
        ]
    return {**exchange, **changed}


def _withheld(value: Any, text_of: Callable[[str], str], *, own_prompt: bool) -> Any:
    if isinstance(value, str):
        return without_pages(value, own_prompt=own_prompt)
    if isinstance(value, dict):
        if "pieces" in value:
            return without_pages(join_pieces(value, text_of), own_prompt=own_prompt)
        return {name: _withheld(each, text_of, own_prompt=own_prompt) for name, each in value.items()}
    if isinstance(value, list):
        return [_withheld(each, text_of, own_prompt=own_prompt) for each in value]
    return value

"""Parser for chat completions of OpenAI-compatible servers.

The reply may be a string, a list of parts, a tool call, a legacy function call or part of the reasoning. Some servers
stream it although the request does not ask for a stream. The parser converts all of these to the text of a
``RawReply``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from judges.llm.wire import FinishReason, RawReply

MAX_BROKEN_CHARS: Final = 4_000
"""Characters stored of a body that is not a chat completion."""
_FINISH: Final = {
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "content_filter": FinishReason.FILTER,
}
"""Every other ``finish_reason`` means ``FinishReason.STOP``."""
_REASONING: Final = ("reasoning_content", "reasoning", "thinking")


def read_completion(body: str) -> RawReply:
    """Parse the body of a response with status 200. If it is not a chat completion, return ``FinishReason.BROKEN``."""
    try:
        completion = completion_in(body)
        choice = _first_choice(completion)
        message = choice.get("message") or choice.get("delta")
        if message is None:
            message = {"content": choice["text"]}
        refusal = message.get("refusal")
        usage = completion.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        text = _text_of(message)
        if not text.strip() and isinstance(refusal, str):
            text = refusal
        return RawReply(
            text=text,
            finish=FinishReason.REFUSAL
            if refusal
            else _FINISH.get(str(choice.get("finish_reason")), FinishReason.STOP),
            model=str(completion.get("model") or ""),
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
            cached_tokens=details.get("cached_tokens") or 0,
            cache_write_tokens=details.get("cache_write_tokens") or 0,
        )
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        detail = "its body is not a chat completion"
        return RawReply(text=body[:MAX_BROKEN_CHARS], finish=FinishReason.BROKEN, model="", detail=detail)


def completion_in(body: str) -> Mapping[str, Any]:
    """Return the completion in a body: a JSON object, or the combined server-sent events.

    Raises:
        ValueError: the body is neither.
    """
    body = body.lstrip("\ufeff \t\r\n")
    found = _assembled(body) if body.startswith(("data:", "event:", "id:", ":")) else json.loads(body)
    if not isinstance(found, Mapping):
        raise ValueError("not an object")
    return found


def error_in(body: str) -> Mapping[str, Any] | None:
    """Return the error that a server sent with status 200 instead of a completion; None if there is none."""
    if len(body) > MAX_BROKEN_CHARS or "error" not in body:
        return None
    try:
        completion = completion_in(body)
        error = completion.get("error")
        if error is None and completion.get("choices"):
            choice = completion["choices"][0]
            error = None if _text_of(choice.get("message") or {}) else choice.get("error")
    except (ValueError, TypeError, AttributeError, LookupError):
        return None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, Mapping) else None


def _first_choice(completion: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice. Some gateways omit the list ``choices``."""
    if "choices" not in completion and isinstance(completion.get("message"), Mapping):
        return completion
    choice: Mapping[str, Any] = completion["choices"][0]
    return choice


def _text_of(message: Mapping[str, Any]) -> str:
    """Return the text of the model. Reasoning is used only if there is no other text, after an unclosed ``<think>``."""
    content = _content(message.get("content"))
    calls = list(_arguments(message))
    if calls:
        return "\n".join([content, *calls] if "{" in content else calls)
    if content.strip():
        return content
    reasoning = next((_content(message[key]) for key in _REASONING if message.get(key)), "")
    return f"<think>\n{reasoning}" if reasoning.strip() else content


def _content(content: Any) -> str:
    """Return the text of a message's content: a string, a list of parts, or a JSON object that is already parsed."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(map(_part, content))
    return json.dumps(content) if isinstance(content, Mapping) else ""


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type") not in (None, "text", "output_text", "json", "output_json"):
        return ""  # reasoning, or an image
    text = part.get("text", part.get("json", part.get("content")))
    if isinstance(text, Mapping) and isinstance(text.get("value"), str):
        return str(text["value"])
    return _content(text)


def _arguments(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arguments of each tool call and of a legacy function call, as JSON text."""
    calls = [call.get("function") or call for call in message.get("tool_calls") or ()]
    for call in [*calls, message.get("function_call") or {}]:
        arguments = call.get("arguments", call.get("input"))
        if arguments:
            yield arguments if isinstance(arguments, str) else json.dumps(arguments)


def _assembled(stream: str) -> Mapping[str, Any]:
    """Combine server-sent events to one completion. If the stream breaks off, its ``finish_reason`` is ``length``."""
    whole: dict[str, Any] = {}
    message: dict[str, list[str]] = {}
    calls: dict[Any, dict[str, list[str]]] = {}
    finish, is_done = None, False
    for data in _events(stream):
        if not data:
            continue
        if data == "[DONE]":
            is_done = True
            break
        chunk = json.loads(data)
        whole |= {key: value for key, value in chunk.items() if key != "choices" and value is not None}
        for choice in (chunk.get("choices") or ())[:1]:
            finish = choice.get("finish_reason") or finish
            delta = choice.get("delta") or choice.get("message") or {"content": choice.get("text")}
            for key in ("content", "refusal", *_REASONING):
                _append(message, key, delta.get(key))
            for place, call in enumerate(delta.get("tool_calls") or ()):
                function = call.get("function") or {}
                _append(calls.setdefault(call.get("index", place), {}), "arguments", function.get("arguments"))
            _append(calls.setdefault("legacy", {}), "arguments", (delta.get("function_call") or {}).get("arguments"))
    if finish is None and not is_done:
        finish = "length"
    message_fields: dict[str, Any] = {key: "".join(pieces) for key, pieces in message.items()}
    message_fields["tool_calls"] = [{"arguments": "".join(call["arguments"])} for call in calls.values() if call]
    return {**whole, "choices": [] if "error" in whole else [{"message": message_fields, "finish_reason": finish}]}


def _events(stream: str) -> Iterator[str]:
    """Yield the data of each event. Servers write it on one line, but not all add an empty line after it."""
    return (line[5:].strip() for line in stream.split("\n") if line.startswith("data:"))


def _append(pieces: dict[str, list[str]], key: str, piece: Any) -> None:
    if piece:
        pieces.setdefault(key, []).append(_content(piece))

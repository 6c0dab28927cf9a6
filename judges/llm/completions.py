"""Read the body of a chat completion, whatever OpenAI-compatible server wrote it.

The reply may be a string, a list of parts, a tool call, a legacy function call or part of the reasoning, and some
servers stream it without being asked. All of these become one text in a ``RawReply``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from judges.llm.wire import Finish, RawReply

MAX_BROKEN_CHARS: Final = 4_000
"""How much is kept of a body that is not a chat completion."""
_FINISH: Final = {
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "content_filter": Finish.FILTER,
}
"""Every other reason is an ordinary end."""
_REASONING: Final = ("reasoning_content", "reasoning", "thinking")


def read_completion(body: str) -> RawReply:
    """Read the body of a 200. One that is not a chat completion becomes ``Finish.BROKEN``."""
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
            finish=Finish.REFUSAL if refusal else _FINISH.get(str(choice.get("finish_reason")), Finish.STOP),
            model=str(completion.get("model") or ""),
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
            cached_tokens=details.get("cached_tokens") or 0,
            cache_write_tokens=details.get("cache_write_tokens") or 0,
        )
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        detail = "its body is no chat completion"
        return RawReply(text=body[:MAX_BROKEN_CHARS], finish=Finish.BROKEN, model="", detail=detail)


def completion_in(body: str) -> Mapping[str, Any]:
    """The completion in a body: JSON, or server-sent events put together.

    Raises:
        ValueError: it is neither.
    """
    body = body.lstrip("\ufeff \t\r\n")
    found = _assembled(body) if body.startswith(("data:", "event:", "id:", ":")) else json.loads(body)
    if not isinstance(found, Mapping):
        raise ValueError("not an object")
    return found


def error_in(body: str) -> Mapping[str, Any] | None:
    """The error that a server sent with status 200 in place of a completion; None if there is none."""
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
    """The first choice; some gateways leave out the list around it."""
    if "choices" not in completion and isinstance(completion.get("message"), Mapping):
        return completion
    choice: Mapping[str, Any] = completion["choices"][0]
    return choice


def _text_of(message: Mapping[str, Any]) -> str:
    """What the model wrote. Reasoning counts only without anything else, as thinking that was never closed."""
    content = _content(message.get("content"))
    calls = list(_arguments(message))
    if calls:
        return "\n".join([content, *calls] if "{" in content else calls)
    if content.strip():
        return content
    reasoning = next((_content(message[key]) for key in _REASONING if message.get(key)), "")
    return f"<think>\n{reasoning}" if reasoning.strip() else content


def _content(content: Any) -> str:
    """The text of a message's content: a string, a list of parts, or an object that was parsed already."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(map(_part, content))
    return json.dumps(content) if isinstance(content, Mapping) else ""


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type") not in (None, "text", "output_text", "json", "output_json"):
        return ""  # thinking, or a picture
    text = part.get("text", part.get("json", part.get("content")))
    if isinstance(text, Mapping) and isinstance(text.get("value"), str):
        return str(text["value"])
    return _content(text)


def _arguments(message: Mapping[str, Any]) -> Iterator[str]:
    """The arguments of every tool call and of a legacy function call, as JSON text."""
    calls = [call.get("function") or call for call in message.get("tool_calls") or ()]
    for call in [*calls, message.get("function_call") or {}]:
        given = call.get("arguments", call.get("input"))
        if given:
            yield given if isinstance(given, str) else json.dumps(given)


def _assembled(stream: str) -> Mapping[str, Any]:
    """One completion out of server-sent events. One that breaks off counts as cut short."""
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
    said: dict[str, Any] = {key: "".join(pieces) for key, pieces in message.items()}
    said["tool_calls"] = [{"arguments": "".join(call["arguments"])} for call in calls.values() if call]
    return {**whole, "choices": [] if "error" in whole else [{"message": said, "finish_reason": finish}]}


def _events(stream: str) -> Iterator[str]:
    """The data of each event. Every server writes it in one line, not every server puts an empty line behind it."""
    return (line[5:].strip() for line in stream.split("\n") if line.startswith("data:"))


def _append(pieces: dict[str, list[str]], key: str, piece: Any) -> None:
    if piece:
        pieces.setdefault(key, []).append(_content(piece))

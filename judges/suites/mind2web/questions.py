"""Prompt of one round (contracts/mind2web.md, 3.3).

A template is a JSON list of chat messages. The page and the question are appended to the last one, a user message. The
question uses the wording of the template's demonstrations, so the template determines the whole wording. The shipped
template is ``judges/prompting/prompts/mindact.md``; the published one has the wording of the published evaluation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from judges.llm.client import Message
from judges.prompting.prompts.library import load_prompt
from judges.suites.mind2web.errors import TemplateUnusable
from judges.suites.mind2web.parsing import NONE_LETTER
from judges.suites.mind2web.representation import ShownPage

SHIPPED = "mindact"
HISTORY = 5
NO_HISTORY = "None"
MAX_TEMPLATE_BYTES = 4 * 1024 * 1024
_ROLES = frozenset({"system", "user", "assistant"})
_QUESTION = re.compile(
    r"'''\n(?P<page>.*?)\n'''\n\n(?P<ask>[^\n]*)\nTask: (?P<task>.*?)\nPrevious actions:\n(?P<history>.*?)\n"
    r"(?P<choose>[^\n]*)\n\nA\. (?P<none>[^\n]*)(?P<options>.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Variable sentences of a question.

    ``ask`` precedes the task, ``choose`` the options; ``none`` is the text of the first option.
    """

    ask: str
    choose: str
    none: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Prompt template. ``messages`` are (role, content) pairs; ``ref`` identifies the template in reports."""

    ref: str
    messages: tuple[tuple[str, str], ...]
    wording: Wording

    def fill(self, question: str) -> tuple[Message, ...]:
        """Return the messages of one round."""
        *before, (role, content) = self.messages
        return tuple({"role": role, "content": text} for role, text in (*before, (role, content + question)))


def question(shown: ShownPage, *, task: str, history: Sequence[str], wording: Wording) -> str:
    """Return the text that follows the page."""
    return question_text([text for _, text in shown.options], task=task, history=history, wording=wording)


def question_text(options: Sequence[str], *, task: str, history: Sequence[str], wording: Wording) -> str:
    """Return the task, the last five actions and the options, which are given in document order."""
    earlier = history[-HISTORY:] or [NO_HISTORY]
    lines = [wording.ask, f"Task: {task}", "Previous actions:", *earlier, wording.choose, ""]
    lines += [f"{chr(ord(NONE_LETTER) + place)}. {text}" for place, text in enumerate([wording.none, *options])]
    return "\n".join(lines) + "\n"


def last_message(context: str, question: str) -> str:
    """Return the content of the last message: the page, then the question."""
    return f"'''\n{context}\n'''\n\n{question}"


@cache
def shipped_template() -> Template:
    prompt = load_prompt(SHIPPED)
    return read_template(prompt.text, name=prompt.ref, ref=prompt.ref)


def load_template(file: Path) -> Template:
    """Read a template file of the user. Blocks.

    Raises:
        TemplateUnusable: the file cannot be read, or is not a list of chat messages.
    """
    try:
        if file.stat().st_size > MAX_TEMPLATE_BYTES:
            raise TemplateUnusable(f"{file}: the template is larger than {MAX_TEMPLATE_BYTES} bytes")
        written = file.read_bytes()
    except OSError as error:
        raise TemplateUnusable(f"{file} cannot be read: {error.strerror}") from error
    digest = hashlib.sha256(written).hexdigest()
    try:
        text = written.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TemplateUnusable(f"{file}: must be UTF-8") from error
    return read_template(text, name=str(file), ref=f"{file.name}@sha256:{digest[:16]}")


def read_template(text: str, *, name: str, ref: str) -> Template:
    """Parse a template.

    Raises:
        TemplateUnusable: the text is not a JSON list of chat messages that ends with a user message.
    """
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TemplateUnusable(f"{name}: not valid JSON: {error}") from error
    if not isinstance(listed, list) or not listed:
        raise TemplateUnusable(f"{name}: must be a JSON list of chat messages")
    messages = tuple(_message(one, f"{name}, message {number}") for number, one in enumerate(listed))
    if messages[-1][0] != "user":
        raise TemplateUnusable(f"{name}: the last message is completed with the question, so its role must be user")
    return Template(ref=ref, messages=messages, wording=_wording(messages) or shipped_template().wording)


def demonstrations(template: Template) -> list[tuple[str, str]]:
    """Return the demonstrations of a template: pairs of user message and assistant reply."""
    pairs = zip(template.messages, template.messages[1:], strict=False)
    return [
        (user_text, answer)
        for (role, user_text), (next_role, answer) in pairs
        if (role, next_role) == ("user", "assistant")
    ]


def parse_demonstration(user_text: str) -> re.Match[str] | None:
    """Parse the user message of a demonstration.

    The groups are ``page``, ``ask``, ``task``, ``history``, ``choose``, ``none`` and ``options``.
    """
    return _QUESTION.fullmatch(user_text)


def _message(value: Any, place: str) -> tuple[str, str]:
    if not isinstance(value, dict) or value.get("role") not in _ROLES or not isinstance(value.get("content"), str):
        raise TemplateUnusable(
            f"{place}: must be an object with a role (system, user, assistant) and a string as content"
        )
    return value["role"], value["content"]


def _wording(messages: Sequence[tuple[str, str]]) -> Wording | None:
    """Return the wording of the last demonstration, or None."""
    for role, content in reversed(messages):
        match = parse_demonstration(content) if role == "user" else None
        if match is not None:
            return Wording(ask=match["ask"], choose=match["choose"], none=match["none"])
    return None

"""What a chat model is asked in one round: contracts/mind2web.md, 3.3.

A template is a JSON list of chat messages; the last one, a user's, is completed with the page and the question. The
question is worded as in the template's own demonstrations, so that a template brings its whole wording along: the
shipped one (``judges/prompting/prompts/mindact.md``) ours, the published one that of the published evaluation.
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
from judges.suites.mind2web.representation import Shown

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
    """``ask`` stands before the task, ``choose`` before the options; ``none`` is the text of the first option."""

    ask: str
    choose: str
    none: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """``messages`` are (role, content); ``ref`` names the template in reports."""

    ref: str
    messages: tuple[tuple[str, str], ...]
    wording: Wording

    def fill(self, question: str) -> tuple[Message, ...]:
        """The messages of one round."""
        *before, (role, begun) = self.messages
        return tuple({"role": role, "content": content} for role, content in (*before, (role, begun + question)))


def question(shown: Shown, *, task: str, history: Sequence[str], wording: Wording) -> str:
    """The text after the page."""
    return question_text([text for _, text in shown.options], task=task, history=history, wording=wording)


def question_text(options: Sequence[str], *, task: str, history: Sequence[str], wording: Wording) -> str:
    """The task, the last few actions, and the options, given in document order."""
    earlier = history[-HISTORY:] or [NO_HISTORY]
    lines = [wording.ask, f"Task: {task}", "Previous actions:", *earlier, wording.choose, ""]
    lines += [f"{chr(ord(NONE_LETTER) + place)}. {text}" for place, text in enumerate([wording.none, *options])]
    return "\n".join(lines) + "\n"


def with_page(context: str, asked: str) -> str:
    """The whole last message."""
    return f"'''\n{context}\n'''\n\n{asked}"


@cache
def shipped_template() -> Template:
    prompt = load_prompt(SHIPPED)
    return read_template(prompt.text, name=prompt.ref, ref=prompt.ref)


def load_template(file: Path) -> Template:
    """A template of one's own. Blocks.

    Raises:
        TemplateUnusable: it cannot be read, or is no list of chat messages.
    """
    try:
        if file.stat().st_size > MAX_TEMPLATE_BYTES:
            raise TemplateUnusable(f"{file}: a template of more than {MAX_TEMPLATE_BYTES} bytes")
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
    """Raises TemplateUnusable: it is no JSON list of chat messages that ends with a user's."""
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TemplateUnusable(f"{name}: is no JSON: {error}") from error
    if not isinstance(listed, list) or not listed:
        raise TemplateUnusable(f"{name}: must be a JSON list of chat messages")
    messages = tuple(_message(one, f"{name}, message {number}") for number, one in enumerate(listed))
    if messages[-1][0] != "user":
        raise TemplateUnusable(f"{name}: the last message is completed with the question, so its role must be user")
    return Template(ref=ref, messages=messages, wording=_wording(messages) or shipped_template().wording)


def demonstrations(template: Template) -> list[tuple[str, str]]:
    """The template's worked examples: what the user says and what the assistant answers."""
    pairs = zip(template.messages, template.messages[1:], strict=False)
    return [(said, answer) for (role, said), (next_role, answer) in pairs if (role, next_role) == ("user", "assistant")]


def demonstrated(said: str) -> re.Match[str] | None:
    """A worked example taken apart: ``page``, ``ask``, ``task``, ``history``, ``choose``, ``none`` and ``options``."""
    return _QUESTION.fullmatch(said)


def _message(given: Any, place: str) -> tuple[str, str]:
    if not isinstance(given, dict) or given.get("role") not in _ROLES or not isinstance(given.get("content"), str):
        raise TemplateUnusable(
            f"{place}: must be an object with a role (system, user, assistant) and a text as content"
        )
    return given["role"], given["content"]


def _wording(messages: Sequence[tuple[str, str]]) -> Wording | None:
    """As the last demonstration words it."""
    for role, content in reversed(messages):
        found = demonstrated(content) if role == "user" else None
        if found is not None:
            return Wording(ask=found["ask"], choose=found["choose"], none=found["none"])
    return None

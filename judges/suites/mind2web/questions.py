"""Prompt of one round (docs/mind2web-rules.md, "Question").

A template is a JSON list of chat messages, or an object ``{system, examples, template}``. The page and the question are
appended to the last message, a user message, unless it contains a placeholder such as ``{question}``. The question uses
the wording of the template's demonstrations, so the template determines the whole wording. The shipped template is
``judges/prompting/prompts/mindact.md``; the published one has the wording of the published evaluation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from judges.llm.client import Message
from judges.prompting.prompts import load_prompt
from judges.suites.errors import SuiteError
from judges.suites.mind2web.page import ShownPage
from judges.suites.questions import option_name

SHIPPED = "mindact"
HISTORY = 5
NO_HISTORY = "None"
MAX_TEMPLATE_BYTES = 4 * 1024 * 1024
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_EXTRA = ("question", "answer_instructions")
_OBJECT_KEYS = frozenset({"system", "system_prompt", "examples", "template", *_EXTRA})
_EXAMPLE_KEYS = frozenset({"task", "history", "context", "question", "choices", "answer"})
_ROLES = ("system", "user", "assistant")
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
    """Prompt template. ``messages`` are (role, content) pairs; ``ref`` identifies the template in reports.

    ``extra`` are sentences of an object that replace those of the guide's question: ``question`` (before the options)
    and ``answer_instructions``.
    """

    ref: str
    messages: tuple[tuple[str, str], ...]
    wording: Wording
    extra: Mapping[str, str] = field(default_factory=dict)

    def fill(self, question: str, values: Mapping[str, str] | None = None) -> tuple[Message, ...]:
        """Return the messages of one round.

        Placeholders in the last message, ``{question}`` and the names of ``values``, are replaced. Without any, the
        question is appended.
        """
        *before, (role, content) = self.messages
        filled = place_values(content, {"question": question, **(values or {})})
        last = content + question if filled == content else filled
        return tuple({"role": role, "content": text} for role, text in (*before, (role, last)))


def place_values(text: str, values: Mapping[str, str]) -> str:
    """Replace every ``{name}`` by its value. Placeholders inside values are not replaced.

    >>> place_values("{a} and {b}", {"a": "{b}"})
    '{b} and {b}'
    """
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def question(shown: ShownPage, *, task: str, history: Sequence[str], wording: Wording) -> str:
    """Return the text that follows the page."""
    return question_text([text for _, text in shown.options], task=task, history=history, wording=wording)


def question_text(options: Sequence[str], *, task: str, history: Sequence[str], wording: Wording) -> str:
    """Return the task, the last five actions and the options, which are given in document order."""
    earlier = history[-HISTORY:] or [NO_HISTORY]
    lines = [wording.ask, f"Task: {task}", "Previous actions:", *earlier, wording.choose, ""]
    lines += option_lines_after_none(wording.none, options)
    return "\n".join(lines) + "\n"


def option_lines_after_none(none: str, options: Sequence[str]) -> list[str]:
    """Return the options as shown to a model. A is the text ``none``."""
    return [f"{option_name(place)}. {text}" for place, text in enumerate([none, *options])]


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
        SuiteError: the file cannot be read, or is not a template.
    """
    try:
        if file.stat().st_size > MAX_TEMPLATE_BYTES:
            raise SuiteError(f"{file}: the template is larger than {MAX_TEMPLATE_BYTES} bytes")
        written = file.read_bytes()
    except OSError as error:
        raise SuiteError(f"{file} cannot be read: {error.strerror}") from error
    digest = hashlib.sha256(written).hexdigest()
    try:
        text = written.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SuiteError(f"{file}: must be UTF-8") from error
    return read_template(text, name=str(file), ref=f"{file.name}@sha256:{digest[:16]}")


def read_template(text: str, *, name: str, ref: str) -> Template:
    """Parse a template.

    Raises:
        SuiteError: the text is neither a JSON list of chat messages that ends with a user message, nor an object
            with ``system``, ``examples`` and ``template``.
    """
    try:
        written = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{name}: not valid JSON: {error}") from error
    extra: dict[str, str] = {}
    if isinstance(written, dict) and written:
        messages = tuple(_object_messages(written, name))
        extra = {key: written[key] for key in _EXTRA if key in written}
    elif isinstance(written, list) and written:
        messages = tuple(_message(one, f"{name}, message {number}") for number, one in enumerate(written))
    else:
        raise SuiteError(f"{name}: must be a JSON list of chat messages, or an object {{system, examples, template}}")
    if messages[-1][0] != "user":
        raise SuiteError(f"{name}: the last message is completed with the question, so its role must be user")
    return Template(ref=ref, messages=messages, wording=_wording(messages) or shipped_template().wording, extra=extra)


def _object_messages(written: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """Yield the messages of ``{system, examples, template}``. Every key is optional."""
    unknown = sorted(written.keys() - _OBJECT_KEYS)
    if unknown:
        raise SuiteError(f"{name}: unknown key {unknown[0]!r}: use {', '.join(sorted(_OBJECT_KEYS))}")
    for key in _OBJECT_KEYS - {"examples"}:
        if not isinstance(written.get(key, ""), str):
            raise SuiteError(f"{name}, {key}: must be a string")
    system = written.get("system") or written.get("system_prompt")
    if system:
        yield "system", system
    examples = written.get("examples", [])
    if not isinstance(examples, list):
        raise SuiteError(f"{name}, examples: must be a list")
    for number, example in enumerate(examples):
        yield from _example(example, f"{name}, examples.{number}")
    yield "user", written.get("template", "")


def _example(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield an example: a chat message, a pair ``{user, assistant}``, or the guide's fields with an ``answer``."""
    if isinstance(value, dict) and "role" in value:
        yield _message(value, place)
        return
    if not isinstance(value, dict):
        raise SuiteError(f"{place}: must be an object of strings: role and content, or user and assistant")
    wrong = next((key for key, text in value.items() if not isinstance(text, str)), None)
    if wrong is not None:
        raise SuiteError(f"{place}, field {wrong}: must be a string")
    if value.keys() == {"user", "assistant"}:
        yield from value.items() if list(value) == ["user", "assistant"] else reversed(value.items())
        return
    if "answer" not in value or not value.keys() <= _EXAMPLE_KEYS:
        raise SuiteError(
            f"{place}: must have role and content, user and assistant, or answer and {', '.join(sorted(_EXAMPLE_KEYS))}"
        )
    page = f'"""\n{value["context"]}\n"""' if "context" in value else ""
    parts = (f"Task: {value.get('task', '')}", f"Previous actions:\n{value.get('history') or NO_HISTORY}", page,
             value.get("question", ""), value.get("choices", ""))  # fmt: skip
    yield "user", "\n\n".join(part for part in parts if part)
    yield "assistant", value["answer"]


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
        raise SuiteError(f"{place}: must be an object with a role (system, user, assistant) and a string as content")
    return value["role"], value["content"]


def _wording(messages: Sequence[tuple[str, str]]) -> Wording | None:
    """Return the wording of the last demonstration, or None."""
    for role, content in reversed(messages):
        match = parse_demonstration(content) if role == "user" else None
        if match is not None:
            return Wording(ask=match["ask"], choose=match["choose"], none=match["none"])
    return None

"""From a question to the messages that are sent: one renderer for native judges and for public scripts.

The order is rules, task, page, answer, instruction, claim, pictures before all text: what many questions
share comes first, so that a provider's prefix cache serves every further claim and vote on a page. Rules are
our words; everything else stands in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from judges.llm.client import Message
from judges.llm.images import image_part
from judges.prompting.blocks import Separator, neutralise
from judges.prompting.page_view import PreparedPage, page_blocks
from judges.prompting.prompts.library import Prompt, load_prompt

TRANSCRIBE: Final = "transcribe"
"""The id of the prompt that asks for words in pictures."""


class Style(StrEnum):
    """How rules and material are spread over messages."""

    NATIVE = "native"
    """Rules in the system role, the material in one user message."""
    COMPAT = "compat"
    """Everything in one user message, as clients of the public toolkit expect it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a model is asked. ``claim`` is a claim, or for an extraction the request of what to read out."""

    task: str
    answer: str
    claim: str
    instruction: str | None = None
    page: PreparedPage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A question ready to be sent; ``parts`` are its texts for a judge that reads no prose, ``evidence`` the digests
    of the page that is asked about.
    """

    messages: tuple[Message, ...]
    prompt: str
    parts: Mapping[str, str]
    evidence: tuple[str, ...] = ()


def render_claim(question: Question, separator: Separator, style: Style) -> Rendered:
    """Ask whether a claim holds, by the page if there is one, otherwise by the answer alone."""
    prompt = load_prompt("verify_answer" if question.page is None else "verify_page")
    pieces = [("answer", question.answer), *_instruction(question), ("claim", question.claim)]
    return _rendered(prompt, _blocks(pieces, question, separator), question, style, {"claim": question.claim})


def render_extraction(question: Question, separator: Separator, style: Style) -> Rendered:
    """Ask for values, from the page if there is one, otherwise from the answer."""
    page = question.page
    prompt = load_prompt("extract_answer" if page is None else "extract_page")
    pieces = [("answer", question.answer)] if page is None else [("links", page.links)] if page.links else []
    pieces += [*_instruction(question), ("request", question.claim)]
    return _rendered(prompt, _blocks(pieces, question, separator), question, style, {"prompt": question.claim})


def render_transcription(question: Question, separator: Separator) -> Rendered:
    """Ask for the words in the page's pictures that support the claim."""
    blocks = _blocks([("claim", question.claim)], question, separator)
    return _rendered(load_prompt(TRANSCRIBE), blocks, question, Style.NATIVE, {"claim": question.claim})


def _instruction(question: Question) -> list[tuple[str, str]]:
    return [("instruction", question.instruction)] if question.instruction else []


def _blocks(pieces: Sequence[tuple[str, str]], question: Question, separator: Separator) -> list[str]:
    """The task, the page if there is one, and then the other pieces. No block's nonce stands in another's text."""
    clean = [(label, neutralise(text).text) for label, text in [("task", question.task), *pieces]]
    texts = [text for _, text in clean]
    page = [] if question.page is None else [_page(question.page, separator, texts)]
    task, *others = (separator.block(label, text, beside=[*texts, *page]) for label, text in clean)
    return [task, *page, *others]


def _page(page: PreparedPage, separator: Separator, beside: Sequence[str]) -> str:
    """The blocks that were prepared once for all questions, unless something beside them knows their nonces."""
    if any(nonce in text for nonce in page.nonces for text in beside):
        return page_blocks(page.url, page.text, separator, beside=beside)
    return page.blocks


def _rendered(
    prompt: Prompt, blocks: Sequence[str], question: Question, style: Style, asked: Mapping[str, str]
) -> Rendered:
    material = "\n\n".join(blocks)
    if style is Style.NATIVE:
        messages: tuple[Message, ...] = (
            {"role": "system", "content": prompt.text},
            {"role": "user", "content": _content(material, question.page)},
        )
    else:
        text = f"{prompt.text}\n\n{material}"
        messages = ({"role": "user", "content": _content(text, question.page)},)
    evidence = () if question.page is None else question.page.digests
    return Rendered(messages=messages, prompt=prompt.ref, parts={**_parts(question), **asked}, evidence=evidence)


def _content(text: str, page: PreparedPage | None) -> str | list[dict[str, Any]]:
    """A plain text for the answer alone, else pictures and then one text."""
    if page is None:
        return text
    return [*(image_part(image) for image in page.images), {"type": "text", "text": text}]


def _parts(question: Question) -> dict[str, str]:
    parts = {"task": question.task, "answer": question.answer, "instruction": question.instruction or ""}
    if question.page is not None:
        parts |= {"url": question.page.url, "page": question.page.text, "page_links": question.page.links}
    return parts

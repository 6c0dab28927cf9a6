"""Rendering of questions into model messages, for native judges and public scripts.

The order is rules, task, page, answer, instruction, claim; images come before all text. Content that many requests
share comes first, so that a provider's prompt prefix cache serves every claim and vote on a page. The rules are trusted
text; everything else is in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, Field

from answers.binding import without_product_marks
from judges.llm.client import LLMClient, LLMRequest, Message
from judges.llm.encoding import image_part
from judges.llm.json_schema import ReplyType
from judges.prompting.blocks import BlockBuilder, neutralise
from judges.prompting.page_view import PagePreparer, PreparedPage, page_blocks
from judges.prompting.prompts import Prompt, load_prompt

TRANSCRIBE: Final = "transcribe"
"""Id of the prompt that transcribes text from screenshots."""


class Style(StrEnum):
    """Distribution of rules and material over messages."""

    NATIVE = "native"
    """Rules in the system message, material in one user message."""
    COMPAT = "compat"
    """Everything in one user message, as clients of the public toolkit expect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Question to a model. ``claim`` is a claim or, for an extraction, the request."""

    task: str
    answer: str
    claim: str
    instruction: str | None = None
    page: PreparedPage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Question rendered into messages.

    ``parts`` are its texts by name, for the lexical judge. ``evidence`` are the digests of the page.
    """

    messages: tuple[Message, ...]
    prompt: str
    parts: Mapping[str, str]
    evidence: tuple[str, ...] = ()

    def request(self, model: str, schema: ReplyType, **more: Any) -> LLMRequest:
        """Return the request for a reply of class ``schema``. ``more`` are other fields of the request."""
        return LLMRequest(
            model=model,
            messages=self.messages,
            schema=schema,
            prompt=self.prompt,
            parts=self.parts,
            evidence=self.evidence,
            **more,
        )


def render_claim(question: Question, block_builder: BlockBuilder, style: Style) -> Rendered:
    """Render the question whether a claim is supported by the page, or by the answer if there is no page.

    A page with an empty answer is shown alone.
    """
    prompt = load_prompt("verify_answer" if question.page is None else "verify_page")
    question = replace(question, answer=without_product_marks(question.answer))
    answer = [("answer", question.answer)] if question.answer or question.page is None else []
    pieces = [*answer, *_instruction(question), ("claim", question.claim)]
    return _rendered(prompt, pieces, question, block_builder, style)


def render_extraction(question: Question, block_builder: BlockBuilder, style: Style) -> Rendered:
    """Render the request to extract values from the page, or from the answer if there is no page."""
    page = question.page
    question = replace(question, answer=without_product_marks(question.answer))
    prompt = load_prompt("extract_answer" if page is None else "extract_page")
    pieces = [("answer", question.answer)] if page is None else [("links", page.links)] if page.links else []
    pieces += [*_instruction(question), ("request", question.claim)]
    return _rendered(prompt, pieces, question, block_builder, style, asked="prompt")


def render_transcription(question: Question, block_builder: BlockBuilder) -> Rendered:
    """Render the request to transcribe the passages in the page's screenshots that support the claim."""
    return _rendered(load_prompt(TRANSCRIBE), [("claim", question.claim)], question, block_builder, Style.NATIVE)


def render_texts(
    prompt_id: str, texts: Sequence[tuple[str, str]], block_builder: BlockBuilder, *, page: PreparedPage | None = None
) -> Rendered:
    """Render untrusted texts as (block label, text), after the page if there is one, with the rules of a prompt."""
    prompt = load_prompt(prompt_id)
    messages = _messages(prompt, _blocks(texts, page, block_builder), page, Style.NATIVE)
    evidence = () if page is None else page.digests
    return Rendered(messages=messages, prompt=prompt.ref, parts=dict(texts), evidence=evidence)


def _instruction(question: Question) -> list[tuple[str, str]]:
    return [("instruction", question.instruction)] if question.instruction else []


def _blocks(
    pieces: Sequence[tuple[str, str]], page: PreparedPage | None, block_builder: BlockBuilder, *, page_at: int = 0
) -> list[str]:
    """Return the blocks of (label, text), with the page as number ``page_at``. No block's nonce occurs in another."""
    clean = [(label, neutralise(text)) for label, text in pieces]
    texts = [text for _, text in clean]
    shown = [] if page is None else [_page(page, block_builder, texts)]
    blocks = [block_builder.block(label, text, beside=[*texts, *shown]) for label, text in clean]
    return [*blocks[:page_at], *shown, *blocks[page_at:]]


def _page(page: PreparedPage, block_builder: BlockBuilder, beside: Sequence[str]) -> str:
    """Return the prepared blocks of a page, or new ones if another text of the prompt contains their nonces."""
    if any(nonce in text for nonce in page.nonces for text in beside):
        return page_blocks(page.url, page.shown, block_builder, beside=beside)
    return page.blocks


def _rendered(
    prompt: Prompt,
    pieces: Sequence[tuple[str, str]],
    question: Question,
    block_builder: BlockBuilder,
    style: Style,
    *,
    asked: str = "claim",
) -> Rendered:
    """Render the task, the page if there is one, and the pieces. ``asked`` is the name of ``Question.claim``."""
    page = question.page
    blocks = _blocks([("task", question.task), *pieces], page, block_builder, page_at=1)
    parts = {"task": question.task, "answer": question.answer, "instruction": question.instruction or ""}
    if page is not None:
        parts |= {"url": page.url, "page": page.text, "page_links": page.links}
    return Rendered(
        messages=_messages(prompt, blocks, page, style),
        prompt=prompt.ref,
        parts={**parts, asked: question.claim},
        evidence=() if page is None else page.digests,
    )


def _messages(prompt: Prompt, blocks: Sequence[str], page: PreparedPage | None, style: Style) -> tuple[Message, ...]:
    material = "\n\n".join(blocks)
    if style is Style.COMPAT:
        return ({"role": "user", "content": _content(f"{prompt.text}\n\n{material}", page)},)
    return ({"role": "system", "content": prompt.text}, {"role": "user", "content": _content(material, page)})


def _content(text: str, page: PreparedPage | None) -> str | list[dict[str, Any]]:
    """Return plain text without a page, else images followed by one text part."""
    if page is None:
        return text
    return [*(image_part(image) for image in page.images), {"type": "text", "text": text}]


class BinaryEvalResult(BaseModel):
    """One vote.

    The public toolkit's class of this name has only the first two fields, and replacements of its client return only
    those. ``quotes`` is therefore optional.
    """

    reasoning: str
    result: bool
    quotes: list[str] = Field(default_factory=list)


class PromptedModel:
    """Model with its client. ``params`` are sent with every request, on top of those of the model's family."""

    def __init__(
        self,
        llm: LLMClient,
        model: str,
        *,
        block_builder: BlockBuilder,
        pages: PagePreparer,
        style: Style = Style.NATIVE,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self._llm = llm
        self.model = model
        self._block_builder = block_builder
        self._pages = pages
        self.style = style
        self._params = dict(params or {})

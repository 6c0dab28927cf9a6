"""Model of an extractor or a verifier, with what its prompts are rendered from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judges.llm.client import LLMClient
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Style


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

"""Defaults of an evaluator, under the public toolkit's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Final

__all__ = ["NO_INSTRUCTION", "EvaluatorConfig"]

NO_INSTRUCTION: Final = "None"


class _AsDict:
    """Method that can be called on the class, for the defaults, and on an instance."""

    def __get__(self, instance: object | None, owner: type[EvaluatorConfig]) -> Callable[[], dict[str, Any]]:
        source = owner if instance is None else instance
        return lambda: {each.name: getattr(source, each.name) for each in fields(owner)}


@dataclass
class EvaluatorConfig:
    """Limits for pages in prompts and defaults for voting. Takes no arguments; scripts assign the fields.

    The text of a page is cut after ``max_text_tokens``, and halved at most ``max_text_shrinks`` times if the model
    rejects the request as too long. A screenshot is scaled to ``image_max_width`` pixels and split into at most
    ``image_max_parts`` parts of ``image_part_height``, each of which repeats the last ``image_part_overlap`` pixels
    of the part above it. ``as_dict()`` returns all limits and defaults as JSON values.
    """

    max_text_tokens: int = field(init=False, default=100_000)
    max_text_shrinks: int = field(init=False, default=2)
    image_max_width: int = field(init=False, default=1100)
    image_part_height: int = field(init=False, default=2000)
    image_part_overlap: int = field(init=False, default=100)
    image_max_parts: int = field(init=False, default=5)
    jpeg_quality: int = field(init=False, default=85)
    default_num_trials: int = field(init=False, default=3)
    default_majority_vote: bool = field(init=False, default=True)
    default_use_screenshot: bool = field(init=False, default=True)
    default_additional_instruction: str = field(init=False, default=NO_INSTRUCTION)
    as_dict = _AsDict()

"""Defaults of an evaluator, under the public toolkit's names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

__all__ = ["NO_INSTRUCTION", "EvaluatorConfig"]

NO_INSTRUCTION: Final = "None"


@dataclass
class EvaluatorConfig:
    """Limits for pages in prompts and defaults for voting. Takes no arguments; scripts assign the fields."""

    max_text_chars: int = field(init=False, default=400_000)
    image_max_width: int = field(init=False, default=1100)
    image_max_height: int = field(init=False, default=10_000)
    jpeg_quality: int = field(init=False, default=85)
    default_num_trials: int = field(init=False, default=3)
    default_majority_vote: bool = field(init=False, default=True)
    default_use_screenshot: bool = field(init=False, default=True)
    default_additional_instruction: str = field(init=False, default=NO_INSTRUCTION)

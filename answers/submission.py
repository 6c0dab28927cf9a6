"""What an owner sends: one agent's answers to one task. Checked values; reading them in is elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MAX_ANSWER_BYTES = 1024 * 1024
MAX_UNIQUE_URLS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One output of an agent for one task. ``name`` ends in ``.md``; ``sha256`` (hex) is its identity."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One agent's 1..n answers to one task."""

    agent: str
    task_id: str
    answers: tuple[Answer, ...]
    model: str | None = None
    run: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

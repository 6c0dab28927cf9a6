"""Inline rubrics: a task file as JSON, which compiles to a judge. Nothing in it is executed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from judges.registry import MARK, Judge
from judges.yaml_tasks.compiler import yaml_judge
from judges.yaml_tasks.document import MAX_PROBLEMS, InvalidTask, write_document

INLINE: Final = "inline"
"""Task id of answers that are verified with an inline rubric."""
_FILE: Final = f"{INLINE}.yaml"
_KEPT: Final = 64


class InvalidRubric(Exception):
    """An inline rubric that breaks a rule of the format. ``errors`` are pairs of a path in the rubric and a message."""

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        super().__init__("The rubric is not a valid task")
        self.errors = errors


def inline_judge(rubric: Mapping[str, Any]) -> Judge:
    """Return the judge of a rubric in the format of task files. Takes up to a second for a large rubric.

    Raises:
        InvalidRubric: It breaks a rule of the format.
    """
    try:
        return _compiled(write_document(dict(rubric)).encode())
    except InvalidTask as error:
        problems = [(".".join(map(str, each.path)), each.message) for each in error.problems[:MAX_PROBLEMS]]
        raise InvalidRubric(problems) from error


@lru_cache(maxsize=_KEPT)
def _compiled(source: bytes) -> Judge:
    judge: Judge = getattr(yaml_judge(source, _FILE), MARK)
    return replace(judge, sha256=hashlib.sha256(source).hexdigest())

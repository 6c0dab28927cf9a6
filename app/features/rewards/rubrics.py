"""Inline rubrics: a task file as JSON, which compiles to a judge. Nothing in it is executed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from cache.single_flight import LRUCache
from judges.registry import MARK, Judge
from judges.yaml_tasks.compiler import yaml_judge
from judges.yaml_tasks.document import MAX_BYTES, MAX_PROBLEMS, InvalidTask, document_of

INLINE: Final = "inline"
"""Task id of answers that are verified with an inline rubric."""
_FILE: Final = f"{INLINE}.yaml"
_MAX_CHARS: Final = 4_000_000
"""Maximum size of all compiled rubrics together, as JSON. Compiled, a rubric needs about 50 times its size."""


class InvalidRubric(Exception):
    """An inline rubric that breaks a rule of the format. ``errors`` are pairs of a path in the rubric and a message."""

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        super().__init__("The rubric is not a valid task")
        self.errors = errors


class RubricCompiler:
    """Compiler of inline rubrics with a cache. It compiles one rubric after another, in a thread of its own."""

    def __init__(self) -> None:
        self._judges: LRUCache[str, Judge] = LRUCache(_MAX_CHARS, keeps_newest=True)
        self._thread = asyncio.Semaphore(1)

    async def judge(self, rubric: Mapping[str, Any]) -> Judge:
        """Return the judge of a rubric in the format of task files.

        Raises:
            InvalidRubric: It breaks a rule of the format.
        """
        source = json.dumps(rubric)
        judge = self._judges.get(source)
        if judge is not None:
            return judge
        async with self._thread:
            judge = self._judges.get(source)
            if judge is None:
                judge = await asyncio.to_thread(compile_rubric, rubric, source)
                self._judges.put(source, judge, len(source))
        return judge


def compile_rubric(rubric: Mapping[str, Any], source: str) -> Judge:
    """Compile a rubric. ``source`` is its JSON text, whose SHA-256 identifies the judge.

    Takes up to a second for a large rubric.

    Raises:
        InvalidRubric: It breaks a rule of the format.
    """
    if len(source) > MAX_BYTES:
        raise InvalidRubric([("", f"the rubric has {len(source)} characters (max {MAX_BYTES}); split the task")])
    try:
        judge: Judge = getattr(yaml_judge(document_of(rubric, _FILE), _FILE), MARK)
    except InvalidTask as error:
        problems = [(".".join(map(str, each.path)), each.message) for each in error.problems[:MAX_PROBLEMS]]
        raise InvalidRubric(problems) from error
    return replace(judge, sha256=hashlib.sha256(source.encode()).hexdigest())

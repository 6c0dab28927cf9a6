"""One step of Mind2Web: a page, what was to be done on it, and the elements that could be meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Candidate(NamedTuple):
    """An element that could be meant. ``rank`` counts from 0, best first; None where nobody ranked it.

    ``box`` is ``x,y,w,h`` in page pixels, empty if unknown. A tuple, because a step has hundreds of them.
    """

    id: str
    tag: str = ""
    box: str = ""
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a task. ``number`` is its place in the task, ``position`` its place in all of the data, both from 0.

    ``history`` are the descriptions of all earlier steps of the task, as they should have been done. ``place`` says
    where the step was read, for the reader of an error.
    """

    place: str
    position: int
    task_id: str
    action_uid: str
    number: int
    website: str
    domain: str
    subdomain: str
    task: str
    history: tuple[str, ...]
    page: str
    op: str
    value: str
    positives: tuple[Candidate, ...]
    negatives: tuple[Candidate, ...]

    @property
    def sample_id(self) -> str:
        """The name by which scores and predictions files know the step."""
        return f"{self.task_id}_{self.action_uid}"

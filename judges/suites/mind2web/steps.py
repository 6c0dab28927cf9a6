"""Steps of Mind2Web: page, gold operation and candidate elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Candidate(NamedTuple):
    """Candidate element. ``rank`` starts at 0 for the best; None: not ranked.

    ``box`` is ``x,y,w,h`` in page pixels, empty if unknown. ``attributes`` is JSON text. The class is a tuple to save
    memory: a step has hundreds of candidates.
    """

    id: str
    tag: str = ""
    box: str = ""
    rank: int | None = None
    score: float | None = None
    attributes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a task. ``number`` is its index in the task, ``position`` its index in the whole data, both from 0.

    ``history`` contains the gold descriptions of all earlier steps of the task. ``place`` is the position in the
    source, for error messages.
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
        """The id of the step in scores and predictions files."""
        return f"{self.task_id}_{self.action_uid}"

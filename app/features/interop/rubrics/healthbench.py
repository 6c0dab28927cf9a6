"""Lists of criteria with points, in the form of HealthBench: negative points are for what an answer must not do."""

from __future__ import annotations

from collections.abc import Iterator

from app.features.interop.rubrics.draft import Draft, Nodes
from app.features.interop.rubrics.sources import Source
from judges.yaml_tasks.model import Leaf


def convert(source: Source) -> Iterator[Draft]:
    """Convert one row: ``prompt`` (text or messages) and ``rubrics`` (``criterion``, ``points``, ``tags``).

    A criterion with negative points becomes a leaf that passes if the answer does not meet it, with the weight
    ``|points|``. If P and N are the sums of positive and of negative points and s is the original score before it is
    clipped to 0..1, the score of the task is (P s + N) / (P + N): a linear function of s.

    Raises:
        Malformed: the row does not have this form.
    """
    draft = Draft(name=source.text("prompt_id", "id", default=""), description=_question(source), source=source)
    nodes: Nodes = {}
    sums = {False: 0.0, True: 0.0}
    for each in source.some("rubrics", "criteria"):
        criterion, points = each.text("criterion"), each.number("points")
        if points == 0:
            draft.report(each, "points: 0", "it has no effect on the score", left_out=True)
            continue
        if draft.claim(nodes, each, criterion, weight=abs(points), negated=points < 0):
            sums[points < 0] += abs(points)
        draft.report_unread(each)
    positive, negative = sums[False], sums[True]
    if negative:
        why = (
            "the absence of the fault is worth |points|: "
            f"score = ({positive:g} s + {negative:g}) / {positive + negative:g}, s = original score before clipping, "
            f"so s = 0 is {negative / (positive + negative):.3g} here; an empty answer scores 0"
        )
        draft.report(source, f"negative points ({negative:g} in total)", why)
        nodes = {"answer_given": Leaf(check="given(answer)", description="There is an answer", critical=True), **nodes}
    draft.nodes = nodes
    draft.report_unread(source)
    yield draft


def _question(source: Source) -> str:
    prompt = source.get("prompt", "question")
    if isinstance(prompt.value, str):
        return prompt.value
    messages = [(each.text("role", default="user"), each.text("content")) for each in source.items("prompt")]
    if len(messages) == 1:
        return messages[0][1]
    return "\n\n".join(f"{role}: {content}" for role, content in messages)

"""``assay meta-eval sample`` and ``correct``: labels on random leaves of an agent, and its corrected score."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.console.connection import URL, JsonOption, ResultsOption, UrlOption, connect
from app.console.errors import WrongUsage
from app.console.streams import counted, print_json, stderr_console, stdout_console
from app.features.meta_eval.cli import PartialOption, PartialSupport

if TYPE_CHECKING:
    from judges.analysis.corrected_score import CorrectedScore, LabelledAnswer
    from judges.analysis.meta_eval.items import Item


SEED = 20_250_101


def sample(
    labels: Annotated[Path, typer.Argument(metavar="LABELS.jsonl", help="Label file to write.")],
    agent: Annotated[str, typer.Option(help="Agent whose leaves are drawn.")],
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="Number of leaves.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = SEED,
    folder: ResultsOption = None,
    url: UrlOption = URL,
) -> None:
    """Draw random leaves of an agent for people to label. All have `human` set to `unclear`.

    Look at the claim and the pages of each line, and set `human` to `passed`, `failed` or `partial`.
    """
    from judges.analysis.corrected_score import judged_by_model
    from judges.analysis.labels import HumanDecision, label_from_leaf, label_line
    from judges.analysis.overrides import judged_leaves

    drawn: list[tuple[float, str]] = []
    generator, leaves = random.Random(seed), 0  # noqa: S311 - not a secret
    for result, answer in _from_folder(folder, agent) if folder is not None else _from_server(agent, url, texts=True):
        for key, leaf in judged_leaves(result).items():
            if not judged_by_model(leaf):
                continue
            leaves += 1
            rank = generator.random()
            if len(drawn) == number and rank > -drawn[0][0]:
                continue
            label = label_from_leaf(
                result, leaf.data, key=key, human=HumanDecision.UNCLEAR, reviewer="", reason="",
                at=datetime.now(UTC), answer=answer,
            )  # fmt: skip
            heapq.heappush(drawn, (-rank, label_line(label)))
            if len(drawn) > number:
                heapq.heappop(drawn)
    if not drawn:
        raise WrongUsage(f"Agent {agent!r} has no leaf that a model judged.")
    try:
        with labels.open("x", encoding="utf-8") as file:
            file.writelines(line for _, line in sorted(drawn, reverse=True))
    except OSError as error:
        raise WrongUsage(f"Cannot write {labels}: {error.strerror}") from error
    stderr_console().print_line(f"{labels}: {len(drawn)} of {leaves} judged leaves, drawn at random")


def correct(
    labels: Annotated[
        Path, typer.Argument(metavar="LABELS.jsonl", help="Labels on a random sample of the agent's leaves.")
    ],
    agent: Annotated[str, typer.Option(help="Agent whose score is corrected.")],
    folder: ResultsOption = None,
    url: UrlOption = URL,
    partial: PartialOption = PartialSupport.FAILED,
    as_json: JsonOption = False,
) -> None:
    """Correct an agent's score for the errors of its judge. This needs labels on a sample of its leaves.

    The labelled leaves must be a random sample. Labels on the most doubtful leaves give a wrong correction.
    """
    items = _items(labels, partial)
    results = _from_folder(folder, agent) if folder is not None else _from_server(agent, url)
    answers, used = _labelled((result for result, _ in results), items)
    from judges.analysis.corrected_score import corrected_score

    if not answers:
        raise WrongUsage(f"Agent {agent!r} has no judged answer.")
    try:
        found = corrected_score(answers)
    except ValueError as error:
        raise WrongUsage(
            f"{labels}: none of {counted(len(items), 'labelled claim')} is on a leaf that a model judged for {agent!r}",
            hint="Labels need result_id and leaf, as in the export of the review page, of the newest results.",
        ) from error
    document = _as_json(agent, found, partial=partial, unmatched=len(items) - used)
    if as_json:
        print_json(document)
    else:
        _print(document)


def _items(path: Path, partial: str) -> Sequence[Item]:
    """Return the items with a decision that name a leaf.

    Raises:
        WrongUsage: the file cannot be read or has invalid lines.
    """
    from judges.analysis.labels import LabelsUnreadable, read_labels
    from judges.analysis.meta_eval.items import PartialRule, items_of

    try:
        file = read_labels(path)
    except LabelsUnreadable as error:
        raise WrongUsage(str(error), hint="\n".join(error.problems) or None) from error
    return [item for item in items_of(file.labels, PartialRule.of(partial)) if item.left_out is None]


def _from_folder(out: Path, agent: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the newest result of each answer, with the text of the answer."""
    from app.console.summaries import outcomes_in_folder
    from judges.result_files import AnswerFolder

    for outcome in outcomes_in_folder(out / agent):
        if outcome.result is not None:
            folder = AnswerFolder(out=out, agent=agent, task_id=outcome.task_id, answer_name=outcome.answer_name)
            text = folder.answer_copy.read_text("utf-8", "replace") if folder.answer_copy.is_file() else ""
            yield {"task_id": outcome.task_id, "answer_name": outcome.answer_name, **outcome.result}, text


def _from_server(agent: str, url: str, *, texts: bool = False) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the newest result of each answer, with the text of the answer if ``texts``."""
    seen: set[tuple[str, str]] = set()
    with connect(url) as client:
        for result in client.list_results(agent=agent):
            answer = str(result["task_id"]), str(result["answer_name"])
            if answer not in seen:
                seen.add(answer)
                yield result, client.get_result_answer(str(result["id"])) if texts else ""


def _labelled(results: Iterable[Mapping[str, Any]], items: Iterable[Item]) -> tuple[list[LabelledAnswer], int]:
    """Return the answers with the labels on their leaves, and how many labels are used.

    A label belongs to a result by its id, or else by the digest of the answer and the task.
    """
    from judges.analysis.corrected_score import LabelledAnswer
    from judges.analysis.overrides import judged_leaves, judged_tree

    by_result: dict[object, dict[str, bool]] = {}
    for item in items:
        label = item.label
        if label.leaf is not None and item.human is not None:
            identity = label.result_id or (label.task_id, label.answer_sha256)
            by_result.setdefault(identity, {})[label.leaf] = item.human
    answers, used = [], 0
    for result in results:
        root = judged_tree(result)
        if root is None:
            continue
        answer = (result["task_id"], result.get("answer_sha256"))
        known = by_result.get(result.get("id")) or by_result.get(answer) or {}
        labels = {key: holds for key, holds in known.items() if key in judged_leaves(result)}
        used += len(labels)
        answers.append(
            LabelledAnswer(task_id=result["task_id"], run=str(result.get("answer_name")), root=root, labels=labels)
        )
    return answers, used


def _as_json(agent: str, found: CorrectedScore, *, partial: str, unmatched: int) -> dict[str, Any]:
    from judges.analysis.corrected_score import corrected_json
    from judges.analysis.meta_eval.items import PartialRule

    rule = PartialRule.of(partial).value
    return {"agent": agent, "rule": rule, **corrected_json(found), "unmatched_labels": unmatched}


def _print(document: Mapping[str, Any]) -> None:
    from app.console.tables import interval_text, plain_table

    console = stdout_console()
    table = plain_table("figure", "value", "95 % interval", "method")
    for name, key in (("score", "score"), ("leaves that hold", "leaves")):
        for kind in ("raw", "corrected"):
            figure = document[key][kind]
            low, high = figure.get("low", figure.get("value")), figure.get("high", figure.get("value"))
            value = f"{low:.3f}" if low == high else f"{low:.3f} to {high:.3f}"
            interval = figure["interval"]
            table.add_row(
                f"{name}, {kind}", value, interval_text(interval), "-" if interval is None else interval["method"]
            )
    console.print(table)
    errors, leaves = document["judge_errors"], document["leaves"]
    lines = [
        f"{leaves['labelled']} of {leaves['judged']} judged leaves are labelled: the judge passed {errors['passed']}, "
        f"{errors['wrongly_passed']} of them wrongly, and failed {errors['failed']}, {errors['wrongly_failed']} "
        "wrongly",
        f"labels that are not on leaves of these results: {document['unmatched_labels']}",
        *(f"warning: {warning}" for warning in document["warnings"]),
        "The labelled leaves must be a random sample of the judged leaves.",
    ]
    for line in lines:
        console.print_line(line)

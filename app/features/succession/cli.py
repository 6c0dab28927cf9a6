"""``assay judges succession``: replay stored verification requests to a new judge, and compare it with the old one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from app.console import event_loop
from app.console.connection import URL, JsonOption, ResultsOption, UrlOption, connect
from app.console.errors import Exit, WrongUsage, require_folder
from app.console.judging_options import (
    EffortOption,
    MaxOutputOption,
    ReplayBudgetOption,
    TemperatureOption,
    judging_settings,
    quiet_logging,
)
from app.console.streams import counted, print_json, print_line, stderr_console, stdout_console

if TYPE_CHECKING:
    from app.settings import Settings
    from judges.analysis.forecasts.forecast import Forecast
    from judges.analysis.meta_eval.ask import JudgedItem
    from judges.analysis.overrides import JudgedNode
    from judges.analysis.succession import Replayed, ScoredTwice, StoredRequest

VOTES: Final = 3
MAX_SHOWN: Final = 20
"""Maximum number of printed flips. ``--json`` has all of them."""
MARGIN: Final = 0.03
"""``judges.analysis.succession.MARGIN``, repeated because importing it takes longer than printing the help."""


@dataclass(slots=True)
class _Stored:
    """Requests of the old judge. ``answers`` are those with their trees; none for label sets."""

    requests: list[StoredRequest] = field(default_factory=list)
    answers: list[tuple[str, str, str, JudgedNode]] = field(default_factory=list)
    other_verdicts: Counter[str] = field(default_factory=Counter)


def succession(
    old: Annotated[str, typer.Argument(metavar="OLD", help="Judge whose verdicts are stored.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its successor, as provider/model.")],
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="NAME", help="Agent whose results are replayed; repeatable (default: all)."),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels", metavar="FILE", help="Label file with verdicts of OLD, instead of results; repeatable."
        ),
    ] = None,
    folder: ResultsOption = None,
    url: UrlOption = URL,
    margin: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="Largest change of a score that may be ignored.")
    ] = MARGIN,
    votes: Annotated[int, typer.Option(min=1, max=15, help="Votes per claim.")] = VOTES,
    reasoning_effort: EffortOption = None,
    temperature: TemperatureOption = None,
    max_output_tokens: MaxOutputOption = None,
    budget: ReplayBudgetOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate requests, tokens and cost only.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Replay stored verification requests of the judge OLD to NEW. Show flips, kappa, changed scores and ranks.

    The exit code is 0 if scores of the judges may be mixed, 100 if not or only with an offset, and 3 if NEW gave no
    verdict on some claims. No page is captured.
    """
    if labels and (agent or folder is not None):
        raise WrongUsage("--labels cannot be used with --agent or --results: use results or labels")
    if votes % 2 == 0:
        raise WrongUsage(f"--votes {votes}: use an odd number")
    settings = judging_settings(
        model=new,
        reasoning_effort=reasoning_effort,
        temperature=temperature,
        max_output_tokens=max_output_tokens,
        budget_usd=budget,
    )
    quiet_logging(settings)
    stored = _of_labels(labels, old) if labels else _of_results(old, agent or (), folder, url)
    if not stored.requests:
        seen = ", ".join(f"{name} ({count})" for name, count in stored.other_verdicts.most_common(5))
        raise WrongUsage(f"No stored verdict of the judge {old!r}.", hint=f"Judges found: {seen}" if seen else None)
    with event_loop.resumable("Received replies are saved; run the same command to resume."):
        if dry_run:
            _print_forecast(event_loop.run(_forecast(settings, new, stored.requests, votes)), stored, as_json=as_json)
            return
        replayed = event_loop.run(_replay(settings, new, stored.requests, votes))
    document = _report(old, new, stored, replayed, margin=margin, votes=votes, ranked=not labels)
    if as_json:
        print_json(document)
    else:
        _print(document)
    if document["not_judged"]:
        raise typer.Exit(Exit.INCOMPLETE)
    if document["verdict"] != "may_be_mixed":
        raise typer.Exit(Exit.GATE_FAILED)


def _of_results(old: str, agents: Sequence[str], folder: Path | None, url: str) -> _Stored:
    """Return the requests of the newest result of each answer that has verdicts of ``old``."""
    from judges.analysis.corrected_score import judged_by_model
    from judges.analysis.overrides import judged_leaves, judged_tree
    from judges.analysis.succession import is_judge, requests_of

    stored, seen = _Stored(), set()
    found = _from_server(agents, url, old) if folder is None else _from_folder(folder, agents)
    for result, answer in found:
        group, task_id, name = str(result["agent_name"]), str(result["task_id"]), str(result["answer_name"])
        if (group, task_id, name) in seen:
            continue
        models = [leaf.data.get("model") for leaf in judged_leaves(result).values() if judged_by_model(leaf)]
        stored.other_verdicts.update(str(model) for model in models if not is_judge(model, old))
        requests = list(requests_of(result, answer, old=old, group=group))
        root = judged_tree(result)
        if root is None or not requests:
            continue
        seen.add((group, task_id, name))
        stored.requests += requests
        stored.answers.append((group, task_id, name, root))
    return stored


def _from_folder(out: Path, agents: Sequence[str]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the newest result of each answer, with the text of the answer."""
    from app.console.summaries import outcomes_in_folder
    from judges.result_files import AnswerFolder

    require_folder("--results", out)
    for agent in agents or sorted(path.name for path in out.iterdir() if path.is_dir()):
        for one in outcomes_in_folder(out / agent):
            if one.result is None:
                continue
            path = AnswerFolder(out=out, agent=agent, task_id=one.task_id, answer_name=one.answer_name).answer_copy
            text = path.read_text("utf-8", "replace") if path.is_file() else ""
            names = {"agent_name": agent, "task_id": one.task_id, "answer_name": one.answer_name}
            yield {**one.result, **names}, text


def _from_server(agents: Sequence[str], url: str, old: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield all results, newest first, with the text of the answer if ``old`` judged it."""
    from judges.analysis.succession import requests_of

    with connect(url) as client:
        for agent in agents or (None,):
            for result in client.list_results(agent=agent):
                is_asked = any(True for _ in requests_of(result, "", old=old, group=""))
                yield result, client.get_result_answer(str(result["id"])) if is_asked else ""


def _of_labels(paths: Sequence[Path], old: str) -> _Stored:
    """Return the claims of label files on which they record a verdict of ``old``."""
    from judges.analysis.labels import LabelsUnreadable, read_labels
    from judges.analysis.meta_eval.items import PartialRule, items_of, judged_as
    from judges.analysis.succession import StoredRequest, is_judge

    stored = _Stored()
    for path in paths:
        try:
            items = items_of(read_labels(path).labels)
        except LabelsUnreadable as error:
            raise WrongUsage(str(error), hint="\n".join(error.problems) or None) from error
        for number, item in enumerate(items, start=1):
            of_old = [one for one in item.recorded if is_judge(one.model, old)]
            stored.other_verdicts.update(str(one.model) for one in item.recorded if one not in of_old)
            verdict = judged_as(of_old[0], PartialRule.FAILED) if len(of_old) == 1 else None
            if item.left_out is None and verdict is not None:
                stored.requests.append(
                    StoredRequest(
                        group=path.name.removesuffix(".jsonl"),
                        task_id=item.label.task_id or f"claim {number}",
                        answer_name=item.label.answer_name or "",
                        result_id=item.label.result_id or "",
                        leaf=item.label.leaf or item.label.row or f"claim {number}",
                        item=item,
                        old=verdict,
                        reasoning=of_old[0].reasoning,
                        prompt=of_old[0].prompt,
                    )
                )
    return stored


async def _replay(settings: Settings, new: str, requests: Sequence[StoredRequest], votes: int) -> list[Replayed]:
    from rich.markup import escape
    from rich.progress import Progress

    from app.console.runtime import open_command_runtime
    from app.engine.label_judging import LabelJudge
    from judges.analysis.succession import Replayed

    async with open_command_runtime(settings, shared=_has_stored_pages(requests)) as runtime:
        judge = LabelJudge(runtime, new, votes=votes)
        console = stderr_console()
        with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
            bar = progress.add_task(escape(new), total=len(requests))

            def advance(_: JudgedItem) -> None:
                progress.advance(bar)

            asked = [one async for one in judge.ask([request.item for request in requests], advance)]
    return [Replayed(request=request, asked=one) for request, one in zip(requests, asked, strict=True)]


async def _forecast(settings: Settings, new: str, requests: Sequence[StoredRequest], votes: int) -> Forecast:
    from app.console.runtime import open_command_runtime
    from app.engine.label_judging import LabelJudge

    async with open_command_runtime(settings, shared=_has_stored_pages(requests)) as runtime:
        judge = LabelJudge(runtime, new, votes=votes)
        await judge.simulate([request.item for request in requests])
        return judge.forecast()


def _has_stored_pages(requests: Sequence[StoredRequest]) -> bool:
    """Return whether a page is in the database of the service, not in the labels."""
    return any(page.page_id and page.text is None for one in requests for page in one.item.label.pages)


def _report(
    old: str, new: str, stored: _Stored, replayed: Sequence[Replayed], *, margin: float, votes: int, ranked: bool
) -> dict[str, Any]:
    from dataclasses import asdict

    from judges.analysis.succession import KAPPA_TO_CORRECT, KAPPA_TO_MIX
    from judges.analysis.succession import succession as compare
    from rubrics.verdict import Usage

    found = compare(replayed, _scores(stored, replayed), margin=margin, ranked=ranked)
    counts = found.confusion
    judged = [one for one in replayed if one.new is not None]
    return {
        "old": old,
        "new": new,
        "votes": votes,
        "verdict": found.mixing.value,
        "reasons": list(found.reasons),
        "offset": asdict(found.offset),
        "rule": {"margin": margin, "kappa_to_mix": KAPPA_TO_MIX, "kappa_to_mix_with_offset": KAPPA_TO_CORRECT},
        "claims": len(replayed),
        "verdicts": {
            "both_passed": counts.true_positive,
            "only_new_passed": counts.false_positive,
            "only_old_passed": counts.false_negative,
            "both_failed": counts.true_negative,
        },
        "agreement": asdict(found.raw),
        "kappa": asdict(found.kappa),
        "groups": [
            {
                "name": one.name,
                "tasks": one.change.tasks,
                "answers": one.old.answers,
                "leaves": one.leaves,
                "flips": one.flips,
                "old": _score(one.old.score),
                "new": _score(one.new.score),
                "change": asdict(one.change),
                "old_rank": list(one.old_rank) if ranked else None,
                "new_rank": list(one.new_rank) if ranked else None,
            }
            for one in found.groups
        ],
        "pairs": [asdict(one) | {"reversed": one.reversed} for one in found.pairs],
        "people": None if ranked else _people(judged),
        "flips": [_leaf(one) for one in judged if one.new != one.request.old],
        "not_judged": [
            _leaf(one) | {"reason": one.asked.verdict.reason or "no_vote"} for one in replayed if one.new is None
        ],
        "other_verdicts": dict(stored.other_verdicts),
        "other_prompt": sum(
            one.request.prompt is not None and one.request.prompt != one.asked.verdict.prompt for one in judged
        ),
        "usage": asdict(sum((one.asked.verdict.usage for one in replayed), Usage())),
    }


def _scores(stored: _Stored, replayed: Sequence[Replayed]) -> list[ScoredTwice]:
    """Return the score of each answer, or of each labelled claim, under both judges."""
    from judges.analysis.succession import claim_scored_twice, scored_twice

    if not stored.answers:
        return [claim_scored_twice(one) for one in replayed]
    by_answer: dict[tuple[str, str, str], list[Replayed]] = {}
    for one in replayed:
        by_answer.setdefault((one.request.group, one.request.task_id, one.request.answer_name), []).append(one)
    return [
        scored_twice(root, by_answer[group, task_id, name], group=group, task_id=task_id, run=name)
        for group, task_id, name, root in stored.answers
    ]


def _score(figure: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return {"low": figure.low, "high": figure.high, "interval": asdict(figure.interval)}


def _people(judged: Sequence[Replayed]) -> dict[str, Any]:
    """Return the agreement of each judge with the people on the same claims."""
    from dataclasses import asdict

    from judges.analysis.statistics.agreement import agreement, confusion_of

    humans = [bool(one.request.item.human) for one in judged]
    sides = {"old": [one.request.old for one in judged], "new": [bool(one.new) for one in judged]}
    return {name: asdict(agreement(confusion_of(zip(side, humans, strict=True)))) for name, side in sides.items()}


def _leaf(one: Replayed) -> dict[str, Any]:
    request, verdict = one.request, one.asked.verdict
    return {
        "group": request.group,
        "task_id": request.task_id,
        "answer_name": request.answer_name,
        "result_id": request.result_id,
        "leaf": request.leaf,
        "claim": request.item.label.claim,
        "old": "passed" if request.old else "failed",
        "new": verdict.outcome.value,
        "old_reasoning": request.reasoning,
        "new_reasoning": verdict.reasoning,
    }


_VERDICTS: Final = {
    "may_be_mixed": "Scores of the two judges may be mixed.",
    "may_be_mixed_with_offset": "Scores may be mixed if the offset is subtracted from those of the new judge.",
    "must_not_be_mixed": "Scores of the two judges must not be mixed.",
}


def _print(document: Mapping[str, Any]) -> None:
    from rich.markup import escape

    from app.console.tables import bounds_text, interval_text, plain_table

    console = stdout_console()

    verdicts = document["verdicts"]
    print_line(
        f"{document['old']} -> {document['new']}: {counted(document['claims'], 'claim')}, "
        f"{counted(len(document['flips']), 'flip')}"
    )
    print_line(
        f"both passed {verdicts['both_passed']}, both failed {verdicts['both_failed']}, only old passed "
        f"{verdicts['only_old_passed']}, only new passed {verdicts['only_new_passed']}"
    )
    print_line(f"kappa of the judges: {_estimate(document['kappa'])}; agreement: {_estimate(document['agreement'])}")
    table = plain_table("agent or set", "tasks", "flips", "old", "new", "change", "95 % interval", "rank")
    for one in document["groups"]:
        ranks = "-" if one["old_rank"] is None else f"{_rank(one['old_rank'])} -> {_rank(one['new_rank'])}"
        table.add_row(
            escape(one["name"]), str(one["tasks"]), f"{one['flips']} of {one['leaves']}", bounds_text(one["old"]),
            bounds_text(one["new"]), bounds_text(one["change"], sign="+"),
            interval_text(one["change"]["interval"], sign="+"), ranks,
        )  # fmt: skip
    console.print(table)
    for name, one in (document["people"] or {}).items():
        print_line(f"{name} judge and people: kappa {_estimate(one['kappa'])}, agreement {_estimate(one['raw'])}")
    for flip in document["flips"][:MAX_SHOWN]:
        print_line(
            f"{flip['old']} -> {flip['new']}: {flip['claim']}  [{flip['group']} {flip['task_id']} {flip['leaf']}]"
        )
        print_line(f"    old: {flip['old_reasoning'] or '-'}")
        print_line(f"    new: {flip['new_reasoning'] or '-'}")
    if len(document["flips"]) > MAX_SHOWN:
        print_line(f"and {len(document['flips']) - MAX_SHOWN} more flips: use --json to list all")
    for one in document["not_judged"][:MAX_SHOWN]:
        print_line(f"not judged ({one['reason']}): {one['claim']}  {one['new_reasoning']}")
    if document["other_prompt"]:
        print_line(f"claims judged with another prompt, so that the prompt changes, too: {document['other_prompt']}")
    others = ", ".join(f"{name} ({count})" for name, count in document["other_verdicts"].items())
    if others:
        print_line(f"verdicts of other judges, not replayed: {others}")
    print_line(_VERDICTS[document["verdict"]])
    if document["verdict"] == "may_be_mixed_with_offset":
        offset = document["offset"]
        print_line(f"offset: {bounds_text(offset, sign='+')}, {interval_text(offset['interval'], sign='+')}")
    for reason in document["reasons"]:
        print_line(f"  {reason}")


def _estimate(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return f"- ({estimate['reason']})"
    interval = "" if estimate["low"] is None else f" [{estimate['low']:.2f}, {estimate['high']:.2f}]"
    return f"{estimate['value']:.2f}{interval}"


def _rank(rank: Sequence[int]) -> str:
    return str(rank[0]) if rank[0] == rank[1] else f"{rank[0]}-{rank[1]}"


def _print_forecast(forecast: Forecast, stored: _Stored, *, as_json: bool) -> None:
    document = {"claims": len(stored.requests), **forecast.as_json()}
    if as_json:
        print_json(document)
        return
    figures = [
        f"{title} {document[name]['expected']:,.{places}f} ({document[name]['low']:,.{places}f} to "
        f"{document[name]['high']:,.{places}f})" if document[name] is not None else f"{title} unknown"
        for name, title, places in (
            ("calls", "requests", 0), ("input_tokens", "tokens in", 0), ("output_tokens", "tokens out", 0),
            ("usd", "USD", 4),
        )
    ]  # fmt: skip
    print_line(f"{counted(document['claims'], 'claim')}: " + ", ".join(figures))

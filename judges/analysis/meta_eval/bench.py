"""Reports of meta-evaluation: of one judge, and the judge bench, a table of judges on label sets. Pure.

The bench report is JSON: ``sets`` summarizes the label sets and ``rows`` has one entry per set and judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from judges.analysis.meta_eval.items import Exclusion, Item, PartialRule
from judges.analysis.meta_eval.judge_agreement import ComparedItem, JudgeTally
from judges.analysis.statistics.agreement import Agreement, agreement, confusion_of
from judges.llm.pricing import Price

REPORT_VERSION: Final = 1
FIGURES: Final = ("raw", "kappa", "ac1", "tpr", "tnr")


class SetTally:
    """Running summary of the labels of one set: how many there are, which are usable, and what they cover."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._left_out: Counter[Exclusion | None] = Counter()
        self._reviewers: set[str] = set()
        self._labels = self._several = self._unanimous = 0

    @property
    def usable(self) -> int:
        return self._left_out[None]

    def add(self, item: Item) -> None:
        self._labels += item.label_count
        self._left_out[item.left_out] += 1
        self._reviewers.update(label.reviewer for label in item.labels if label.reviewer)
        if len(item.labels) > 1 and item.left_out is not Exclusion.BY_CODE:
            self._several += 1
            self._unanimous += item.unanimous

    def as_json(self, sha256: str) -> dict[str, Any]:
        return {
            "name": self.name,
            "sha256": sha256,
            "labels": self._labels,
            "items": self._left_out.total(),
            "usable": self.usable,
            "left_out": {reason.value: self._left_out[reason] for reason in Exclusion},
            "reviewers": sorted(self._reviewers),
            "labelled_by_several": {"items": self._several, "unanimous": self._unanimous},
        }


def report_json(labels: Mapping[str, Any], judges: Sequence[JudgeTally], *, rule: PartialRule) -> dict[str, Any]:
    """Return the report of one set. ``labels`` is the output of ``SetTally.as_json``; ``judges`` in display order."""
    return {
        "report_version": REPORT_VERSION,
        "rule": rule.in_reports,
        "labels": dict(labels),
        "judges": [_measured(judge) for judge in judges],
    }


def agreement_json(found: Agreement) -> dict[str, Any]:
    """Return the confusion matrix and every figure with its interval."""
    figures = {name: asdict(getattr(found, name)) for name in FIGURES}
    return {"n": found.confusion.n, "confusion": asdict(found.confusion), **figures}


def _measured(one: JudgeTally) -> dict[str, Any]:
    by_task = {task: agreement(confusion_of(one.by_task[task])) for task in sorted(one.by_task)}
    return {
        **_judge(one),
        "by_task": [{"task_id": task or None, **agreement_json(found)} for task, found in by_task.items()],
        "not_judged": [_origin(each.item) | {"reason": each.reason, "detail": each.detail} for each in one.unjudged],
        "usage": asdict(one.usage),
        "disagreements": [_disagreement(disagreement) for disagreement in one.disagreements],
    }


def _judge(one: JudgeTally) -> dict[str, Any]:
    """Return the part about a judge that both reports have."""
    return {
        "model": one.model,
        "run": one.run or None,
        "verdicts": "asked" if one.asked else "recorded",
        "votes": one.votes,
        "prompts": sorted(one.prompts),
        **agreement_json(one.agreement),
        "without_model": one.without_model,
    }


def _origin(item: Item) -> dict[str, Any]:
    """Return the claim of an item and its origin."""
    label = item.label
    return {
        "claim": label.claim,
        "sources": None if label.sources is None else list(label.sources),
        "task_id": label.task_id,
        "agent": label.agent,
        "answer_name": label.answer_name,
        "result_id": label.result_id,
        "leaf": label.leaf,
    }


def _disagreement(one: ComparedItem) -> dict[str, Any]:
    reasons = [
        {"reviewer": label.reviewer, "human": label.human.value, "reason": label.reason} for label in one.item.labels
    ]
    return {
        **_origin(one.item),
        "human": "passed" if one.human else "failed",
        "judge": "passed" if one.judge else "failed",
        "judge_reasoning": one.reasoning,
        "people": reasons,
    }


BENCH_VERSION: Final = 1
MEASURED, RECORDED, PRICE_LIST = "measured", "recorded", "price list"
"""Where the price of a row comes from."""


def bench_report(
    sets: Sequence[Mapping[str, Any]],
    rows: Iterable[Mapping[str, Any]],
    *,
    id: str,
    at: datetime,
    tool_version: str,
    rule: PartialRule,
    sample: int | None,
) -> dict[str, Any]:
    """Return the bench report. ``sets`` are outputs of ``SetTally.as_json``, ``rows`` of ``bench_row``.

    ``sample`` is the maximum number of claims per set, None for all.
    """
    return {
        "bench_version": BENCH_VERSION,
        "id": id,
        "created_at": at.isoformat(),
        "tool_version": tool_version,
        "rule": rule.in_reports,
        "sample": sample,
        "sets": list(sets),
        "rows": list(rows),
    }


def bench_row(name: str, one: JudgeTally, price_of: Callable[[str], Price | None]) -> dict[str, Any]:
    """Return the row of a judge on the set ``name``. ``price_of`` returns the list price of a model."""
    return {
        "set": name,
        **_judge(one),
        "items": one.items,
        "unreadable": _share(one.unreadable, one.items),
        "not_judged": {**_share(one.not_judged, one.items), "by_reason": dict(one.unjudged_by_reason)},
        "partial": one.partial,
        "contradicting": one.contradicting,
        "quotes_found": _share(one.quotes_found, one.quotes),
        "per_claim": _per_claim(one, price_of),
        "usage": None
        if not one.asked
        else {"calls": one.usage.calls, "cached_calls": one.usage.cached_calls, "usd": one.usage.usd},
    }


def _share(count: int, of: int) -> dict[str, Any]:
    return {"count": count, "of": of, "share": count / of if of else None}


def _per_claim(one: JudgeTally, price_of: Callable[[str], Price | None]) -> dict[str, Any]:
    """Return price, tokens and seconds of a claim, and where the price comes from."""
    means = {name: mean.value for name, mean in one.costs.items()}
    usd, source = means["usd"], (MEASURED if one.asked else RECORDED)
    read, written = means["input_tokens"], means["output_tokens"]
    if usd is None and read is not None and written is not None:
        price, source = price_of(one.model), PRICE_LIST
        usd = None if price is None else price.usd(input_tokens=read, output_tokens=written)
    n = max(mean.n for mean in one.costs.values())
    return {**means, "usd": usd, "usd_source": None if usd is None else source, "n": n}


def judge_name(row: Mapping[str, Any]) -> str:
    """Return the name of the judge of a row, as tables show it."""
    details = [row["run"]] if row["run"] is not None else []
    details += ["recorded"] if row["verdicts"] == "recorded" else []
    return f"{row['model']} ({'; '.join(details)})" if details else str(row["model"])


NOTHING: Final = "-"
"""Cell without a value."""
COLUMNS: Final = (
    "set",
    "judge",
    "n",
    "agreement",
    "kappa",
    "AC1",
    "TPR",
    "TNR",
    "unreadable",
    "not judged",
    "quotes found",
    "USD per claim",
    "tokens per claim",
    "s per claim",
)


def table_cells(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a row for people, in the order of ``COLUMNS``. Shares are in percent."""
    costs = row["per_claim"]
    tokens = [costs[name] for name in ("input_tokens", "output_tokens")]
    return [
        str(row["set"]),
        judge_name(row),
        str(row["n"]),
        *(_figure(row[name]) for name in FIGURES),
        *(_percent(row[name]["share"]) for name in ("unreadable", "not_judged", "quotes_found")),
        _usd(costs),
        NOTHING if None in tokens else f"{sum(tokens):,.0f}",
        NOTHING if costs["seconds"] is None else f"{costs['seconds']:.1f}",
    ]


CSV_COLUMNS: Final = (
    "set", "model", "run", "verdicts", "votes", "n", "items",
    *(f"{name}{end}" for name in FIGURES for end in ("", "_low", "_high")),
    "unreadable", "not_judged", "partial", "contradicting", "quotes_found", "quotes",
    "usd_per_claim", "usd_source", "input_tokens_per_claim", "output_tokens_per_claim", "seconds_per_claim",
)  # fmt: skip


def csv_cells(row: Mapping[str, Any]) -> list[Any]:
    """Return the values of a row in the order of ``CSV_COLUMNS``."""
    costs = row["per_claim"]
    return [
        *(row[name] for name in ("set", "model", "run", "verdicts", "votes", "n", "items")),
        *(row[name][end] for name in FIGURES for end in ("value", "low", "high")),
        row["unreadable"]["count"],
        row["not_judged"]["count"],
        row["partial"],
        row["contradicting"],
        row["quotes_found"]["count"],
        row["quotes_found"]["of"],
        *(costs[name] for name in ("usd", "usd_source", "input_tokens", "output_tokens", "seconds")),
    ]


def bench_markdown(report: Mapping[str, Any]) -> str:
    lines = [
        f"# Judge bench, {report['created_at'][:10]}",
        "",
        f"Labels of partial support count by the rule `{report['rule']}`. Figures have 95 % intervals.",
        "",
    ]
    for one in report["sets"]:
        left_out = ", ".join(f"{count} {reason}" for reason, count in one["left_out"].items() if count)
        lines.append(
            f"- **{_escaped(one['name'])}**: {one['usable']} of {one['items']} claims usable"
            f"{f' ({left_out})' if left_out else ''}; SHA-256 `{one['sha256']}`"
        )
    lines += ["", _line(COLUMNS), _line("-" * 3 for _ in COLUMNS)]
    lines += [_line(map(_escaped, table_cells(row))) for row in report["rows"]]
    notes = bench_notes(report)
    lines += ["", *(f"- {_escaped(note)}" for note in notes)] if notes else []
    return "\n".join(lines) + "\n"


def bench_notes(report: Mapping[str, Any]) -> list[str]:
    """Return why figures have no value, and how many verdicts are left out, one note per row of the report."""
    notes = []
    for row in report["rows"]:
        reasons: dict[str, list[str]] = {}
        for name, title in zip(FIGURES, COLUMNS[3:8], strict=True):
            if row[name]["value"] is None:
                reasons.setdefault(row[name]["reason"], []).append(title)
        parts = [f"no {', '.join(titles)}, because {reason}" for reason, titles in reasons.items()]
        parts += [
            f"claims left out, because {reason}: {row[name]}"
            for name, reason in (
                ("partial", "the judge called them partly supported"),
                ("contradicting", "recorded verdicts of the judge differ"),
                ("without_model", "code decided them"),
            )
            if row[name]
        ]
        if parts:
            notes.append(f"{row['set']}, {judge_name(row)}: {'; '.join(parts)}")
    return notes


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Escape text from label files for a Markdown table."""
    escaped = "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in text)
    return " ".join(escaped.split())


def _figure(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return NOTHING
    interval = "" if estimate["low"] is None else f" [{estimate['low']:.3f}, {estimate['high']:.3f}]"
    return f"{estimate['value']:.3f}{interval}"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f} %"


def _usd(costs: Mapping[str, Any]) -> str:
    if costs["usd"] is None:
        return NOTHING
    return f"{costs['usd']:.5f}" + ("" if costs["usd_source"] in (MEASURED, RECORDED) else f" ({costs['usd_source']})")

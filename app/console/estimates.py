"""Output of estimates, as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.markup import escape

from app.console.streams import print_json, stderr_console, stdout_console
from app.console.tables import plain_table
from app.engine.estimate import Estimate, total
from app.engine.evaluation import PlannedAnswer
from judges.llm.pricing import prices_as_of


def print_plan(
    planned: Sequence[PlannedAnswer], estimates: Sequence[Estimate | None], model: str, *, as_json: bool
) -> None:
    """Print a plan of ``assay evaluate`` with the estimate of each answer and the total."""
    summed = total(estimate for estimate in estimates if estimate is not None).as_json()
    answers = [
        {
            "agent": one.folder.agent,
            "task_id": one.folder.task_id,
            "answer": one.answer.name,
            "judge": one.to_judge,
            "reason": one.reason,
            "urls": list(one.urls),
            "estimate": None if estimate is None else estimate.as_json(),
        }
        for one, estimate in zip(planned, estimates, strict=True)
    ]
    if as_json:
        document = {"model": model, "prices_as_of": prices_as_of().isoformat(), "answers": answers, "total": summed}
        print_json(document)
        return
    print_estimates(((str(one["task_id"]), one) for one in answers), summed, model)


def print_estimates(answers: Iterable[tuple[str, Mapping[str, Any]]], total: Mapping[str, Any], model: str) -> None:
    """Print answers with their task and ``estimate`` (or the ``reason`` if there is none), and the total."""
    numbers = ("calls", "usd")
    table = plain_table("task", "answer", *numbers, "basis", right=numbers)
    for task_id, answer in answers:
        found = answer["estimate"]
        cells = ("-", "-") if found is None else (range_text(found["calls"]), usd_text(found["usd"]))
        basis = answer["reason"] if found is None else found["basis"]
        table.add_row(task_id, str(answer["answer"]).removesuffix(".md"), *cells, escape(str(basis)))
    stdout_console().print(table)
    console = stderr_console()
    tokens = f"{range_text(total['input_tokens'])} tokens in, {range_text(total['output_tokens'])} tokens out"
    console.print(f"{model}: {range_text(total['calls'])} calls, {tokens}", markup=False)
    cost = "unknown, because a model has no known price" if total["usd"] is None else f"{usd_text(total['usd'])} usd"
    console.print(f"cost: {cost}; replies in the cache cost nothing", markup=False)
    console.print("dry run: nothing was judged", markup=False)


def range_text(values: Mapping[str, float], places: int = 0) -> str:
    """Return a range as ``low to high``, or one number if both are equal."""
    low, high = (f"{values[end]:,.{places}f}" for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"


def usd_text(values: Mapping[str, float] | None) -> str:
    return "unknown" if values is None else range_text(values, 4)

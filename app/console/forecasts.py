"""Output of forecasts, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.console.streams import print_json, stderr_console, stdout_console
from app.console.tables import plain_table

if TYPE_CHECKING:
    from app.engine.evaluation import PlannedAnswer
    from judges.analysis.forecasts.forecast import Forecast


def print_plan(
    planned: Sequence[PlannedAnswer], forecasts: Sequence[Forecast | None], model: str, *, as_json: bool
) -> None:
    """Print a plan of ``assay evaluate`` with the forecast of each answer and the total."""
    from rich.markup import escape

    from judges.analysis.forecasts.forecast import EMPTY_FORECAST
    from judges.llm.pricing import prices_as_of

    total = sum((one for one in forecasts if one is not None), EMPTY_FORECAST).as_json()
    answers = [_as_json(one, forecast) for one, forecast in zip(planned, forecasts, strict=True)]
    if as_json:
        print_json({"model": model, "prices_as_of": prices_as_of().isoformat(), "answers": answers, "forecast": total})
        return
    numbers = ("pages", "calls", "usd")
    table = plain_table("task", "answer", *numbers, "reason", right=numbers)
    for answer in answers:
        foreseen = answer["forecast"]
        cells = ["-", "-"] if foreseen is None else [count_text(foreseen["calls"]), usd_text(foreseen["usd"])]
        name = str(answer["answer"]).removesuffix(".md")
        table.add_row(str(answer["task_id"]), name, str(len(answer["urls"])), *cells, escape(str(answer["reason"])))
    stdout_console().print(table)
    print_total(total, model)


def print_server_forecast(forecast: Mapping[str, Any], *, stored_pages: bool = False) -> None:
    """Print a forecast of the server: each answer, and the total. ``stored_pages``: no page will be captured."""
    numbers = ("calls", "cached", "usd")
    table = plain_table("task", "answer", *numbers, right=numbers)
    for item in forecast["items"]:
        foreseen = item["forecast"]
        cells = (count_text(foreseen["calls"]), count_text(foreseen["cached_calls"]), usd_text(foreseen["usd"]))
        table.add_row(item["task_id"], str(item["answer"]).removesuffix(".md"), *cells)
    stdout_console().print(table)
    models = ", ".join(sorted({str(item["model"]) for item in forecast["items"]}))
    print_total(forecast["total"], models, stored_pages=stored_pages)


def print_total(total: Mapping[str, Any], model: str, *, stored_pages: bool = False) -> None:
    """Print a total as sentences, to stderr."""
    console = stderr_console()
    console.print(f"{model}: {_range_text(total['calls'], count_text, 'calls')}", markup=False)
    console.print(f"cost: {_range_text(total['usd'], usd_text, 'usd')}{_by_batch(total)}", markup=False)
    reused = (total["cached_calls"] or {}).get("expected")
    if reused:
        console.print(f"{reused:.0f} replies are in the reply cache and cost nothing", markup=False)
    if total["unpriced_models"]:
        console.print(f"unknown price: {', '.join(total['unpriced_models'])}", markup=False)
    if total["unknown_pages"]:
        effect = "their claims will not be judged" if stored_pages else "their length is estimated"
        console.print(f"{total['unknown_pages']} cited pages are not captured yet; {effect}", markup=False)
    if total["problem"]:
        console.print(f"a judge file failed with simulated replies: {total['problem']}", markup=False)
    console.print("dry run: nothing was judged", markup=False)


def count_text(figure: dict[str, float] | None) -> str:
    return "unknown" if figure is None else f"{figure['expected']:.0f}"


def usd_text(figure: dict[str, float] | None) -> str:
    return "unknown" if figure is None else f"{figure['expected']:.4f}"


def _range_text(figure: dict[str, float] | None, format_value: Any, unit: str) -> str:
    if figure is None:
        return "unknown"
    ends = [format_value({"expected": figure[end]}) for end in ("low", "high")]
    return f"{format_value(figure)} {unit} expected, {ends[0]} to {ends[1]}"


def _by_batch(total: Mapping[str, Any]) -> str:
    figure = total["usd_batch"]
    return f" ({usd_text(figure)} with the batch API of the provider)" if figure and figure["expected"] else ""


def _as_json(planned: PlannedAnswer, forecast: Forecast | None) -> dict[str, Any]:
    return {
        "agent": planned.folder.agent,
        "task_id": planned.folder.task_id,
        "answer": planned.answer.name,
        "judge": planned.to_judge,
        "reason": planned.reason,
        "urls": list(planned.urls),
        "forecast": None if forecast is None else forecast.as_json(),
    }

"""Kinds of golden files: recognition by their keys, and check of their cases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from golden import pages, texts
from golden.golden_case import MALFORMED, REMARKS, FieldDifference, GoldenCase, differences
from judges.suites.errors import DataUnreadable, SuiteError
from judges.suites.mind2web.report import official_results
from judges.suites.mind2web.tournament import Prediction, gold_op_string, score_prediction
from judges.suites.step_metrics import StepScore

_PLACES = {"first": 0, "second": 1, "third": 2, "last": -1}


def aggregate_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check each step and the aggregate figures."""
    scores = []
    for number, step in enumerate(golden["steps"]):
        case = GoldenCase(f"step {number} ({step.get('annotation_id')}_{step.get('action_uid')})")
        with case.running():
            scores.append(_step_score(case, step))
        yield case
    results = _results(scores, golden["results"])
    for name, expected in golden["results"].items():
        case = GoldenCase(f"results.{name}")
        with case.running():
            case.expect(name, expected, results.get(name))
        yield case
    if "task_success_rate" in golden:
        case = GoldenCase("task_success_rate")
        with case.running():
            case.expect("task_success_rate", golden["task_success_rate"], results["error_ratio"].get("0", 0.0))
        yield case


def _step_score(case: GoldenCase, step: Mapping[str, Any]) -> StepScore:
    """Return the score of a step, computed from its prediction if the case contains one."""
    element, f1, success = step.get("element_acc"), step.get("op_f1"), step.get("step_success")
    positives = step.get("gold_ids_in_topk")
    if positives is not None and "predicted_id" in step and "gold_op" in step:
        element, f1 = score_prediction(
            Prediction(step["predicted_id"] or "", step.get("predicted_op_string") or ""),
            [str(id) for id in positives],
            gold_op_string(step["gold_op"], step.get("gold_value") or ""),
        )
        success = element == f1 == 1
        values = {"element_acc": element, "op_f1": f1, "step_success": int(success)}
        case.expect(
            "step",
            {name: step[name] for name in values if name in step},
            {n: values[n] for n in values if n in step},
        )
    else:
        known = {"annotation_id", "action_uid", "website", "domain", "element_acc", "op_f1", "step_success"}
        case.note_unchecked(step, frozenset({*known, "gold_ids_in_topk"}))
    return StepScore(
        task_id=str(step["annotation_id"]),
        website=str(step.get("website", "")),
        domain=str(step.get("domain", "")),
        element=float(element or 0),
        operation=float(f1 or 0),
        success=bool(success),
        played=positives is None or bool(positives),
    )


def _results(scores: Sequence[StepScore], expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return the aggregate.

    The result with ``compat_trailing`` is used if the data ends with unplayed steps and it matches the reference.
    """
    results = official_results(scores)
    if scores and not scores[-1].played and any(score.played for score in scores):
        trailing_results = official_results(scores, compat_trailing=True)
        if not any(True for name in expected for _ in differences(expected[name], trailing_results.get(name), name)):
            return trailing_results
    return results


def trailing_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check the same steps in several orders. All succeed except one without a positive; the key names its position."""
    for key in sorted(golden):
        if not key.startswith("order_"):
            continue
        inputs = golden[key]
        unplayed = _PLACES[key.rpartition("_")[2]] % len(inputs["order"])
        scores = [
            StepScore(
                task_id=str(task),
                website=next(iter(inputs["results"].get("acc_per_website", {"s": 0}))),
                domain="",
                element=float(place != unplayed),
                operation=float(place != unplayed),
                success=place != unplayed,
                played=place != unplayed,
            )
            for place, (task, _) in enumerate(inputs["order"])
        ]
        case = GoldenCase(key)
        with case.running():
            case.expect("results", inputs["results"], official_results(scores, compat_trailing=True))
        yield case


Golden: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Kind of golden file. ``recognised`` inspects the keys of the file and of its cases; ``check`` runs the cases.

    ``keys`` are the allowed top-level keys; a trailing ``*`` matches any suffix.
    """

    name: str
    recognised: Callable[[Golden], bool]
    check: Callable[[Golden], Iterator[GoldenCase]]
    keys: frozenset[str]


def _entries_with(key: str, *names: str) -> Callable[[Golden], bool]:
    """Return a predicate: some entry of the list ``key`` has one of the keys ``names``."""

    def recognised(golden: Golden) -> bool:
        entries = golden.get(key)
        return isinstance(entries, list) and any(isinstance(one, dict) and set(names) & one.keys() for one in entries)

    return recognised


def _any_key(*names: str) -> Callable[[Golden], bool]:
    return lambda golden: any(key.startswith(names) for key in golden)


KINDS = (
    Kind(
        name="aggregate",
        recognised=lambda golden: isinstance(golden.get("steps"), list) and "results" in golden,
        check=aggregate_cases,
        keys=frozenset({"steps", "results", "task_success_rate"}),
    ),
    Kind(
        name="candidate ranking",
        recognised=lambda golden: isinstance(golden.get("instances"), list) and "scores" in golden,
        check=pages.ranking_cases,
        keys=frozenset({"scores", "instances", "query_for_first", "pickle", "results", "format_candidate_real"})
        | {"cleaned_html", "page_html", "html", "sample"},
    ),
    Kind(
        name="page",
        recognised=lambda golden: isinstance(golden.get("sample"), dict) and isinstance(golden.get("cases"), list),
        check=pages.dom_cases,
        keys=frozenset({"sample", "cases"}),
    ),
    Kind(
        name="tournament",
        recognised=_entries_with("cases", "rounds", "shuffled_order"),
        check=pages.tournament_cases,
        keys=frozenset({"cases", "page_html*"}),
    ),
    Kind(
        name="operation F1",
        recognised=_entries_with("cases", "f1_multichoice", "f1_generation_variant"),
        check=texts.op_f1_cases,
        keys=frozenset({"cases"}),
    ),
    Kind(
        name="parsed output",
        recognised=_entries_with("cases", "llm", "seq2seq"),
        check=texts.parse_cases,
        keys=frozenset({"cases"}),
    ),
    Kind(
        name="trailing steps",
        recognised=_any_key("order_no_positive"),
        check=trailing_cases,
        keys=frozenset({"order_*"}),
    ),
    Kind(
        name="port",
        recognised=lambda golden: (
            "operation_f1_head" in golden or _entries_with("parse", "seed_commit", "head")(golden)
        ),
        check=texts.port_cases,
        keys=frozenset({"parse", "operation_f1_head", "labels"}),
    ),
    Kind(
        name="SeeAct",
        recognised=lambda golden: (
            _entries_with("parse", "parsed")(golden) or _any_key("option_names", "option_lines")(golden)
        ),
        check=texts.seeact_cases,
        keys=frozenset({"parse", "option_names", "option_lines*"}),
    ),
    Kind(
        name="~ metrics",
        recognised=_any_key("tokens", "is_valid_example"),
        check=texts.tilde_cases,
        keys=frozenset({"tokens", "is_valid_example*"}),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One field of a failed case, with expected and actual value."""

    file: str
    case: str
    field: str
    expected: Any
    got: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """Result of one golden file. ``not_checked`` lists (case, key) pairs that no check covers."""

    file: str
    kind: str
    passed: int
    failed: int
    failures: tuple[Failure, ...]
    not_checked: tuple[tuple[str, str], ...]


def check_file(path: Path) -> FileReport:
    """Run every case of a golden file. Blocks.

    A file of unknown kind and a case that cannot run count as failures.

    Raises:
        SuiteError: the file does not exist, or is not JSON.
    """
    try:
        written = path.read_text("utf-8-sig")
        golden = json.loads(written)
    except FileNotFoundError as error:
        raise SuiteError(f"{path} does not exist") from error
    except OSError as error:
        raise DataUnreadable(str(path), f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataUnreadable(path.name, f"is not valid JSON: {error}") from error
    if isinstance(golden, list) and golden and all(isinstance(one, dict) and "role" in one for one in golden):
        return _report(path, "prompt template", texts.template_cases(written), [])
    kind = next((kind for kind in KINDS if isinstance(golden, dict) and kind.recognised(golden)), None)
    if kind is None:
        return _unknown(path, golden)
    return _report(path, kind.name, kind.check(golden), _unknown_keys(golden, kind))


def _report(path: Path, kind: str, cases: Iterator[GoldenCase], unknown_keys: list[str]) -> FileReport:
    failures: list[Failure] = []
    not_checked = [("the file", key) for key in unknown_keys]
    passed = failed = 0
    name = "the first case"
    try:
        for case in cases:
            name = f"the case after {case.name}"
            passed, failed = passed + (not case.differences), failed + bool(case.differences)
            failures += [_failure(path, case.name, difference) for difference in case.differences]
            not_checked += [(case.name, key) for key in case.not_checked]
    except MALFORMED as error:
        failed += 1
        got = f"{type(error).__name__}: {error}"
        failures.append(Failure(file=path.name, case=name, field="(all)", expected="a case that runs", got=got))
    if not passed and not failed:
        failed = 1
        failures.append(Failure(file=path.name, case="(all)", field="cases", expected="at least one", got="none"))
    return FileReport(
        file=path.name,
        kind=kind,
        passed=passed,
        failed=failed,
        failures=tuple(failures),
        not_checked=tuple(not_checked),
    )


def _failure(path: Path, case: str, difference: FieldDifference) -> Failure:
    return Failure(file=path.name, case=case, field=difference.field, expected=difference.expected, got=difference.got)


def _unknown(path: Path, golden: Any) -> FileReport:
    keys = ", ".join(sorted(map(str, golden))[:12]) if isinstance(golden, dict) else f"a {type(golden).__name__}"
    known = ", ".join([*(kind.name for kind in KINDS), "prompt template"])
    failure = Failure(file=path.name, case="(all)", field="kind", expected=f"one of: {known}", got=f"keys {keys}")
    return FileReport(file=path.name, kind="unknown", passed=0, failed=1, failures=(failure,), not_checked=())


def _unknown_keys(golden: Golden, kind: Kind) -> list[str]:
    def known(key: str) -> bool:
        return key in kind.keys or any(one.endswith("*") and key.startswith(one[:-1]) for one in kind.keys)

    return [key for key in sorted(golden) if not known(key) and key not in REMARKS]

"""Golden files of three kinds with our own values, and those of the shared folder if it exists."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from golden.golden_files import FileReport, check_file

from tests.architecture.sources import ROOT

PAGE = (
    '<html backend_node_id="1">\n <div backend_node_id="2" role="main">\n  <a backend_node_id="3" title="Home">'
    '<text backend_node_id="4">Go home</text></a>\n  <button backend_node_id="5" name="buy">'
    '<text backend_node_id="6">Buy &amp; go</text></button>\n </div>\n</html>'
)
GOLDENS: dict[str, Any] = {
    "op_f1": {
        "source": "by hand",
        "cases": [
            {"id": "a", "pred": "TYPE x -", "gold": "TYPE x", "f1_multichoice": 0.8, "f1_generation_variant": 1.0},
            {"id": "b", "pred": "", "gold": "", "f1_multichoice": 1.0, "f1_generation_variant": 1.0},
        ],
    },
    "page": {
        "sample": {"cleaned_html": PAGE, "operation": {"op": "TYPE", "value": "x"}, "previous_actions": []},
        "cases": [
            {
                "id": "both",
                "candidate_ids": ["5", "3"],
                "gold_id": "5",
                "html_brackets": {
                    "context": "<html> <div main> <a id=0 home>Go home</a> <button id=1 buy>Buy & go</button> </div>"
                    " </html>",
                    "choices": [["3", "<a id=0 home>Go home</a>"], ["5", "<button id=1 buy>Buy & go</button>"]],
                    "target": "C.\nAction: TYPE\nValue: x",
                },
                "round_brackets": {"context": "(html (div main (a id=0 homeGo home) (button id=1 buyBuy & go) ) )"},
                "pruned_xml_c14n": '<html><div role="main"><a title="Home" backend_node_id="3"><text>Go home</text></a>'
                '<button backend_node_id="5" name="buy"><text>Buy &amp; go</text></button></div></html>',
                "id_mapping": {"3": 0, "5": 1},
            },
            {
                "id": "own operation, no gold",
                "candidate_ids": ["3"],
                "gold_id": -1,
                "operation": {"op": "CLICK", "value": ""},
                "html_brackets": {"target": "A."},
            },
            {"id": "not in the page", "candidate_ids": ["99"], "raises": "IndexError"},
        ],
    },
    "aggregate": {
        "steps": [
            {
                "annotation_id": "T1",
                "action_uid": "a",
                "website": "s",
                "gold_ids_in_topk": ["1", "2"],
                "gold_op": "TYPE",
                "gold_value": "new york",
                "predicted_id": "2",
                "predicted_op_string": "TYPE new",
                "element_acc": 1,
                "op_f1": 0.8,
                "step_success": 0,
            },
            {"annotation_id": "T2", "action_uid": "a", "website": "s", "element_acc": 1, "op_f1": 1, "step_success": 1},
        ],
        "results": {"element_acc": 1.0, "action_f1": 0.9, "step_acc": 0.5, "error_ratio": {"0": 0.5, "1": 0.5}},
        "task_success_rate": 0.5,
    },
}
PASSED = {"op_f1": 2, "page": 3, "aggregate": 7}
SHARED_GOLDENS = sorted((ROOT.parent / "shared" / "goldens" / "mind2web").glob("*.json"))


def check(folder: Path, golden: Any) -> FileReport:
    file = folder / "golden.json"
    file.write_text(golden if isinstance(golden, str) else json.dumps(golden))
    return check_file(file)


@pytest.mark.parametrize("name", GOLDENS)
def test_kind_is_recognized_and_passes(tmp_path: Path, name: str):
    report = check(tmp_path, GOLDENS[name])
    assert (report.failures, report.not_checked) == ((), ())
    assert (report.passed, report.failed) == (PASSED[name], 0)


WRONG = {
    "op_f1": (("cases", 0, "f1_multichoice"), 0.7),
    "page": (("cases", 0, "html_brackets", "context"), "<html> </html>"),
    "aggregate": (("results", "action_f1"), 0.8),
}


@pytest.mark.parametrize("name", WRONG)
def test_difference_is_reported_with_both_values(tmp_path: Path, name: str):
    path, value = WRONG[name]
    golden = copy.deepcopy(GOLDENS[name])
    holder = golden
    for key in path[:-1]:
        holder = holder[key]
    right, holder[path[-1]] = holder[path[-1]], value
    report = check(tmp_path, golden)
    [failure] = report.failures
    assert (report.passed, report.failed) == (PASSED[name] - 1, 1)
    assert (failure.file, failure.expected, failure.got) == ("golden.json", value, right)
    assert isinstance(path[-1], int) or str(path[-1]) in f"{failure.case} {failure.field}"


def test_case_that_cannot_run_fails_and_the_others_are_checked(tmp_path: Path):
    golden = copy.deepcopy(GOLDENS["page"])
    golden["cases"][0]["candidate_ids"] = ["404"]
    del golden["cases"][1]["candidate_ids"]
    report = check(tmp_path, golden)
    assert (report.passed, report.failed) == (1, 2)
    assert "404" in str(report.failures[0].got)
    assert "KeyError" in str(report.failures[1].got)


@pytest.mark.parametrize("golden", [{"cases": [{"question": "?"}]}, 7])
def test_file_of_unknown_kind_fails(tmp_path: Path, golden: Any):
    report = check(tmp_path, golden)
    assert (report.passed, report.failed, report.kind) == (0, 1, "unknown")
    assert "one of: aggregate" in str(report.failures[0].expected)


@pytest.mark.parametrize("path", SHARED_GOLDENS, ids=lambda path: path.name)
def test_shared_golden_files_pass(path: Path):
    report = check_file(path)
    assert report.failures == ()
    assert report.passed

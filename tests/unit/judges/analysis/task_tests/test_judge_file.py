"""Places and exemptions in YAML task files."""

from __future__ import annotations

from judges.analysis.task_tests.judge_file import SourceRange, judge_file
from judges.analysis.task_tests.leaves import ObservedLeaf

SOURCE = b"""format: 1
description: Which gauges?
fields:
  gauges:
    list_of:
      name:
      price: {type: number}  # untested: prices change daily
rubric:
  parallel:
    gauges:
      for_each: gauges
      each:
        parallel:
          # untested: the name is enough
          named: {check: "item.name in ['Kestrel 4', 'Heron 2']"}
          priced:
            check: item.price > 900  # untested
"""


def leaf(key: str) -> ObservedLeaf:
    return ObservedLeaf(key=key, claim=None, sources=None, instruction=None, state="passed", reason=None)


def test_leaf_of_any_item_is_found_at_the_lines_of_its_node() -> None:
    file = judge_file(SOURCE, ".yaml")

    assert file.leaf(leaf("gauges/7/named")) == SourceRange(first=15, last=15)
    assert file.leaf(leaf("gauges/1/priced")) == SourceRange(first=16, last=17)
    assert file.leaf(leaf("other")) is None


def test_exemption_is_a_comment_on_the_line_or_alone_above_it() -> None:
    file = judge_file(SOURCE, ".yaml")

    assert file.exemption(file.field(("Gauges", "price"))) == "prices change daily"
    assert file.exemption(file.leaf(leaf("gauges/1/named"))) == "the name is enough"
    assert file.exemption(file.leaf(leaf("gauges/1/priced"))) == ""
    assert file.exemption(file.field(("Gauges", "name"))) is None


def test_constants_are_those_of_the_expressions() -> None:
    assert judge_file(SOURCE, ".yaml").constants == ("Kestrel 4", "Heron 2", 900.0)

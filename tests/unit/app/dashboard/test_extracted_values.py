from __future__ import annotations

from typing import Any

import pytest

from app.dashboard.extracted_values import extracted_values
from app.dashboard.outline import outline


def leaf(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "desc": id, "critical": False, "score": 0.0, "status": "failed", "children": [], **fields}


LEAVES = [
    leaf("height", claim="The tower is 88.5 m high", sources=["https://a.example/tower"]),
    leaf("year", claim=None, check=False, reasoning="date('1962') == date('1961') is false"),
    leaf("other", claim="The tower of 188.5 m is in Paris1962", reasoning="It was built in 1962."),
]
TREE = {**leaf("root", strategy="parallel"), "children": LEAVES}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"height": 88.5}, [("tower.height", "88.5", ["height"])]),
        ({"year": "1962"}, [("tower.year", "1962", ["year"])]),
        ({"names": ["x", None]}, [("tower.names[1]", "x", []), ("tower.names[2]", "", [])]),
        ({"source": {"url": "https://a.example/tower"}}, [("tower.source.url", "https://a.example/tower", ["height"])]),
        ({"open": True}, [("tower.open", "true", [])]),
    ],
)
def test_values_are_listed_with_the_leaves_that_contain_them(value: dict[str, Any], expected: list[Any]) -> None:
    result = {"eval_breakdown": [{"info": [{"tower": value}, {"no_info": "none"}], "verification_tree": TREE}]}
    values = extracted_values(result, outline(result).leaves)
    assert [(one.field, one.value, [leaf.id for leaf in one.uses]) for one in values] == expected

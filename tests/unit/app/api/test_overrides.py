from __future__ import annotations

from types import SimpleNamespace

import pytest

from app.api.reviews import scores_with_overrides
from tests.fakes.judged import FAILED, NOT_JUDGED, judged_fields, leaf, rubric_of

OPEN = {"value": None, "low": 0.0, "high": 1.0}
NONE = {"value": 0.0, "low": 0.0, "high": 0.0}


@pytest.mark.parametrize("field", ["extraction_error", "cut_short"])
@pytest.mark.parametrize(("overridden", "score"), [("a", OPEN), ("extraction", NONE)])
def test_only_a_gate_closes_the_score_of_a_tree_that_may_lack_parts(field: str, overridden: str, score: object):
    rubric = rubric_of(leaf("a"), leaf("b", FAILED), leaf("extraction", NOT_JUDGED, critical=True))
    override = SimpleNamespace(id="o", leaf=overridden, outcome="failed", withdraws=None)
    found = scores_with_overrides(judged_fields(rubric) | {field: "lost"}, [override])
    assert found is not None
    assert (found["score"], found["score_strict"], found["final_score"]) == (score, score, 0.0)

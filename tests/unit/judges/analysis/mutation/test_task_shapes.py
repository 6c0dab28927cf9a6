"""Field test of correct and defective judges for tasks of different shapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.judges.analysis.mutation.task_shapes import SHAPES, Defect, TaskShape
from tests.unit.judges.analysis.mutation.test_field_test import report_of

pytestmark = pytest.mark.slow

DEFECTS = [(shape, defect) for shape in SHAPES for defect in shape.defects]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.task)
async def test_correct_judge_has_no_findings(tmp_path: Path, shape: TaskShape) -> None:
    found = await report_of(tmp_path / f"{shape.task}.py", shape.judge, shape.answer)
    assert found.findings == ()


@pytest.mark.parametrize(("shape", "defect"), DEFECTS, ids=[defect.name for _, defect in DEFECTS])
async def test_defect_is_found(tmp_path: Path, shape: TaskShape, defect: Defect) -> None:
    broken = shape.judge.replace(defect.old, defect.new)
    assert broken != shape.judge
    found = await report_of(tmp_path / f"{shape.task}.py", broken, shape.answer)
    assert any(finding.code in defect.found_as and defect.subject in finding.subject for finding in found.findings)

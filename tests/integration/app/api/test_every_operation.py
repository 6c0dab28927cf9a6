"""Every operation of the published description, asked with what fits it and with what does not.

Nothing may be answered with a fault of ours, nor with anything that the description does not name. A modest number of
requests here; ``pytest --hypothesis-profile=thorough`` on this file makes it 2,000 for each operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from app.main import create_app
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.served import served
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.asking import body

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(600)]

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


@pytest.fixture
def url(database_url: str, judges: Path, tmp_path: Path) -> Iterator[str]:
    chosen = settings_for_tests(data_dir=tmp_path / "data", database_url=database_url)
    app = create_app(chosen, workers=1, runtime=scripted_runtime(judges), evaluate=ScriptedEvaluation())
    with served(app) as url:
        # Something to be found: lists and summaries with nothing in them prove little.
        httpx.post(f"{url}/v1/submissions", json=body()).raise_for_status()
        yield url


def test_no_request_whatever_brings_the_service_to_a_fault(url: str):
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    found: list[Any] = list(schema.get_all_operations())
    operations = [result.ok() for result in found]
    assert len(operations) >= 25
    wrong = []
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                ask(operation, mode)
            except (AssertionError, BaseExceptionGroup) as failure:
                wrong.append(f"{operation.label} ({mode.value}): {failure!r}"[:1500])
            except Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE  # nothing can be wrong about a call that takes nothing
    assert not wrong, "\n\n".join(wrong)


def ask(operation: Any, mode: GenerationMode) -> None:
    thorough = settings.get_current_profile_name() == "thorough"

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=settings.get_profile("thorough").max_examples if thorough else 6,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def each(case: Any) -> None:
        response = case.call(timeout=30)
        case.validate_response(response, checks=CHECKS)

    each()

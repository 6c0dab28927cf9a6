"""Requests generated from the OpenAPI description, for every operation of it.

Valid ones must be accepted, invalid ones refused, and no answer may be a server error or undocumented. The number of
requests is small here; ``pytest --hypothesis-profile=thorough`` on this file makes it 2,000 for each operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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

from app.server.application import create_app
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.served import served
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.asking import body

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.timeout(600),
    # Of schemathesis' own strategies.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
REFUSED = (400, 415, 422)
REFUSALS_OF_INVALID = ["401", "403", "404", "405", "409", "429", "431", *map(str, REFUSED)]
"""431: an address that is too long makes the head of the request too large."""
CONFIG = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": REFUSALS_OF_INVALID}}}
)
FRANCE = "https://example.org/france"
EXTENSION = "/v1/extension/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """A refusal of valid requests, by its code and by the path and message of each error; JSON Schema has no words
    for its rule, for the reason given.
    """

    operations: str
    code: str
    path: str
    message: str
    reason: str

    def covers(self, operation: str, problem: Mapping[str, Any], error: Mapping[str, str]) -> bool:
        return (
            re.search(self.operations, operation) is not None
            and problem["code"] == self.code
            and re.fullmatch(self.path, error["path"]) is not None
            and re.search(self.message, error["message"]) is not None
        )


EXEMPTIONS = (
    Exemption(
        operations="POST /v1/(submissions|forecasts)$",
        code="INVALID",
        path=r"answers\.\d+\.name",
        message="another answer already has the name",
        reason="uniqueItems compares whole items, not one field of them",
    ),
    Exemption(
        operations="POST /v1/(submissions|submissions/archive|suites/.*/runs)$",
        code="IDEMPOTENCY_KEY_REUSED",
        path="",
        message="",
        reason="depends on an earlier request",
    ),
    Exemption(
        operations="POST /v1/submissions/archive$",
        code="INVALID",
        path=".*",
        message="archive",
        reason="about the bytes of a file",
    ),
    Exemption(
        operations="(PUT /v1/pages/{page_id}/content|POST /v1/extension/captures)$",
        code="DOCUMENT_REJECTED",
        path="",
        message="",
        reason="about the bytes of a file",
    ),
    Exemption(
        operations="PUT /v1/pages/{page_id}/content$",
        code="INVALID",
        path="",
        message="is empty",
        reason="the description says minLength, which is not obeyed where a body is no JSON",
    ),
    Exemption(
        operations="POST /v1/pages/changes$",
        code="INVALID",
        path="url|to",
        message="the address has no valid host",
        reason="IDNA and IPv6 are too large for a pattern",
    ),
    Exemption(
        operations="POST /v1/pages/changes$",
        code="INVALID",
        path="to",
        message="is another spelling of url",
        reason="compares two fields",
    ),
    Exemption(
        operations="POST /v1/extension/captures$",
        code="INVALID",
        path="places",
        message="lines",
        reason="compares items with each other, and counts across arrays",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A service with one thing of each kind."""

    url: str
    ids: Mapping[str, str]
    token: str
    """Of a paired browser."""

    def headers(self, operation: str) -> dict[str, str]:
        # Not to end the pairing: every later call of the extension would be refused before it is read.
        if EXTENSION in operation and operation != f"DELETE {EXTENSION}pairing":
            return {"Authorization": f"Bearer {self.token}"}
        return {}

    def refer(self, case: Any) -> None:
        """Have a request name things that exist, so that it gets past the 404s."""
        for name in case.path_parameters or {}:
            case.path_parameters[name] = self.ids.get(name, case.path_parameters[name])
        if not isinstance(case.body, dict):
            return
        for name in case.body.keys() & self.ids.keys():
            if case.body[name] is not None:
                case.body[name] = self.ids[name]
        if case.body.get("jobs"):
            case.body["jobs"] = [self.ids["job_id"]]
        if case.body.get("action", "add") != "add" or case.operation.label.endswith("/captures"):
            case.body["url"] = FRANCE


@pytest.fixture
def known(database_url: str, judges: Path, tmp_path: Path) -> Iterator[Known]:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/steps").write_text("")
    chosen = settings_for_tests(
        data_dir=tmp_path / "data", database_url=database_url, suite_data=str(tmp_path / "suites"), rate_per_s=1e6
    )
    runtime = scripted_runtime(judges, {FRANCE: "Paris is the capital of France."})
    app = create_app(chosen, workers=1, runtime=runtime, evaluate=ScriptedEvaluation())
    with served(app) as url, httpx.Client(base_url=url) as api:
        yield Known(url=url, ids=one_of_each(api), token=paired(api))


def one_of_each(api: httpx.Client) -> dict[str, str]:
    def post(path: str, **fields: Any) -> dict[str, Any]:
        response = api.post(path, json=fields)
        response.raise_for_status()
        made: dict[str, Any] = response.json()
        return made

    handed_in = post("/v1/submissions", **body())
    job_id = handed_in["jobs"][0]["id"]
    with api.stream("GET", f"/v1/jobs/{job_id}/events") as events:
        events.read()
    result_id = api.get(f"/v1/jobs/{job_id}").json()["result_id"]
    word = post(f"/v1/results/{result_id}/overrides", leaf="leaf", outcome="failed", reason="No.", by="Ada")
    change = post("/v1/pages/changes", action="add", url=FRANCE, task_id="capital")
    post("/v1/pages/changes", action="flag", url=FRANCE)
    return {
        "submission_id": handed_in["id"],
        "job_id": job_id,
        "result_id": result_id,
        "override_id": word["id"],
        "page_id": change["page_id"],
        "change_id": change["id"],
        "pairing_id": api.post("/v1/pairings").json()["id"],
        "agent": "demo",
        "task_id": "capital",
        "leaf": "leaf",
        "provider": "openai",
        "data": "steps",
    }


def paired(api: httpx.Client) -> str:
    code = api.post("/v1/pairings").json()["code"]
    return str(api.post("/v1/extension/pair", json={"code": code}).json()["token"])


def test_requests_of_the_description_are_accepted_and_others_refused(known: Known):
    schema = schemathesis.openapi.from_url(f"{known.url}/openapi.json", config=CONFIG)
    found: list[Any] = list(schema.get_all_operations())
    operations = [result.ok() for result in found]
    assert len(operations) >= 25
    wrong = []
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                ask(operation, mode, known)
            except (AssertionError, BaseExceptionGroup) as failure:
                wrong.append(f"{operation.label} ({mode.value}): {failure!r}"[:1500])
            except Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE  # nothing can be wrong about a call that takes nothing
    assert not wrong, "\n\n".join(wrong)


def ask(operation: Any, mode: GenerationMode, known: Known) -> None:
    thorough = settings.get_current_profile_name() == "thorough"

    @given(case=operation.as_strategy(generation_mode=mode), refer=st.booleans())
    @settings(
        max_examples=settings.get_profile("thorough").max_examples if thorough else 6,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def each(case: Any, refer: bool) -> None:
        if refer and mode is GenerationMode.POSITIVE:
            known.refer(case)
        response = case.call(timeout=30, headers=known.headers(operation.label))
        case.validate_response(response, checks=CHECKS)
        if mode is GenerationMode.POSITIVE and response.status_code in REFUSED:
            refusal = response.json()
            errors = refusal.get("errors") or [{"path": "", "message": ""}]
            unexplained = [
                error for error in errors if not any(one.covers(operation.label, refusal, error) for one in EXEMPTIONS)
            ]
            assert not unexplained, f"{refusal['detail']}: {unexplained} for {case.as_curl_command()}"

    each()

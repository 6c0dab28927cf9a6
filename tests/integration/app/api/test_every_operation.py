"""Property tests with requests generated from the OpenAPI description, for every operation. Valid requests must be
accepted and invalid ones rejected, without server errors or undocumented responses. The default number of requests is
small; ``pytest --hypothesis-profile=thorough`` sends 500 valid and 500 invalid ones per operation, which takes about an
hour. They come from an operator and a tenant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
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

from app.api.middleware import SECURITY_HEADERS
from app.server.application import create_app
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.fakes.web_server import served
from tests.integration.app.api.api_calls import submission_body

IS_THOROUGH = settings.get_current_profile_name() == "thorough"
REQUESTS = 500 if IS_THOROUGH else 2
"""Valid and invalid requests, each, per operation."""
pytestmark = [
    pytest.mark.postgres,
    pytest.mark.timeout(7200 if IS_THOROUGH else 600),
    # A warning of schemathesis' own strategies.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

STANDARD_HEADERS = frozenset(
    {"connection", "content-length", "content-type", "date", "transfer-encoding", *map(str.lower, SECURITY_HEADERS)}
)


def only_declared_headers(_ctx: object, response: Any, case: Any) -> None:
    """Check that the description declares every header that is not part of HTTP itself or the same everywhere."""
    declared = case.operation.responses.find_by_status_code(response.status_code).headers or {}
    undeclared = (
        {name.lower() for name in response.headers} - STANDARD_HEADERS - {name.lower() for name, _ in declared.items()}
    )
    assert not undeclared, f"undeclared headers of {response.status_code}: {sorted(undeclared)}"


def no_fault(ctx: Any, response: Any, case: Any) -> None:
    """Check that the service did not fail. It may ask for a later repetition, as after a short deadline."""
    if not (response.status_code == 503 and "retry-after" in response.headers):
        not_a_server_error(ctx, response, case)


CHECKS = [
    only_declared_headers,
    no_fault,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
REFUSED = (400, 415, 422)
REFUSALS_OF_INVALID = ["401", "403", "404", "405", "409", "413", "429", "431", "503", *map(str, REFUSED)]
"""431: an address that is too long makes the head of the request too large. 503: a deadline in the request is short."""
CONFIG = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": REFUSALS_OF_INVALID}}}
)
KEYS = {"operator": "0b9ad5f2c1e84736a5d0", "submit": "77c3e1f0492bd86a1e5c"}
"""API key of an operator, and that of a tenant."""
FRANCE = "https://example.org/france"
ENDLESS = "GET /v1/jobs/events"
"""Its stream ends only with the connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """Rejection of valid requests that JSON Schema cannot express, identified by code and by path and message of each
    error."""

    operations: str
    code: str
    path: str
    message: str
    reason: str

    def covers(self, operation: str, problem: Mapping[str, Any], error: Mapping[str, str]) -> bool:
        return (
            re.search(self.operations, operation) is not None
            and problem["code"] == self.code
            and re.fullmatch(self.path, error["path"], re.DOTALL) is not None
            and re.search(self.message, error["message"]) is not None
        )


EXEMPTIONS = (
    Exemption(
        operations="POST /v1/(submissions|estimates)$",
        code="INVALID",
        path=r"answers\.\d+\.name",
        message="another answer already has the name",
        reason="uniqueItems compares whole items, not one field of them",
    ),
    Exemption(
        operations="POST /v1/(submissions|estimates|checks)$",
        code="INVALID",
        path=r"(answers\.\d+\.)?reply(\..+)?",
        message="",
        reason="the replies of providers have many more fields than a schema should repeat",
    ),
    Exemption(
        operations="POST /v1/(submissions|estimates|checks)$",
        code="INVALID",
        path=r"(answers\.\d+\.)?document(\.content)?",
        message="",
        reason="a schema cannot tell whether bytes are a document",
    ),
    Exemption(
        operations="POST /v1/",
        code="INVALID",
        path=r"(items\.\d+\.)?model",
        message="invalid jury",
        reason="a model must not be in a jury twice, also not with another provider, and compares items",
    ),
    Exemption(
        operations="POST /v1/verify$",
        code="INVALID",
        path="model",
        message=r"needs [A-Z_]+",
        reason="depends on the settings of the service",
    ),
    Exemption(
        operations="POST /v1/verify$",
        code="INVALID",
        path=r"(items\.\d+\.)?(rubric(\..+)?|messages)",
        message="",
        reason="the rules of task files are those of `assay tasks show --schema`, and one message must be an answer",
    ),
    Exemption(
        operations="POST /v1/verify$",
        code="INVALID",
        path="",
        message="with items, send no other field",
        reason="the default of a field and its absence are one in a schema",
    ),
    Exemption(
        operations="POST /v1/(submissions|submissions/archive|checks|rescores|suites/.*/runs)$",
        code="IDEMPOTENCY_KEY_REUSED",
        path="Idempotency-Key",
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
        operations="PUT /v1/pages/{page_id}/content$",
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
        operations="POST /v1/(pages/changes|webhooks|submissions)$",
        code="INVALID",
        path="url|to|webhook_url",
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
        operations="POST /v1/suites/.*/runs$",
        code="SUITE_DATA",
        path="",
        message="",
        reason="about the files in the data folder",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """API key with one object of each kind that it can see."""

    key: str
    ids: Mapping[str, str]

    def use_known_ids(self, case: Any) -> None:
        """Replace ids in the request with existing ones, so that it passes the 404 checks. Deletions would remove them
        for all later requests."""
        if case.operation.method == "delete":
            return
        for name in case.path_parameters or {}:
            case.path_parameters[name] = self.ids.get(name, case.path_parameters[name])
        if not isinstance(case.body, dict):
            return
        for name in case.body.keys() & self.ids.keys():
            if case.body[name] is not None:
                case.body[name] = self.ids[name]
        if case.body.get("jobs"):
            case.body["jobs"] = [self.ids["job_id"]]
        if case.body.get("action", "add") != "add":
            case.body["url"] = FRANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    url: str
    roles: Sequence[Known]


@pytest.fixture
def service(database_url: str, judges: Path, tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/steps").write_text("")
    chosen = settings_for_tests(
        data_dir=tmp_path / "data",
        database_url=database_url,
        suite_data=str(tmp_path / "suites"),
        rate_per_s=1e6,
        api_keys=",".join(f"{scope}s:{scope}:{key}" for scope, key in KEYS.items()),
    )
    runtime = scripted_runtime(judges, {FRANCE: "Paris is the capital of France."})
    app = create_app(chosen, workers=1, runtime=runtime, evaluate=ScriptedEvaluation())
    has_rescores = "/v1/rescores" in app.openapi()["paths"]
    with served(app) as url:
        yield Service(url=url, roles=[known_to(url, key, has_rescores=has_rescores) for key in KEYS.values()])


def known_to(url: str, key: str, *, has_rescores: bool) -> Known:
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as api:
        ids = create_one_of_each(api)
        if has_rescores:
            ids["rescore_id"] = api.post("/v1/rescores", json={"task_id": "capital"}).raise_for_status().json()["id"]
    return Known(key=key, ids=ids)


def create_one_of_each(api: httpx.Client) -> dict[str, str]:
    def post(path: str, **fields: Any) -> dict[str, Any]:
        response = api.post(path, json=fields)
        response.raise_for_status()
        made: dict[str, Any] = response.json()
        return made

    submission = post("/v1/submissions", **submission_body())
    job_id = submission["jobs"][0]["id"]
    with api.stream("GET", f"/v1/jobs/{job_id}/events") as events:
        events.read()
    result_id = api.get(f"/v1/jobs/{job_id}").json()["result_id"]
    override = post(f"/v1/results/{result_id}/overrides", leaf="leaf", outcome="failed", reason="No.", by="Ada")
    change = post("/v1/pages/changes", action="add", url=FRANCE, task_id="capital")
    post("/v1/pages/changes", action="flag", url=FRANCE)
    return {
        "submission_id": submission["id"],
        "job_id": job_id,
        "result_id": result_id,
        "override_id": override["id"],
        "page_id": change["page_id"],
        "webhook_id": post("/v1/webhooks", url="http://127.0.0.1:9/hook")["id"],
        "change_id": change["id"],
        "agent": "demo",
        "task_id": "capital",
        "leaf": "leaf",
        "provider": "openai",
        "data": "steps",
    }


def test_valid_requests_are_accepted_and_invalid_ones_rejected(service: Service):
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json", config=CONFIG)
    found: list[Any] = list(schema.get_all_operations())
    operations = [result.ok() for result in found]
    operations = [operation for operation in operations if operation.label != ENDLESS]
    assert len(operations) >= 25
    failures = []
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                send_requests(operation, mode, service.roles)
            except (AssertionError, BaseExceptionGroup) as failure:
                failures.append(f"{operation.label} ({mode.value}): {failure!r}"[:1500])
            except Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE  # an operation without input has no invalid requests
    assert not failures, "\n\n".join(failures)


def send_requests(operation: Any, mode: GenerationMode, roles: Sequence[Known]) -> None:
    @given(case=operation.as_strategy(generation_mode=mode), known=st.sampled_from(roles), use_known_ids=st.booleans())
    @settings(
        max_examples=REQUESTS,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def each(case: Any, known: Known, use_known_ids: bool) -> None:
        if use_known_ids and mode is GenerationMode.POSITIVE:
            known.use_known_ids(case)
        response = case.call(timeout=240, headers={"Authorization": f"Bearer {known.key}"})
        case.validate_response(response, checks=CHECKS)
        if mode is GenerationMode.POSITIVE and response.status_code in REFUSED:
            refusal = response.json()
            errors = refusal.get("errors") or [{"path": "", "message": ""}]
            unexplained = [
                error for error in errors if not any(one.covers(operation.label, refusal, error) for one in EXEMPTIONS)
            ]
            assert not unexplained, f"{refusal['detail']}: {unexplained} for {case.as_curl_command()}"

    each()

"""Parameters of model requests: settings per role and defaults of model families."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from judges.errors import ModelNotConfigured
from judges.llm.chat_body import request_key
from judges.llm.client import LLMRequest
from judges.llm.parameters import Parameters, RequestParameters, RunParameters
from judges.llm.remote import sent_params

VERIFY = LLMRequest(model="gpt-6-luna", messages=(), purpose="verify")
EXTRACT = replace(VERIFY, purpose="extract")
OWN = replace(VERIFY, purpose="free")
HIGH = RunParameters(every=Parameters(reasoning_effort="high"))


def sent(
    request: LLMRequest, parameters: RunParameters, *, provider: str = "openai", model: str = ""
) -> dict[str, Any]:
    return sent_params(RequestParameters(parameters, {model or request.model: provider}).add_to(request))


def test_only_the_default_model_gets_the_maximum_reasoning_effort():
    assert sent(VERIFY, RunParameters()) == {"reasoning_effort": "max"}
    assert sent(replace(VERIFY, model="gpt-6.1-terra"), RunParameters()) == {}
    assert sent(replace(VERIFY, model="gpt-4o"), RunParameters()) == {"temperature": 0.0}
    assert sent(replace(VERIFY, model="my-model"), RunParameters()) == {}


def test_role_setting_overrides_the_general_setting():
    parameters = RunParameters(
        every=Parameters(reasoning_effort="low", temperature=0.3),
        roles={"verify": Parameters(reasoning_effort="xhigh"), "extract": Parameters(max_output_tokens=9_000)},
    )
    assert sent(VERIFY, parameters) == {"reasoning_effort": "xhigh", "temperature": 0.3}
    assert sent(EXTRACT, parameters) == {"reasoning_effort": "low", "temperature": 0.3, "max_completion_tokens": 9_000}
    assert sent(OWN, parameters) == {"reasoning_effort": "low", "temperature": 0.3}


def test_effort_default_sends_no_effort():
    default = RunParameters(every=Parameters(reasoning_effort="default"))
    assert sent(VERIFY, default) == sent(OWN, default) == {}


@pytest.mark.parametrize(
    ("provider", "model", "name"),
    [
        ("openai", "gpt-6-luna", "max_completion_tokens"),
        ("openai", "gpt-4o", "max_completion_tokens"),
        ("openai", "llama-3", "max_tokens"),
        ("openai", "my-model", "max_tokens"),
        ("azure", "my-deployment", "max_completion_tokens"),
        ("bedrock", "anthropic.claude-opus-5-5", "max_tokens"),
    ],
)
def test_output_limit_has_the_parameter_name_of_the_model(provider: str, model: str, name: str):
    parameters = RunParameters(every=Parameters(max_output_tokens=5))
    assert sent(replace(VERIFY, model=model), parameters, provider=provider)[name] == 5


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_small_output_limit_of_a_script_is_dropped_for_reasoning_models(limit: str):
    assert limit not in sent(replace(OWN, params={limit: 300}), RunParameters())
    assert sent(replace(OWN, model="gpt-4o", params={limit: 300}), RunParameters())[limit] == 300


@pytest.mark.parametrize("named", ["o4-mini", "gpt-6-luna"])
def test_default_model_of_the_toolkit_in_a_script_means_the_model_of_the_run(named: str):
    asked = replace(OWN, model=named, params={"temperature": 0.7, "top_p": 0.5})
    added = RequestParameters(RunParameters(), {"mine": "openai"})
    found = added.add_to(asked)
    assert (found.model, dict(found.params)) == ("mine", {"top_p": 0.5})
    assert added.add_to(replace(asked, model="gpt-4o")).model == "gpt-4o"


def test_different_effort_has_a_different_request_key():
    def key(parameters: RunParameters) -> str:
        return request_key(VERIFY, provider="p", endpoint="e", params=sent(VERIFY, parameters))

    low = RunParameters(roles={"verify": Parameters(reasoning_effort="low")})
    assert len({key(RunParameters()), key(HIGH), key(low)}) == 3


@pytest.mark.parametrize("model", ["gpt-6-luna", "gpt-4o", "my-model"])
@pytest.mark.parametrize("request_", [VERIFY, EXTRACT, OWN])
@pytest.mark.parametrize(
    "parameters",
    [
        RunParameters(),
        HIGH,
        RunParameters(every=Parameters(reasoning_effort="default", temperature=0.5)),
        RunParameters(roles={"extract": Parameters(max_output_tokens=7)}),
    ],
)
def test_replay_sends_the_parameters_recorded_in_the_result(
    model: str, request_: LLMRequest, parameters: RunParameters
):
    recorded = RunParameters.of_result({"parameters": parameters.as_json(model)})
    assert recorded is not None
    asked = replace(request_, model=model)
    assert sent(asked, recorded) == sent(asked, parameters)


def test_result_without_parameters_has_none():
    assert RunParameters.of_result({"judge": {"script_sha256": None}}) is None


def test_error_for_an_effort_on_bedrock_names_the_setting():
    with pytest.raises(ModelNotConfigured, match="unset ASSAY_REASONING_EFFORT"):
        sent(VERIFY, HIGH, provider="bedrock")
    assert sent(VERIFY, RunParameters(every=Parameters(temperature=0.1)), provider="bedrock", model="claude-x")

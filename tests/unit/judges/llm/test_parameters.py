"""Parameters of model requests: settings per role and defaults of model families."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

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


def test_default_model_of_the_toolkit_in_a_script_means_the_model_of_the_run():
    asked = replace(OWN, model="o4-mini", params={"temperature": 0.7, "top_p": 0.5})
    added = RequestParameters(RunParameters(), {"mine": "openai"})
    found = added.add_to(asked)
    assert (found.model, dict(found.params)) == ("mine", {"top_p": 0.5})
    assert added.add_to(replace(asked, model="gpt-4o")).model == "gpt-4o"


@pytest.mark.parametrize("model", ["gpt-6-luna", "my-model"])
@pytest.mark.parametrize("request_", [VERIFY, EXTRACT])
@pytest.mark.parametrize(
    "parameters",
    [
        HIGH,
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

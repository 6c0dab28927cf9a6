from __future__ import annotations

import asyncio

import pytest

from judges.errors import LLMCircuitOpen, LLMError, LLMProviderPaused, LLMRejected, LLMUnavailable, RejectionScope
from judges.llm.circuit import CircuitBreaker, CircuitState
from tests.fakes.clock import FakeClock

WRONG_KEY = LLMRejected("401 wrong key", status=401, scope=RejectionScope.ENDPOINT)
UNKNOWN_MODEL = LLMRejected("404", status=404, scope=RejectionScope.MODEL)
TOO_LONG = LLMRejected("400 too long", status=400, scope=RejectionScope.REQUEST)


async def attempt(circuit: CircuitBreaker, model: str = "m", fault: LLMError | None = None) -> None:
    async with circuit.attempt(model):
        if fault is not None:
            raise fault


async def rejected(circuit: CircuitBreaker, fault: LLMRejected, model: str = "m") -> None:
    with pytest.raises(LLMRejected):
        await attempt(circuit, model, fault)


async def test_wrong_key_stops_every_model():
    circuit = CircuitBreaker()
    await rejected(circuit, WRONG_KEY)
    for model in ("m", "other"):
        with pytest.raises(LLMCircuitOpen, match="401 wrong key") as caught:
            await attempt(circuit, model)
        assert caught.value.status == 401
    assert circuit.rejection("other") is WRONG_KEY


async def test_unknown_model_stops_only_itself():
    circuit = CircuitBreaker()
    await rejected(circuit, UNKNOWN_MODEL)
    with pytest.raises(LLMCircuitOpen):
        await attempt(circuit, "m")
    await attempt(circuit, "other")
    with pytest.raises(LLMCircuitOpen):
        await attempt(circuit, "m")


@pytest.mark.parametrize("fault", [TOO_LONG, LLMUnavailable("503")])
async def test_error_of_one_request_does_not_open_the_circuit(fault: LLMError):
    circuit = CircuitBreaker()
    with pytest.raises(LLMError):
        await attempt(circuit, fault=fault)
    await attempt(circuit)
    assert circuit.rejection("m") is None


async def test_one_probe_per_interval_tests_whether_the_provider_recovered():
    clock = FakeClock()
    circuit = CircuitBreaker(clock=clock, probe_after_s=60)
    await rejected(circuit, WRONG_KEY)
    clock.now += 61
    await rejected(circuit, WRONG_KEY)
    with pytest.raises(LLMCircuitOpen):
        await attempt(circuit)
    clock.now += 61
    await attempt(circuit)
    await attempt(circuit)


async def test_concurrent_first_requests_wait_for_the_first_reply():
    circuit, sent = CircuitBreaker(probe_wait_s=240), 0

    async def request() -> None:
        nonlocal sent
        await circuit.wait_for_first_request("m")
        async with circuit.attempt("m"):
            sent += 1
            await asyncio.sleep(0)
            raise WRONG_KEY

    ends = await asyncio.gather(*(request() for _ in range(30)), return_exceptions=True)
    assert sent == 1
    assert sum(isinstance(end, LLMCircuitOpen) for end in ends) == 29


async def test_state_describes_the_next_request():
    clock = FakeClock()
    circuit = CircuitBreaker(probe_after_s=60.0, clock=clock)
    assert circuit.state("m") is CircuitState.UNTRIED
    await attempt(circuit)
    assert circuit.state("m") is CircuitState.CLOSED
    await rejected(circuit, WRONG_KEY)
    assert circuit.state("m") is circuit.state("other") is CircuitState.OPEN
    clock.now += 60.0
    assert circuit.state("m") is circuit.state("m") is CircuitState.HALF_OPEN
    await rejected(circuit, WRONG_KEY)
    assert circuit.state("m") is CircuitState.OPEN


async def test_paused_provider_gets_no_requests_until_it_is_resumed():
    circuit = CircuitBreaker()
    await attempt(circuit)
    circuit.set_pause("openai was paused by ops: too dear")
    assert circuit.state("m") is CircuitState.OPEN
    with pytest.raises(LLMProviderPaused, match="paused by ops"):
        await attempt(circuit)
    with pytest.raises(LLMProviderPaused):
        await attempt(circuit, "other")
    circuit.set_pause(None)
    assert (circuit.state("m"), circuit.rejection("m")) == (CircuitState.CLOSED, None)
    await attempt(circuit)

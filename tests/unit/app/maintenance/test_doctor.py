"""Checks of ``assay admin doctor`` that need no browser and no database."""

from __future__ import annotations

import pytest

from app.maintenance import doctor
from app.maintenance.doctor import State
from tests.fakes.settings import settings_for_tests


def test_missing_key_fails_with_its_name_and_a_remedy() -> None:
    check = doctor.check_keys(settings_for_tests(model="openai/gpt-6-luna", openai_api_key=None, openai_base_url=None))

    assert check.state is State.FAILED
    assert "OPENAI_API_KEY" in check.detail
    assert "lexical" in check.remedy


@pytest.mark.parametrize(
    ("landlock", "problem", "shared", "state", "detail"),
    [
        (7, "", "", State.OK, "user 65530, Landlock 7; the browser reaches only the egress proxy"),
        (7, "the service is not root", "", State.OK, "Landlock 7; the browser reaches only the egress proxy"),
        (0, "the service is not root", "", State.WARNING, "no Landlock, and the service is not root"),
        (
            7,
            "",
            "no veth",
            State.WARNING,
            "(no veth): a browser that a page has taken over can connect only to temporary",
        ),
    ],
)
def test_confinement_is_reported(
    monkeypatch: pytest.MonkeyPatch, landlock: int, problem: str, shared: str, state: State, detail: str
) -> None:
    monkeypatch.setattr(doctor, "landlock_version", lambda: landlock)
    monkeypatch.setattr(doctor, "user_change_problem", lambda uid: problem)
    monkeypatch.setattr(doctor, "own_network_problem", lambda user: shared)
    check = doctor.check_confinement(settings_for_tests())
    assert check.state is state
    assert detail in check.detail

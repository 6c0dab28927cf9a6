from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import InvalidSettings
from app.settings import check_bind, load_settings, unknown_variables
from cache.urls import is_loopback
from tests.fakes.settings import settings_for_tests


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run without a .env file and without the developer's environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("ASSAY_MODEL", "ASSAY_API_KEYS", "ASSAY_DATABASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_environment_variables_have_the_names_of_the_contract(monkeypatch: pytest.MonkeyPatch):
    values = {
        "ASSAY_JUDGES": "/one:/two",
        "ASSAY_EGRESS_ALLOW": "127.0.0.1:8000, Intranet:80,[::1]:90",
        "ASSAY_API_KEYS": "first, second",
        "ASSAY_MAX_LLM": "7",
        "OPENAI_API_KEY": "sk-1",
        "AZURE_OPENAI_ENDPOINT_URL": "https://azure.example",
        "AWS_SECRET_ACCESS_KEY": "aws-secret",
        "ASSAY_BROWSER": "",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.judges == (Path("/one"), Path("/two"))
    assert settings.egress_allow == {"127.0.0.1:8000", "intranet:80", "[::1]:90"}
    assert [key.get_secret_value() for key in settings.api_keys] == ["first", "second"]
    assert (settings.max_llm, settings.browser) == (7, None)
    assert settings.azure_endpoint == "https://azure.example"
    assert set(settings.secrets) == {"first", "second", "sk-1", "aws-secret"}


def test_environment_overrides_the_dotenv_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / ".env").write_text("ASSAY_MODEL=lexical\nASSAY_MAX_PAGES=9\nUNRELATED=1\n")
    monkeypatch.setenv("ASSAY_MAX_PAGES", "4")
    settings = load_settings()
    assert (settings.model, settings.max_pages) == ("lexical", 4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ASSAY_MAX_TASKS", "0"),
        ("ASSAY_EGRESS_ALLOW", "localhost"),
        ("ASSAY_WAYBACK", "yes"),
        ("OPENAI_BASE_URL", "127.0.0.1:8123/v1"),
    ],
)
def test_invalid_setting_is_rejected_by_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSettings, match=name):
        load_settings()


def test_error_message_does_not_contain_the_value(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSAY_MAX_TASKS", "hunter2-secret")
    with pytest.raises(InvalidSettings) as refused:
        load_settings()
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("database", "blobs", "room", "shared"),
    [
        (None, "s3://evidence/pages", 5, 0),
        ("postgresql://db/assay", "file://{data}/blobs", 5, 0),
        ("postgresql://db/assay", "file:///mnt/of%20all", 5, 5),
        ("postgresql://db/assay", "s3://evidence/pages", 5, 5),
        ("postgresql://db/assay", "s3://evidence/pages", 0, 0),
    ],
)
def test_reply_cache_is_shared_if_there_are_several_machines(
    tmp_path: Path, database: str | None, blobs: str, room: int, shared: int
):
    settings = settings_for_tests(
        data_dir=tmp_path, database_url=database, blobs=blobs.format(data=tmp_path), reply_cache_bytes=room
    )
    assert settings.shared_reply_cache_bytes == shared


def test_misspelt_variable_is_named_with_a_suggestion(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("ASSAY_MODLE", "lexical")
    (tmp_path / ".env").write_text("ASSAY_JUGDES=judges\nOTHER=1\n")
    messages = unknown_variables()
    assert "ASSAY_MODLE is not a setting. Did you mean ASSAY_MODEL?" in messages
    assert "ASSAY_JUGDES is not a setting. Did you mean ASSAY_JUDGES?" in messages
    assert not any("OTHER" in message for message in messages)


def test_secrets_are_hidden_when_settings_are_printed():
    settings = settings_for_tests(database_url="postgresql://u:hidden-pw@host/db", api_keys="hidden-key")
    assert "hidden" not in repr(settings)
    assert "hidden-pw" in settings.secrets


@pytest.mark.parametrize("host", ["127.9.9.9", "localhost", "[::1]"])
def test_loopback_address_needs_no_key(host: str):
    assert is_loopback(host)
    check_bind(host, keys=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "127.0.0.1.example.org"])
def test_public_address_needs_keys(host: str):
    with pytest.raises(InvalidSettings, match="ASSAY_API_KEYS"):
        check_bind(host, keys=False)
    check_bind(host, keys=True)

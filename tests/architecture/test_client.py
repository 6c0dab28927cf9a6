"""The client is generated from the OpenAPI document, and has the version of the service."""

from __future__ import annotations

import tomllib

import generate_client

from tests.architecture.sources import ROOT


def test_generated_modules_are_current():
    modules = generate_client.modules()
    stale = [name for name, text in modules.items() if (generate_client.FOLDER / name).read_text("utf-8") != text]
    assert stale == [], "the API has changed: run `make client`"


def test_versions_of_client_and_service_are_equal():
    projects = [tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8")) for folder in ("", "client")]
    assert len({project["project"]["version"] for project in projects}) == 1

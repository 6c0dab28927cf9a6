"""The client and the table in docs/http-api.md are generated from the OpenAPI document, and versions are equal."""

from __future__ import annotations

import tomllib

import generate_client

from tests.architecture.sources import ROOT


def test_generated_modules_are_current():
    modules = generate_client.modules()
    stale = [name for name, text in modules.items() if (generate_client.FOLDER / name).read_text("utf-8") != text]
    assert stale == [], "the API has changed: run `make client`"


def test_generated_operations_of_the_api_page_are_current():
    page = generate_client.API_PAGE.read_text("utf-8")
    assert generate_client.api_page(page) == page, "the API has changed: run `make client`"
    assert page.partition(generate_client.API_NOTICE)[0].count("\n") <= 300, "the table below says the same, or could"


def test_versions_of_client_and_service_are_equal():
    projects = [tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8")) for folder in ("", "client")]
    assert len({project["project"]["version"] for project in projects}) == 1

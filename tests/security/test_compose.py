"""Hardening of the container deployment."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.architecture.sources import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
STORAGE = ("database", "objects")
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_drops_privileges_and_has_limits(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["mem_limit"] and service["pids_limit"]
    assert not {"privileged", "network_mode", "pid", "devices"} & service.keys()


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"objects"}))
def test_root_file_system_is_read_only(name: str) -> None:
    assert SERVICES[name]["read_only"] is True


def test_storage_is_reachable_only_by_the_service() -> None:
    internal = {name for name, network in COMPOSE["networks"].items() if network and network.get("internal")}
    assert internal == {"storage"}
    for name in STORAGE:
        assert SERVICES[name]["networks"] == ["storage"]
        assert "ports" not in SERVICES[name]


def test_only_the_api_is_published_and_only_on_loopback() -> None:
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"api": ["127.0.0.1:8000:8000"]}


@pytest.mark.parametrize("name", STORAGE)
def test_images_are_pinned_by_digest(name: str) -> None:
    assert "@sha256:" in SERVICES[name]["image"]


def test_base_image_and_browser_are_pinned() -> None:
    images = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert set(images) == {"${PYTHON}"}
    assert re.search(r"^ARG PYTHON=\S+@sha256:[0-9a-f]{64}$", DOCKERFILE, re.MULTILINE)
    assert re.search(r"^ARG CHROMIUM=[0-9.]+-\S+$", DOCKERFILE, re.MULTILINE)
    assert len(re.findall(r"chromium\S*=\$\{CHROMIUM\}", DOCKERFILE)) == 3
    assert not re.search(r"chromium(-\w+)*\s", DOCKERFILE.partition("apt-get install")[2].partition("&&")[0])


def test_service_is_not_root_in_its_image() -> None:
    assert re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE) == ["assay"]
    assert "useradd --create-home --uid 10001 assay" in DOCKERFILE

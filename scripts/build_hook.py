"""Build hook of the wheel: puts the packages of ``judges/compat`` and the client into site-packages.

As ``force-include`` in ``pyproject.toml``, hatchling would copy them into editable installations too, which would then
run the old code after each change.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = {
    "judges/compat/assay": "assay",
    "judges/compat/mind2web2": "mind2web2",
    "client/assay_client": "assay_client",
}


class PackagesHook(BuildHookInterface[Any]):
    """Adds ``PACKAGES`` to wheels that are not editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"].update(PACKAGES)

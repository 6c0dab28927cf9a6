"""Overrides and bundles that are added to a stored result when it is served.

The stored JSON stays unchanged, byte for byte; the added fields follow it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.api.overrides import override_fields, time_json
from app.storage.bundle_roots import BundleRoot
from app.storage.overrides import Override


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """Overrides and bundles of one result, oldest first. Both lists only grow."""

    overrides: Sequence[Override] = ()
    bundles: Sequence[BundleRoot] = ()

    @classmethod
    def to(
        cls, result_id: str, overrides: Mapping[str, Sequence[Override]], roots: Mapping[str, Sequence[BundleRoot]]
    ) -> Additions:
        """Select the overrides and bundles of this result."""
        return cls(overrides=overrides.get(result_id, ()), bundles=roots.get(result_id, ()))

    @property
    def none(self) -> bool:
        return not (self.overrides or self.bundles)

    def tag(self, result_id: str) -> str:
        """Return the entity tag of the result with these additions."""
        newest = [self.overrides[-1].id] if self.overrides else []
        bundles = [f"b{len(self.bundles)}"] if self.bundles else []
        return f'"{".".join([result_id, *newest, *bundles])}"'

    def append_to(self, body: str) -> str:
        """Append the additions to the JSON of a stored result. Blocks for a few milliseconds per megabyte."""
        added: dict[str, Any] = {}
        if self.overrides:
            added |= override_fields(json.loads(body), self.overrides)
        if self.bundles:
            added["bundles"] = [bundle_json(root) for root in self.bundles]
        return f"{body.rstrip().removesuffix('}')},{json.dumps(added)[1:]}" if added else body


def bundle_json(root: BundleRoot) -> dict[str, Any]:
    """Return one bundle as results list it."""
    return {"root_sha256": root.root_sha256, "content": root.content, "created_at": time_json(root.created_at)}

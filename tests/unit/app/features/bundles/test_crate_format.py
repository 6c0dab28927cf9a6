"""Generated descriptions of a bundle. ``replay`` compares their bytes, so they belong to the format version."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from app.features.bundles.bag import info_file
from app.features.bundles.crate import bag_info, crate_metadata, crate_preview
from app.features.bundles.layout import FORMAT, AbsentFile, Index, IndexedResult, json_bytes

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_another_format_needs_another_format_version():
    result = IndexedResult(
        result_id="res_1", task_id="t", answer_name="a.md", answer="a", script="b", kind="native", calls=2,
        pages=("p",), overrides=1,
    )  # fmt: skip
    index = Index(agent="otter", content=True, results=[result], absent=[AbsentFile(path="x", reason="lost")])
    sizes = {"results/res_1.json": 1, "captures/p.json": 2, "scripts/b.py": 3, "calls/res_1.jsonl": 4}
    documents = (
        crate_preview(index, AT),
        json_bytes(crate_metadata(index, sizes, {}, AT)),
        info_file(bag_info("otter", AT)),
    )
    digests = [hashlib.sha256(document).hexdigest()[:16] for document in documents]
    assert (FORMAT, digests) == (1, ["236f182db9d3c122", "6414962ee758adac", "17cde11e47145ebf"])

"""Files of the extension: few permissions, no external code, reproducible zip."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

from app.features.extension.archive import archive, files, version, write_files


def manifest() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(files()["manifest.json"])
    return document


def test_extension_requests_the_active_tab_and_no_host_permissions():
    document = manifest()
    assert document["manifest_version"] == 3
    assert sorted(document["permissions"]) == ["activeTab", "scripting", "storage"]
    assert not {"host_permissions", "optional_host_permissions", "optional_permissions", "content_scripts",
                "web_accessible_resources", "externally_connectable"} & document.keys()  # fmt: skip
    assert document["incognito"] == "not_allowed"


def test_every_referenced_file_exists():
    names, named = files().keys(), set(re.findall(r"[\w.]+\.(?:js|html|css|png)", json.dumps(manifest())))
    scripts = "".join(data.decode() for name, data in files().items() if name.endswith((".js", ".html")))
    named |= set(re.findall(r"(?:from \"\./|src=\"|href=\"|\[\")([\w.]+\.(?:js|css))\"", scripts))
    assert {"popup.html", "worker.js", "service.js", "tab.js", "read_page.js", "popup.css"} <= named
    assert named <= names


def test_no_external_or_generated_code():
    for name, data in files().items():
        if not name.endswith((".js", ".html")):
            continue
        text = data.decode()
        assert not re.search(
            r"\beval\(|new Function|innerHTML\s*=|insertAdjacentHTML|document\.write|importScripts", text
        ), name
        assert not re.search(
            r"<script(?! type=\"module\" src=\"[\w.]+\")| on[a-z]+=\"|https?://(?!127\.0\.0\.1)[\w]", text
        ), name


def test_page_is_read_with_the_script_of_captures():
    from cache.page_scripts import script

    assert script("visible_text").strip() in files()["read_page.js"].decode()


def test_same_files_give_the_same_zip():
    assert archive() == archive()
    with zipfile.ZipFile(io.BytesIO(archive())) as packed:
        assert {name.removeprefix("assay-extension/") for name in packed.namelist()} == files().keys()
        assert packed.read("assay-extension/manifest.json") == files()["manifest.json"]


def test_extension_is_written_into_a_folder(tmp_path: Path):
    write_files(tmp_path / "new" / "one")
    write_files(tmp_path / "new" / "one")
    assert {path.name: path.read_bytes() for path in (tmp_path / "new" / "one").iterdir()} == files()
    assert version() == manifest()["version"]

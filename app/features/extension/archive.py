"""Files of the browser extension (Manifest V3), as a folder or a zip.

They include the page script of our own captures (``cache.page_scripts``), so both extract pages in the same way.
"""

from __future__ import annotations

import io
import json
import zipfile
from importlib import resources
from pathlib import Path

from cache.page_scripts import script

_PAGE_SCRIPT = "read_page.js"
_DATE = (2026, 1, 1, 0, 0, 0)
"""Modification time of every file in the zip, so that equal files give equal bytes."""


def files() -> dict[str, bytes]:
    """Return all files of the extension by name. Blocks: reads a few files."""
    folder = resources.files("app.features.extension").joinpath("browser")
    contents = {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}
    source = "// From assay's cache/page_scripts/visible_text.js."
    reader = f"{source}\nglobalThis.assayRead = (\n{script('visible_text')});\n"
    contents[_PAGE_SCRIPT] = reader.encode()
    return dict(sorted(contents.items()))


def version() -> str:
    """Return the version of the extension."""
    manifest = resources.files("app.features.extension").joinpath("browser", "manifest.json").read_text("utf-8")
    return str(json.loads(manifest)["version"])


def archive() -> bytes:
    """Return all files as a zip. Blocks for some milliseconds."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files().items():
            out.writestr(zipfile.ZipInfo(f"assay-extension/{name}", _DATE), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def write_files(folder: Path) -> list[Path]:
    """Write all files to a folder, which is created if necessary. Blocks.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / name for name in files()]
    for path, data in zip(written, files().values(), strict=True):
        path.write_bytes(data)
    return written

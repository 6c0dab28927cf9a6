"""The browser extension (Manifest V3) as it is handed out: its files, in a folder or as a zip.

It contains the script with which our own captures read a page (``cache.page_scripts``), so both read a page alike.
"""

from __future__ import annotations

import io
import json
import zipfile
from importlib import resources
from pathlib import Path

from cache.page_scripts import script

_READER = "read_page.js"
_DATE = (2026, 1, 1, 0, 0, 0)
"""Of every file in the zip: the same files give the same bytes."""


def files() -> dict[str, bytes]:
    """Every file of the extension, by its name. Blocks: reads a few files."""
    folder = resources.files("app.features.extension").joinpath("browser")
    found = {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}
    source = "// From assay's cache/page_scripts/visible_text.js."
    reader = f"{source}\nglobalThis.assayRead = (\n{script('visible_text')});\n"
    found[_READER] = reader.encode()
    return dict(sorted(found.items()))


def version() -> str:
    """The extension's own version."""
    manifest = resources.files("app.features.extension").joinpath("browser", "manifest.json").read_text("utf-8")
    return str(json.loads(manifest)["version"])


def archive() -> bytes:
    """All of it as a zip. Blocks for some milliseconds."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files().items():
            out.writestr(zipfile.ZipInfo(f"assay-extension/{name}", _DATE), data, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def write(folder: Path) -> list[Path]:
    """Write all files into a folder, which is made if need be. Blocks.

    Raises:
        OSError: that cannot be done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / name for name in files()]
    for path, data in zip(written, files().values(), strict=True):
        path.write_bytes(data)
    return written

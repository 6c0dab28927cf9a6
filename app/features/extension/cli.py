"""``assay admin extension``: write the browser extension to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.console.connection import JsonOption
from app.console.errors import CliError, WrongUsage
from app.console.streams import print_json, stdout_console


def extension(
    out: Annotated[Path, typer.Option("--out", help="Folder to write to. It is created if necessary.")],
    as_json: JsonOption = False,
) -> None:
    """Write the browser extension to a folder. A browser loads it from there."""
    from app.features.extension.archive import version, write_files

    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "manifest.json").is_file())):
        raise WrongUsage(
            f"{out} contains other files", hint="Give a new folder, or one that contains an earlier version."
        )
    try:
        written = write_files(out)
    except OSError as error:
        raise CliError(f"Cannot write {out}: {error.strerror or error}") from error
    if as_json:
        print_json({"folder": str(out.resolve()), "version": version(), "files": [path.name for path in written]})
        return
    stdout_console().print(f"wrote the extension {version()} to {out}", soft_wrap=True, highlight=False)
    stdout_console().print(
        "load it in chrome://extensions (developer mode, “Load unpacked”), then pair it: dashboard, Pages",
        soft_wrap=True,
    )

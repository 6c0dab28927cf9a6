"""``assay extension``: the browser extension that hands in pages which only a person gets to see."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.console.connection import JsonOption
from app.console.errors import CliError, WrongUsage
from app.console.streams import output, print_json


def extension(
    out: Annotated[Path, typer.Option("--out", help="The folder to write it into; made if it is not there.")],
    as_json: JsonOption = False,
) -> None:
    """Write the browser extension into a folder, for a browser to load."""
    from app.features.extension.archive import version, write

    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "manifest.json").is_file())):
        raise WrongUsage(
            f"{out} holds something else", hint="name a new folder, or one with an earlier extension in it"
        )
    try:
        written = write(out)
    except OSError as error:
        raise CliError(f"{out} cannot be written: {error.strerror or error}") from error
    if as_json:
        print_json({"folder": str(out.resolve()), "version": version(), "files": [path.name for path in written]})
        return
    output().print(f"wrote the extension {version()} to {out}", soft_wrap=True, highlight=False)
    output().print(
        "load it in chrome://extensions (developer mode, “Load unpacked”), then pair it: dashboard, Pages",
        soft_wrap=True,
    )

"""Answer files that a command is given by path."""

from __future__ import annotations

from pathlib import Path

from app.console.errors import WrongUsage


def read_answers(path: Path) -> list[tuple[str, str]]:
    """The (name, text) of an answer file, or of every ``*.md`` in a folder.

    Raises:
        WrongUsage: there is none, or one cannot be read as UTF-8.
    """
    if path.is_dir():
        files = sorted(path.glob("*.md"))
        if not files:
            raise WrongUsage(f"no *.md in {path}")
    elif path.is_file():
        files = [path]
    else:
        raise WrongUsage(f"there is no file or folder {path}")
    try:
        return [(file.name, file.read_text(encoding="utf-8")) for file in files]
    except UnicodeDecodeError as error:
        raise WrongUsage(f"an answer in {path} is not UTF-8: {error}") from error
    except OSError as error:
        raise WrongUsage(f"{error.filename} cannot be read: {error.strerror}") from error

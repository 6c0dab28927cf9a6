"""Reader for answer files given by path."""

from __future__ import annotations

from pathlib import Path

from app.console.errors import WrongUsage


def read_answers(path: Path) -> list[tuple[str, str]]:
    """Return (name, text) of an answer file, or of every ``*.md`` in a folder.

    Raises:
        WrongUsage: There are no answers, or one cannot be read as UTF-8.
    """
    if path.is_dir():
        files = sorted(path.glob("*.md"))
        if not files:
            raise WrongUsage(f"no *.md files in {path}")
    elif path.is_file():
        files = [path]
    else:
        raise WrongUsage(f"no such file or folder: {path}")
    try:
        return [(file.name, file.read_text(encoding="utf-8")) for file in files]
    except UnicodeDecodeError as error:
        raise WrongUsage(f"an answer in {path} is not UTF-8: {error}") from error
    except OSError as error:
        raise WrongUsage(f"cannot read {error.filename}: {error.strerror}") from error

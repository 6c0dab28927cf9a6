from __future__ import annotations

import pytest

from app.console.streams import print_error, suggestion


@pytest.mark.parametrize(
    ("wanted", "known", "sentence"),
    [
        ("brige", ["bridge", "tower"], "Did you mean: bridge?"),
        ("zzz", ["bridge", "tower"], "Available: bridge, tower"),
        ("zzz", [f"t{n:02}" for n in range(14)], f"Available: {', '.join(f't{n:02}' for n in range(12))}, ..."),
    ],
    ids=["near", "few", "many"],
)
def test_suggestion_lists_similar_or_available_names(wanted: str, known: list[str], sentence: str) -> None:
    assert suggestion(wanted, known) == sentence


def test_error_is_written_to_stderr_without_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("no [bold] file /a/[b]", "try [this]")

    captured = capsys.readouterr()
    assert captured.err == "error: no [bold] file /a/[b]\ntry [this]\n"
    assert captured.out == ""

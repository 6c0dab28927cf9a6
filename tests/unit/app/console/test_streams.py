from __future__ import annotations

import json

import pytest

from app.console.streams import print_error, print_json, suggestion


@pytest.mark.parametrize(
    ("wanted", "known", "sentence"),
    [
        ("brige", ["bridge", "tower"], "Did you mean: bridge?"),
        ("zzz", ["bridge", "tower"], "Available: bridge, tower"),
        ("zzz", [], "None exist."),
        ("zzz", [f"t{n:02}" for n in range(14)], f"Available: {', '.join(f't{n:02}' for n in range(12))}, ..."),
    ],
    ids=["near", "few", "none", "many"],
)
def test_suggestion_lists_similar_or_available_names(wanted: str, known: list[str], sentence: str) -> None:
    assert suggestion(wanted, known) == sentence


def test_json_is_one_document_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "Vellmår", "list": [1]})

    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"name": "Vellmår", "list": [1]}
    assert captured.err == ""


def test_error_is_written_to_stderr_without_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("no [bold] file /a/[b]", "try [this]")

    captured = capsys.readouterr()
    assert captured.err == "error: no [bold] file /a/[b]\ntry [this]\n"
    assert captured.out == ""

from __future__ import annotations

import pytest

from app.console.streams import print_error


def test_error_is_written_to_stderr_without_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("no [bold] file /a/[b]", "try [this]")

    captured = capsys.readouterr()
    assert captured.err == "error: no [bold] file /a/[b]\ntry [this]\n"
    assert captured.out == ""

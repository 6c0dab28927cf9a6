"""Attack: escape sequences in answers, pages, replies or server messages that control the user's terminal."""

from __future__ import annotations

import io
import json
import logging
import re

import pytest
import structlog
from rich.table import Table

from app.console import streams
from app.console.safe_console import SafeConsole
from app.observability.logs import Redactor, configure_logging
from tests.architecture.sources import ROOT, python_files

ATTACK = "\x1b]0;owned\x07 \x1b[2J\x1b[1A \x9b31m \x90payload\x9c \r hidden \x08\x08 \u202egnp.exe\u2066 \x7f"
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OWN_STYLES = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|[0-9]*[AKG]|2K)")


class Terminal(io.StringIO):
    """Text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def assert_harmless(text: str) -> None:
    """Fail if a text has control characters other than those of rich's styles and cursor movements."""
    assert not DANGEROUS.search(OWN_STYLES.sub("", text)), repr(text)
    assert "\x1b[2J" not in text and "\x1b]0" not in text


def safe_console() -> tuple[SafeConsole, io.StringIO]:
    written = io.StringIO()
    return SafeConsole(file=written, force_terminal=True, width=100), written


def test_printed_text_and_tables_are_harmless() -> None:
    console, written = safe_console()
    table = Table(ATTACK)
    table.add_row(ATTACK)
    console.print(table)
    console.print(ATTACK, markup=False, soft_wrap=True)
    console.print(f"[bold]{ATTACK}[/]")
    assert "owned" in written.getvalue()
    assert_harmless(written.getvalue())


def test_markup_of_untrusted_text_sets_no_hyperlink() -> None:
    markup = "[link https://a\x07\x9b2J]name[/]"
    console, written = safe_console()
    table = Table("title")
    table.add_row(markup)
    console.print(table)
    console.print(markup)
    assert "name" in written.getvalue() and "https://a" not in written.getvalue()
    assert_harmless(written.getvalue())


def test_errors_and_json_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    streams.print_error(ATTACK, ATTACK)
    document = {"title": ATTACK}
    streams.print_json(document)
    output = capsys.readouterr()
    assert_harmless(output.err)
    assert not DANGEROUS.search(output.out)
    assert json.loads(output.out) == document


def test_logs_are_harmless() -> None:
    written = Terminal()
    configure_logging(Redactor(()), stream=written)
    structlog.get_logger("app.test").warning(f"event {ATTACK}", url=ATTACK, nested={"names": [ATTACK]})
    logging.getLogger("library").warning("message %s", ATTACK)
    try:
        raise ValueError(ATTACK)
    except ValueError:
        structlog.get_logger("app.test").exception("failed")
    assert written.getvalue().count("owned") >= 5
    assert_harmless(written.getvalue())


def test_every_console_is_a_safe_console() -> None:
    unsafe = [
        str(path.relative_to(ROOT))
        for path in python_files("app", "judges", "cache", "answers", "rubrics")
        if re.search(r"(?<![A-Za-z])Console\(", re.sub(r"class SafeConsole\(Console\)", "", path.read_text("utf-8")))
    ]
    assert unsafe == []

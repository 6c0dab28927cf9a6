from __future__ import annotations

from io import StringIO

from rich.console import Console

from app.console.progress import ProgressBoard, Step


def plain() -> tuple[Console, StringIO]:
    written = StringIO()
    return Console(file=written, width=80, highlight=False), written


def terminal() -> tuple[Console, StringIO]:
    written = StringIO()
    return Console(file=written, width=80, height=24, force_terminal=True, highlight=False), written


def test_each_change_of_stage_is_one_line_without_a_terminal() -> None:
    console, written = plain()

    with ProgressBoard(console, 1) as board:
        board.update("otter bridge", Step(stage="capturing", done=0, total=3, unit="pages"))
        board.update("otter bridge", Step(stage="capturing", done=2, total=3, unit="pages"))
        board.update("otter bridge", Step(stage="judging", done=0, total=9, unit="checks"))
        board.finish("otter bridge", "otter bridge  judged")

    assert written.getvalue().splitlines() == [
        "otter bridge  capturing",
        "otter bridge  judging",
        "otter bridge  judged",
    ]


def test_bar_shows_progress_on_a_terminal() -> None:
    console, written = terminal()

    with ProgressBoard(console, 2) as board:
        board.update("otter bridge", Step(stage="capturing", done=2, total=3, unit="pages"))
        board.update("otter tower", Step(stage="queued"))
        board.finish("otter bridge", "otter bridge  judged")

    text = written.getvalue()
    assert "2/3 pages" in text
    assert "1/2 answers" in text
    assert "otter bridge  judged" in text

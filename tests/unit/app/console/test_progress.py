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


def test_updates_after_the_end_of_an_answer_are_ignored() -> None:
    console, written = plain()

    with ProgressBoard(console, 1) as board:
        board.finish("otter", "otter  judged")
        board.update("otter", Step(stage="judging"))
        board.finish("otter", "otter  judged twice")

    assert written.getvalue() == "otter  judged\n"


def test_long_names_fit_a_narrow_terminal() -> None:
    console, written = terminal()
    label = "a-very-long-agent-name some_even_longer_task_identifier answer_17.md"

    with ProgressBoard(console, 1) as board:
        board.update(label, Step(stage="capturing", done=1, total=20, unit="pages"))

    assert "answer_17.md" in written.getvalue()
    assert label not in written.getvalue()

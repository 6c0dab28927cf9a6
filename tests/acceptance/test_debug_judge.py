"""A judge under a debugger: ``assay evaluate --debug-judge`` in a pseudo-terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from app.console.errors import Exit
from tests.fakes.program import environment_for
from tests.fakes.warm_start import warm_assay
from tests.integration.app.judged_folder import SCRIPT

IN_TERMINAL = (sys.executable, "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)")
NATIVE = """
from judges.registry import judge

@judge(task="bridge", description="When was the old bridge of Vellmar built?")
async def bridge(ctx):
    year = 882 * 2
    breakpoint()
    ctx.check("year", str(year) in ctx.answer.text)
"""
PUBLIC = SCRIPT.replace("    leaf =", "    year = 882 * 2\n    breakpoint()\n    leaf =").replace(
    ', leaf, "https://towns.example/vellmar")', ", leaf)"
)
COMMANDS = "p f'the year is {year}'\ncontinue\n"


def evaluate(home: Path, source: str, *program: str, said: str) -> subprocess.CompletedProcess[str]:
    (home / "judges").mkdir()
    (home / "judges" / "bridge.py").write_text(source)
    for task in ("1", "2"):
        path = home / "answers" / "otter" / "bridge" / f"answer_{task}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("The old bridge of Vellmar was built in 1764.")
    command = [*program, warm_assay(), "evaluate", "--agent", "otter", "--judges", "judges", "--debug-judge"]
    return subprocess.run(
        command, cwd=home, env=environment_for(home), input=said, capture_output=True, text=True, timeout=120
    )


def test_breakpoint_reads_and_prints_in_the_terminal_for_one_answer_at_a_time(tmp_path: Path) -> None:
    ended = evaluate(tmp_path, PUBLIC, *IN_TERMINAL, said=COMMANDS * 2)

    assert ended.stdout.count("'the year is 1764'") == 2, ended.stdout
    events = re.findall(r"\(Pdb\) p|answer_[12]\.md\s+\S*judged", ended.stdout)
    assert [event.startswith("(Pdb)") for event in events] == [True, False, True, False], events
    results = sorted((tmp_path / "eval_results" / "otter").glob("bridge/answer_*/results/*.json"))
    assert [json.loads(path.read_text())["final_score"] for path in results] == [1.0, 1.0]


def test_debugger_without_a_terminal_is_refused(tmp_path: Path) -> None:
    ended = evaluate(tmp_path, NATIVE, said="")

    assert (ended.returncode, ended.stdout) == (Exit.USAGE, "")
    assert "--debug-judge needs a terminal" in ended.stderr

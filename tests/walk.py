"""Walk of a new user through the first hour, in a fresh clone: prints each step with its time, as a Markdown table.

``python -m tests.walk`` clones the last commit of this checkout. Ports 8000 and 8765 must be free.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
STEP_S = 900.0
README_BLOCK = "sed -n '/^source .venv/,/^```/p' README.md | grep -v '^```' > block.sh"
ANSWER = "'## Ferry\\n- Leaves: 8:40\\n- Arrives: 9:25\\n- Source: http://127.0.0.1:8765/museum/ferry\\n'"
SITE = "python scripts/demo_site.py > site.log & while ! grep -q Demo site.log; do sleep 0.1; done"
EVALUATE = "assay evaluate --agent me --model lexical"
BOTH = "assay evaluate --agent demo --agent demo-careless --answers answers/examples --model lexical"
SERVED = "while ! curl -s 127.0.0.1:8000/v1/results | grep -q demo-careless; do sleep 0.5; done"
SUBMIT = "assay submit answers/me/karrow_visit/answer_1.md --agent me --task karrow_visit --wait"
STEPS = (
    ("install", "make setup", 0),
    ("see the demo", "make demo", 0),
    ("judge a hand-made answer with a service", f"{README_BLOCK}; . ./block.sh; c=$?; kill %1 %2; wait; exit $c", 0),
    (
        "write an own answer",
        f"mkdir -p answers/me/karrow_visit; printf {ANSWER} > answers/me/karrow_visit/answer_1.md",
        0,
    ),
    ("judge it without a server: its page is denied", f"{SITE}; {EVALUATE}; code=$?; kill %1; exit $code", 3),
    ("allow the page, judge again", f"{SITE}; ASSAY_EGRESS_ALLOW=127.0.0.1:8765 {EVALUATE}; kill %1", 0),
    (
        "judge two agents, read the largest losses and the comparison",
        f"{SITE}; ASSAY_EGRESS_ALLOW=127.0.0.1:8765 {BOTH} > out.txt; c=$?; kill %1; "
        "grep -q 'largest losses' out.txt && grep -q 'worse on' out.txt && exit $c",
        3,
    ),
    (
        "open results, a bundle and a check",
        "export BROWSER=true; assay view && assay bundle export --agent demo --results eval_results --out demo.zip && "
        "assay view demo.zip && assay check --json > check.json && assay view check.json",
        0,
    ),
    ("gate an agent", "assay results gate --agent demo --results eval_results --min-score 0.9", 0),
    ("see both in the dashboard", f"assay serve > serve.log 2>&1 & {SERVED}; kill -INT %1; wait; exit 0", 0),
    (
        "submit to a service without a key",
        "ASSAY_MODEL=openai/gpt-6-luna assay serve > serve.log 2>&1 & "
        "while ! grep -q 'serves at' serve.log; do sleep 0.2; done; "
        f"{SUBMIT} 2> out.txt; c=$?; kill -INT %1; wait; grep -q MODEL_NOT_CONFIGURED out.txt && exit $c",
        3,
    ),
    ("create an own task", "assay tasks new my_task 2> hint.txt; cat hint.txt", 0),
    ("test it with the command of the hint", "$(grep -o 'assay tasks test .*' hint.txt)", 0),
    ("create a task in Python", "assay tasks new py_task --python 2> hint.txt; cat hint.txt", 0),
    ("test it with the command of the hint", "$(grep -o 'python judges.d.*' hint.txt)", 0),
    ("check the citations of a report", "assay check --html check.html", 0),
    ("mistype a command", "assay evaluat", 2),
    ("interrupt a service", "assay serve & sleep 8; kill -INT %1; time wait %1; exit $?", 130),
)


def main() -> int:
    """Run all steps. Return 0 if each one ended with its expected exit code."""
    with tempfile.TemporaryDirectory(prefix="assay-walk-") as folder:
        clone = Path(folder, "assay")
        subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(clone)], check=True)
        rows, failed = [], False
        for what, command, code in STEPS:
            activate = "source .venv/bin/activate; " if command != "make setup" else ""
            started = time.monotonic()
            ended = subprocess.run(
                ["bash", "-c", f"set -m; {activate}{command}"],
                cwd=clone,
                capture_output=True,
                text=True,
                timeout=STEP_S,
            )
            seconds = time.monotonic() - started
            rows.append(f"| {what} | {seconds:.0f} s |")
            failed |= ended.returncode != code
            note = "" if ended.returncode == code else f": exit code {ended.returncode}\n{ended.stdout}{ended.stderr}"
            sys.stderr.write(f"{what}: {seconds:.1f} s{note}\n")
    sys.stdout.write("\n".join(["| step | time |", "|---|---|", *rows]) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

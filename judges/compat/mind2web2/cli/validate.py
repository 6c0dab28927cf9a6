"""``mind2web2 validate``: check the files of an agent before evaluation."""

from __future__ import annotations

import argparse
from collections import Counter

from mind2web2.cli import _common as common
from mind2web2.submission import validate_submission


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_agent(parser)
    common.add_answers_dir(parser)
    common.add_task_list(parser)
    common.add_num_runs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print all errors and warnings. Return 1 if there is an error."""
    tasks = common.read_task_list(arguments.task_list)
    task_ids = None if tasks is None else [task.task_id for task in tasks]
    folder = arguments.answers_dir / arguments.agent
    issues = validate_submission(folder, task_ids, arguments.num_runs)
    for issue in issues:
        common.print_line(f"{issue.level}: {folder / issue.path}: {issue.message}")
    levels = Counter(issue.level for issue in issues)
    counts = (f"{n} {level}{'s' * (n != 1)}" for level in ("error", "warning") for n in [levels[level]])
    common.print_line(f"{arguments.agent}: {', '.join(counts)}")
    return common.FAILED if levels["error"] else 0

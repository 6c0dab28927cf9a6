"""``mind2web2 metrics``: compute the metrics of an agent from its results."""

from __future__ import annotations

import argparse
import json

from cache.terminal_text import escape_controls_in_json
from mind2web2.cli import _common as common
from mind2web2.metrics import agent_metrics, discover_tasks, format_report, save_metrics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_agent(parser)
    common.add_answers_dir(parser)
    common.add_results_dir(parser)
    common.add_task_list(parser)
    common.add_num_runs(parser)
    parser.add_argument("--json", action="store_true", help="print the metrics as JSON")
    parser.add_argument("--no-save", action="store_true", help="do not write RESULTS/AGENT/metrics.json")


def run(arguments: argparse.Namespace) -> int:
    """Print the metrics and write ``metrics.json``."""
    agent, answers, results = arguments.agent, arguments.answers_dir, arguments.results_dir
    tasks = common.read_task_list(arguments.task_list)
    has_folder = (answers / agent).is_dir() or (results / agent).is_dir()
    if not (has_folder if tasks else discover_tasks(agent, answers, results)):
        raise common.CommandError(
            f"no answers of {agent!r} in {answers / agent} or {results / agent}: add <task_id>/answer_<k>.md files"
        )
    try:
        metrics = agent_metrics(agent, answers, results, tasks, arguments.num_runs, arguments.task_list)
    except ValueError as error:
        raise common.CommandError(str(error)) from error
    if arguments.json:
        common.print_line(escape_controls_in_json(json.dumps(metrics, indent=2, ensure_ascii=False)))
    else:
        common.print_line(format_report(metrics))
    if not arguments.no_save:
        common.print_note(f"metrics: {save_metrics(metrics, results)}")
    return 0

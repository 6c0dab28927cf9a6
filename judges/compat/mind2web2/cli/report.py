"""``mind2web2 report``: write ``report.html`` from the results of an agent."""

from __future__ import annotations

import argparse
from pathlib import Path

from mind2web2.cli import _common as common
from mind2web2.report import write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_agent(parser)
    common.add_results_dir(parser)
    common.add_cache_dir(parser)
    common.add_task(parser)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="file to write (default: RESULTS/AGENT/report.html)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the report and print its path."""
    try:
        path = write_report(
            arguments.agent,
            arguments.results_dir,
            arguments.cache_dir,
            arguments.task,
            arguments.output,
            on_problem=common.print_note,
        )
    except ValueError as error:  # no answers, or invalid metadata
        raise common.CommandError(str(error)) from error
    common.print_line(f"report: {path}")
    return 0

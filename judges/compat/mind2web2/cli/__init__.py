"""The command ``mind2web2``: the interface of the public toolkit over what assay does.

Each subcommand is a module of this package with ``add_arguments(parser)`` and ``run(arguments) -> int``. It is imported
only when it is used.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from mind2web2.cli._common import CommandError, library_events_on_stderr, print_error

COMMANDS = {
    "validate": "check the files of an agent before evaluation",
    "cache": "capture the pages that an agent's answers cite",
    "evaluate": "judge the answers of an agent, then write metrics and report",
    "metrics": "compute the metrics of an agent from its results",
    "report": "write report.html from the results of an agent",
}
"""Subcommands in the order of a run, with their help texts."""

USAGE = "The exit code is 0 on success, 1 if the command failed, and 2 for wrong usage."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code. ``argv`` defaults to the arguments of the process.

    Raises:
        SystemExit: The usage is wrong (code 2), or help was requested (code 0).
    """
    given = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="mind2web2", description="Evaluate cited answers in the public Mind2Web 2 folder layout.", epilog=USAGE
    )
    subcommands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        subparser = subcommands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if given[:1] == [name]:
            module = importlib.import_module(f"{__name__}.{name}")
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    arguments = parser.parse_args(given)
    try:
        with library_events_on_stderr():
            exit_code: int = arguments.run(arguments)
    except CommandError as error:
        print_error(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        print_error("interrupted; finished work is saved. Run the same command to resume.")
        return 130
    except Exception as error:  # noqa: BLE001 - users of the toolkit expect one line, not a traceback
        print_error(f"unexpected error: {type(error).__name__}: {error}")
        return 1
    return exit_code

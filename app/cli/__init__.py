"""The command line: ``assay``. Only ``main`` is for others; each command is a file of its own."""

import gc

from app.cli.malloc import give_back_large_blocks
from judges.gc_tuning import collect_seldom


def main() -> None:
    """Run the command named by the arguments of this process, and exit with its code."""
    collect_seldom()
    give_back_large_blocks()
    from app.cli.program import run

    try:
        run()
    finally:
        # By now everything is closed. What is left are modules by the thousand, which the interpreter would go
        # through once more at its end: seconds, for a service that was told to stop at once.
        gc.freeze()

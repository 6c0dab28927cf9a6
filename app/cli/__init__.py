"""Command line ``assay``. Each command has its own module; the public interface is ``main``."""

import gc
import os

from cache.confinement.privileges import set_dumpable
from judges.gc_tuning import delay_collection


def main() -> None:
    """Run the command in the arguments of this process and exit with its code.

    Files that it writes, its memory and its environment are private to the user, because they contain answers,
    evidence and keys.
    """
    os.umask(0o077)
    set_dumpable(allowed=False)
    delay_collection()
    from app.cli.program import run

    try:
        run()
    finally:
        # Everything is closed now. Without this, the interpreter would collect thousands of modules at exit, which
        # takes seconds.
        gc.freeze()

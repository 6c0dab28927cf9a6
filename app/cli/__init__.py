"""Command line ``assay``. Each command has its own module; the public interface is ``main``."""

import gc

from app.cli.malloc import set_mmap_threshold
from judges.gc_tuning import raise_gc_thresholds


def main() -> None:
    """Run the command in the arguments of this process and exit with its code."""
    raise_gc_thresholds()
    set_mmap_threshold()
    from app.cli.program import run

    try:
        run()
    finally:
        # Everything is closed now. Without this, the interpreter would collect thousands of modules at exit, which
        # takes seconds.
        gc.freeze()

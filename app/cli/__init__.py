"""Command line ``assay``. Each command has its own module; the public interface is ``main``."""

import gc
import os
import sys


def main() -> None:
    """Run the command in the arguments of this process and exit with its code.

    Files that it writes, its memory and its environment are private to the user, because they contain answers,
    evidence and keys.
    """
    try:
        from app.interruption import INTERRUPTION  # imported here, so that Ctrl-C is handled from the first moment on

        INTERRUPTION.install()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted\n")
        raise SystemExit(130) from None
    try:
        os.umask(0o077)
        from cache.confinement.privileges import set_dumpable
        from judges.gc_tuning import delay_collection

        set_dumpable(allowed=False)
        delay_collection()
        from app.cli.program import run

        run()
    except BaseException:  # of a command that is being interrupted, no error is shown
        if INTERRUPTION.signal_number is None:
            raise
        INTERRUPTION.announce()
        raise SystemExit(INTERRUPTION.exit_code) from None
    finally:
        INTERRUPTION.wait_for_forced_exit()
        # Everything is closed now. Without this, the interpreter would collect thousands of modules at exit, which
        # takes seconds.
        gc.freeze()

"""End of a command after Ctrl-C (SIGINT) or SIGTERM: one message, exit code 130 or 143, no child process left.

The first signal interrupts the command, which then closes what it opened. If that takes longer than ``GRACE_S``, or
after a second signal, the process ends at once: a thread kills the child processes, so that nothing that never returns
can prevent it. A file descriptor that the kernel writes to wakes the thread even if the main thread is in a C function.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

GRACE_S = 1.2
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = "\x1b[?25h"


class Interruption:
    """State of the interruption of this process. Use the instance ``INTERRUPTION``."""

    def __init__(self) -> None:
        self.signal_number: int | None = None
        """Signal that interrupts this process; None while there was none."""
        self.message = "Interrupted"
        """What the command says at its end, set by commands whose work can be resumed."""
        self.is_installed = False
        self._is_handled = False
        self._write_end = -1
        self._at_forced_exit: list[Callable[[], object]] = []
        self._started = threading.Lock()
        self._announced = threading.Lock()
        self._forced = threading.Lock()

    @property
    def exit_code(self) -> int:
        return 128 + (self.signal_number or signal.SIGINT)

    def install(self) -> None:
        """Handle the signals in this process. Call it again after an event loop has handled them."""
        if not self.is_installed:
            self.is_installed = True
            read_end, self._write_end = os.pipe()
            os.set_blocking(self._write_end, False)
            threading.Thread(target=self._watch, args=(read_end,), name="interruption", daemon=True).start()
        for signum in SIGNALS:
            signal.signal(signum, self._on_signal)
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)

    def begin(self, signum: int) -> bool:
        """Start the grace period. Return whether this is the first signal; a second one ends the process at once."""
        self._start(signum)
        if self._is_handled:
            self.force()
            return False
        self._is_handled = True
        return True

    def announce(self) -> None:
        """Print ``message`` to stderr, once in this process."""
        if self._announced.acquire(blocking=False):
            with suppress(OSError, ValueError):
                sys.stderr.write(f"{self.message}\n")
                sys.stderr.flush()

    def at_forced_exit(self, action: Callable[[], object]) -> None:
        """Call ``action``, which must return at once, after the child processes were killed."""
        self._at_forced_exit.append(action)

    def force(self) -> None:
        """End the process now. Does not return, except in the second of two threads."""
        if not self._forced.acquire(blocking=False):
            return
        with suppress(OSError, ValueError):
            if sys.stderr.isatty():
                sys.stderr.write(_SHOW_CURSOR)
        self.announce()
        try:
            with suppress(OSError):  # errors of the main thread about the killed processes are not shown
                null = os.open(os.devnull, os.O_WRONLY)
                for number in (1, 2):
                    os.dup2(null, number)
            _kill_descendants()
            for action in self._at_forced_exit:
                with suppress(Exception):
                    action()
        finally:
            os._exit(self.exit_code)

    def wait_for_forced_exit(self) -> None:
        """Let a running ``force`` finish: when it has killed the child processes, the main thread may end first."""
        if not self._forced.acquire(blocking=False):
            threading.Event().wait()

    def _on_signal(self, signum: int, _frame: object) -> None:
        if self.begin(signum):
            raise KeyboardInterrupt

    def _start(self, signum: int) -> None:
        if self._started.acquire(blocking=False):
            self.signal_number = signum
            timer = threading.Timer(GRACE_S, self.force)
            timer.daemon = True
            timer.start()

    def _watch(self, read_end: int) -> None:
        """Start the grace period as soon as a signal arrives, even if the main thread cannot handle it yet."""
        while number := os.read(read_end, 1):
            if number[0] in SIGNALS:
                self._start(number[0])


INTERRUPTION = Interruption()


def _kill_descendants() -> None:
    """Kill all child processes and their child processes, until there are none."""
    import psutil

    for _ in range(3):  # a process may start another one before it is killed
        children = psutil.Process().children(recursive=True)
        for child in children:
            with suppress(psutil.Error):
                child.kill()
        if not children:
            return
        psutil.wait_procs(children, timeout=0.3)

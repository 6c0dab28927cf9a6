"""Setup of a forked process that runs a judge file."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import tempfile
import traceback
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from judges.isolation.confining import apply_limits, exit_with_parent
from judges.isolation.limits import ScriptLimits

_FIRST_FD: Final = 3


def run_script_process(order: Mapping[str, Any], parent: int, talk_fd: int, ask_fd: int, printed: int) -> NoReturn:
    """Run a job in this process and exit.

    ``order`` contains ``entry`` (``module:function``, called with the two RPC sockets), ``limits`` (fields of
    ``ScriptLimits``) and ``folder`` (for temporary files). Standard output and error go to the pipe ``printed``. This
    process is killed when ``parent`` exits.
    """
    try:
        os.setsid()
        exit_with_parent(parent)
        null_fd = os.open(os.devnull, os.O_RDONLY)
        for source, place in ((null_fd, 0), (printed, 1), (printed, 2)):
            os.dup2(source, place)
        _close_all_but(talk_fd, ask_fd)
        tempfile.tempdir = str(order["folder"])
        module, _, function = str(order["entry"]).partition(":")
        entry = getattr(importlib.import_module(module), function)
        apply_limits(ScriptLimits(**order["limits"]))
        entry(socket.socket(fileno=talk_fd), socket.socket(fileno=ask_fd))
        sys.stdout.flush()
        os._exit(0)
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(1)


def _close_all_but(*kept: int) -> None:
    """Close all file descriptors except the standard streams and ``kept``."""
    first = _FIRST_FD
    for fd in sorted(kept):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))

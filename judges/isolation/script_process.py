"""How a forked process becomes the one that runs a judge file."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import tempfile
import traceback
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from judges.isolation.confining import confine, die_with
from judges.isolation.limits import ScriptLimits

_FIRST_OF_OURS: Final = 3


def become_script(order: Mapping[str, Any], parent: int, talk_fd: int, ask_fd: int, printed: int) -> NoReturn:
    """Run what is ordered, in this process, to its end.

    ``order``: ``entry`` is ``module:function`` and called with the two sockets of the conversation, ``limits`` are
    those of ``ScriptLimits``, ``folder`` is for temporary files. What is written to the standard streams goes to the
    pipe ``printed``. ``parent`` is the process this one must not outlive.
    """
    try:
        os.setsid()
        die_with(parent)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, place in ((nothing, 0), (printed, 1), (printed, 2)):
            os.dup2(source, place)
        _close_all_but(talk_fd, ask_fd)
        tempfile.tempdir = str(order["folder"])
        module, _, function = str(order["entry"]).partition(":")
        entry = getattr(importlib.import_module(module), function)
        confine(ScriptLimits(**order["limits"]))
        entry(socket.socket(fileno=talk_fd), socket.socket(fileno=ask_fd))
        sys.stdout.flush()
        os._exit(0)
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(1)


def _close_all_but(*kept: int) -> None:
    """Close every open file but the standard streams and ``kept``."""
    first = _FIRST_OF_OURS
    for fd in sorted(kept):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))

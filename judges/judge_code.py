"""Error boundary around judge code: every exception of a judge file becomes a ``JudgeBug`` with its traceback.

One of the two places that catch all exceptions. Cancellation and Ctrl-C pass through, and so does ``JudgeError``, which
is not the judge file's fault (for example a failed extraction).
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from judges.errors import JudgeBug, JudgeError, JudgeNotLoadable

MAX_TRACEBACK_CHARS = 20_000


@contextmanager
def judge_code(what: str) -> Iterator[None]:
    """Run judge code inside the block. ``what`` starts the error message.

    Raises:
        JudgeBug: the code raised, or tried to exit the process.
    """
    try:
        yield
    except JudgeError:
        raise
    except (Exception, SystemExit) as error:
        raise JudgeBug(f"{what}: {_line(error)}", traceback=_trace(error)) from error


@contextmanager
def judge_import(what: str) -> Iterator[None]:
    """Like ``judge_code``, for importing a judge file.

    Raises:
        JudgeNotLoadable: the file raised while it was imported.
    """
    try:
        with judge_code(what):
            yield
    except JudgeNotLoadable:
        raise
    except JudgeBug as error:
        raise JudgeNotLoadable(str(error), traceback=error.traceback) from error


def _line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[0]


def _trace(error: BaseException) -> str:
    """Return the traceback as text, cut at the start if it is too long: the end shows the error."""
    return "".join(traceback.format_exception(error))[-MAX_TRACEBACK_CHARS:]

"""The border to operator code: whatever a judge file raises becomes a ``JudgeBug`` with its traceback.

One of the two places where every exception is caught. Cancellation and Ctrl-C pass through, and so do
errors that are not the judge file's fault (``JudgeError``: an extraction that failed, for one).
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from judges.errors import JudgeBug, JudgeError, JudgeNotLoadable

MAX_TRACEBACK_CHARS = 20_000


@contextmanager
def judge_code(what: str) -> Iterator[None]:
    """Run operator code inside; ``what`` names it in the message.

    Raises:
        JudgeBug: the code raised, or tried to end the process.
    """
    try:
        yield
    except JudgeError:
        raise
    except (Exception, SystemExit) as error:
        raise JudgeBug(f"{what}: {_line(error)}", traceback=_trace(error)) from error


@contextmanager
def judge_import(what: str) -> Iterator[None]:
    """The same for importing a judge file.

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
    """The traceback as text, the end of it where it is very long: the end says what happened."""
    return "".join(traceback.format_exception(error))[-MAX_TRACEBACK_CHARS:]

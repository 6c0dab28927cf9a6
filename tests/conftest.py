"""Hypothesis profiles, equal conditions for each test, and a warning when browsers run without their sandbox."""

from __future__ import annotations

import gc
import inspect
import logging
import os
import signal
from collections.abc import Iterator

import httpx
import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.fakes.sandbox import sandbox_problem

# No deadlines: the duration of an example depends on the load of the machine. CI always runs the same examples, so
# that a failure there is caused by a change.
settings.register_profile(
    "usual",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize="CI" in os.environ,
)
settings.register_profile("thorough", settings.get_profile("usual"), max_examples=2000)
settings.load_profile("usual")

# A third of the time to collect the tests would be spent on garbage collection, which finds nothing then.
gc.disable()

# SIGINT is ignored under `nohup` and in background jobs of a script. Programs that a test starts inherit that, and
# the test could not stop them with SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A server or a client on a busy machine may not run for seconds. Clients discard idle connections well before a server
# closes them after five seconds.
_http_defaults = inspect.signature(httpx.Client.__init__).parameters
_timeout, _limits = _http_defaults["timeout"].default, _http_defaults["limits"].default
_timeout.connect = _timeout.read = _timeout.write = _timeout.pool = 240.0
_limits.keepalive_expiry = 1.0


@pytest.fixture(autouse=True)
def default_logging() -> Iterator[None]:
    """Undo the configuration of logging after each test: commands configure it, and some run in this process."""
    handlers, level = list(logging.root.handlers), logging.root.level
    yield
    logging.root.handlers, logging.root.level = handlers, level
    structlog.reset_defaults()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker per CPU for ``-n logical``; two for ``-n auto``, because tests of real processes mostly wait."""
    cpus = len(os.sched_getaffinity(0))
    return cpus if config.option.numprocesses == "logical" else min(2 * cpus, 12)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mix the files that start browsers and servers with the others, which need less of the CPU. End with others."""
    files = dict.fromkeys(_file(item) for item in items)
    heavy = [file for file in files if file.startswith(("tests/acceptance/", "tests/browser/", "tests/faults/"))]
    others = [file for file in files if file not in heavy]
    place = {file: 0.8 * nth / len(heavy) for nth, file in enumerate(heavy)}
    place |= {file: nth / len(others) for nth, file in enumerate(others)}
    items.sort(key=lambda item: place[_file(item)])


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Check for the browser sandbox before any event loop runs. Tests read the result inside an event loop."""
    gc.freeze()  # the garbage collector need not visit the collected tests, which live until the end
    gc.set_threshold(20_000, 20, 20)  # collect less often: tests are short, and the workers have enough memory
    gc.enable()
    if not session.config.option.collectonly and any(item.get_closest_marker("browser") for item in session.items):
        sandbox_problem()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Warn if browsers ran without their sandbox."""
    reports = (report for reports in terminalreporter.stats.values() for report in reports)
    if any("browser" in getattr(report, "keywords", ()) for report in reports) and (problem := sandbox_problem()):
        terminalreporter.write_line(f"browsers ran WITHOUT their sandbox, on the tests' own pages only: {problem}")

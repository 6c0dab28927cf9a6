"""Classification of the labelled pages and reading of the unusual pages, through a real browser."""

from __future__ import annotations

import asyncio
import logging
from functools import cache, partial

import structlog

from cache.backends.patchright import BrowserCapturer
from cache.capture import Capturer
from cache.egress.proxy import EgressProxy
from tests.awkward.captured import Awkward
from tests.awkward.captured import captured as captured_awkward
from tests.fakes.sandbox import installed_browser, unsandboxed_here
from tests.labelled.captured import captured as captured_labelled
from tests.labelled.labels import Detection, detection

AT_ONCE = 6


def _capturer(proxy: EgressProxy, *, unsandboxed: bool) -> Capturer:
    program = installed_browser()
    assert program is not None
    return BrowserCapturer(program, proxy, semaphore=asyncio.Semaphore(AT_ONCE), allow_unsandboxed=unsandboxed)


def _quietly() -> None:
    """Suppress the logs of captures."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


@cache
def detect() -> Detection:
    """Return the detection figures on the labelled pages."""
    _quietly()
    seen = asyncio.run(captured_labelled(partial(_capturer, unsandboxed=unsandboxed_here())))
    return detection({name: each.outcome for name, each in seen.items()})


@cache
def read_awkward() -> Awkward:
    """Return which unusual pages are captured completely, and which errors have the right outcome."""
    _quietly()
    return asyncio.run(captured_awkward(partial(_capturer, unsandboxed=unsandboxed_here())))

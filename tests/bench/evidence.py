"""What is told apart and what is read: the labelled pages and the awkward ones, through a real browser."""

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


def _capturer(guard: EgressProxy, *, unsandboxed: bool) -> Capturer:
    program = installed_browser()
    assert program is not None
    return BrowserCapturer(program, guard, semaphore=asyncio.Semaphore(AT_ONCE), allow_unsandboxed=unsandboxed)


def _quietly() -> None:
    """What pages do is measured here, not told."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


@cache
def detect() -> Detection:
    """How the detector does on the labelled pages."""
    _quietly()
    seen = asyncio.run(captured_labelled(partial(_capturer, unsandboxed=unsandboxed_here())))
    return detection({name: each.outcome for name, each in seen.items()})


@cache
def read_awkward() -> Awkward:
    """Which awkward pages come back whole, and which errors are called what they are."""
    _quietly()
    return asyncio.run(captured_awkward(partial(_capturer, unsandboxed=unsandboxed_here())))

"""Hosts that cannot be captured need no browser: the program of these captures does not exist."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cache.backends.patchright import BrowserCapturer
from cache.capture import CaptureOutcome
from cache.egress.proxy import EgressProxy
from tests.fakes.egress import TableResolver

HOSTS = TableResolver(private_test=[["10.0.0.1"]], public_test=[["93.184.216.34"]])


@pytest.mark.parametrize(
    ("url", "outcome", "detail", "gone"),
    [
        ("https://gone.invalid/report", CaptureOutcome.DNS_ERROR, "gone.invalid", True),
        ("https://private.test/", CaptureOutcome.EGRESS_DENIED, "ASSAY_EGRESS_ALLOW=private.test:443", False),
        ("https://public.test:6666/", CaptureOutcome.EGRESS_DENIED, "ASSAY_EGRESS_ALLOW=public.test:6666", False),
    ],
)
async def test_hosts_that_cannot_be_captured_start_no_browser(
    url: str, outcome: CaptureOutcome, detail: str, gone: bool
) -> None:
    async with EgressProxy(resolver=HOSTS) as proxy:
        capturer = BrowserCapturer(Path("missing-browser"), proxy, semaphore=asyncio.Semaphore(1))
        seen = await capturer.capture(url)
        assert (seen.outcome, seen.gone) == (outcome, gone)
        assert detail in seen.detail
        assert (seen.final_url, seen.chain) == (url, (url,))
        await capturer.aclose()

"""Serve the demo web site on loopback until interrupted, for the quick start in README.md."""

from __future__ import annotations

import asyncio
import contextlib
import signal

from app.demo.site import DemoSite


async def serve_until_stopped() -> None:
    stopped = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
    async with DemoSite() as site:
        print(f"Demo pages: {site.url} (to capture them, set ASSAY_EGRESS_ALLOW={site.egress_allow})", flush=True)
        await stopped.wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_until_stopped())

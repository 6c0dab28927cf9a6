"""Browser extension in a real Chromium: the toolbar button and the popup it opens.

The button is pressed with the browser's ``Extensions.triggerAction``, which grants ``activeTab`` like a press by a
person. So the extension is tested as shipped, without additional permissions.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchright.async_api import BrowserContext, CDPSession, Page, async_playwright

_WAIT_S = 120.0


@dataclass(slots=True)
class Popup:
    """Popup of the extension, controlled through the browser protocol because the driver does not list popups as
    pages.
    """

    browser: CDPSession
    session: str
    _next: int = 0

    async def run(self, script: str) -> Any:
        """Return the value of an expression in the popup."""
        options = {"expression": script, "awaitPromise": True, "returnByValue": True, "userGesture": True}
        result = await self.call("Runtime.evaluate", options)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def call(self, method: str, options: dict[str, Any]) -> dict[str, Any]:
        """Send one protocol command to the popup, and return its response."""
        self._next += 1
        number = self._next
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        def on_event(event: dict[str, Any]) -> None:
            message = json.loads(event["message"])
            if event["sessionId"] == self.session and message.get("id") == number and not answered.done():
                answered.set_result(message)

        self.browser.on("Target.receivedMessageFromTarget", on_event)
        try:
            call = {"id": number, "method": method, "params": options}
            sent = {"sessionId": self.session, "message": json.dumps(call)}
            await self.browser.send("Target.sendMessageToTarget", sent)
            message = await asyncio.wait_for(answered, _WAIT_S)
        finally:
            self.browser.remove_listener("Target.receivedMessageFromTarget", on_event)
        answer: dict[str, Any] = message["result"]
        return answer

    async def until(self, condition: str) -> None:
        async with asyncio.timeout(_WAIT_S):
            while not await self.run(condition):  # noqa: ASYNC110 - the state is in the browser
                await asyncio.sleep(0.05)

    async def text(self, selector: str) -> str:
        return str(await self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    async def fill(self, **fields: str) -> None:
        for name, value in fields.items():
            await self.run(f"document.querySelector('[name={name}]').value = {json.dumps(value)}")

    async def click(self, selector: str) -> None:
        await self.run(f"document.querySelector({json.dumps(selector)}).click()")


@dataclass(slots=True)
class Toolbar:
    """Browser with the extension and one tab."""

    context: BrowserContext
    page: Page
    extension_id: str
    browser: CDPSession

    async def press(self) -> Popup:
        """Press the extension's button on the tab, and return the popup after it has opened."""
        for tab in await self._targets("tab"):
            if tab["url"].startswith(f"chrome-extension://{self.extension_id}/"):
                await self.browser.send("Target.closeTarget", {"targetId": tab["targetId"]})
        [tab] = [one for one in await self._targets("tab") if not one["url"].startswith("chrome-extension:")]
        await self.browser.send("Extensions.triggerAction", {"id": self.extension_id, "targetId": tab["targetId"]})
        async with asyncio.timeout(_WAIT_S):
            while not (shown := await self._popups()):  # noqa: ASYNC110 - the state is in the browser
                await asyncio.sleep(0.05)
        given = {"targetId": shown[0]["targetId"], "flatten": False}
        session = (await self.browser.send("Target.attachToTarget", given))["sessionId"]
        popup = Popup(self.browser, session)
        await popup.until(
            "document.body?.dataset.ready === 'true' || document.getElementById('pair')?.hidden === false"
        )
        return popup

    async def _popups(self) -> list[dict[str, Any]]:
        return [one for one in await self._targets("page") if "/popup.html" in one["url"]]

    async def _targets(self, kind: str) -> list[dict[str, Any]]:
        found = await self.browser.send("Target.getTargets", {"filter": [{}]})
        return [one for one in found["targetInfos"] if one["type"] == kind]


@asynccontextmanager
async def toolbar(program: Path, extension: Path, profile: Path, *, dense: float = 1.0) -> AsyncIterator[Toolbar]:
    """Start full Chromium with a new profile, headless, and load the extension of that folder.

    ``dense`` is the device pixel ratio.
    """
    async with async_playwright() as driver:
        context = await driver.chromium.launch_persistent_context(
            str(profile),
            executable_path=program,
            headless=True,
            timeout=_WAIT_S * 1000,
            viewport={"width": 1000, "height": 700},
            device_scale_factor=dense,
            args=[
                "--no-sandbox",  # it opens only our own pages, and root has no sandbox
                "--headless=new",
                f"--force-device-scale-factor={dense:g}",
                "--enable-unsafe-extension-debugging",
                f"--disable-extensions-except={extension}",
                f"--load-extension={extension}",
            ],
        )
        try:
            workers = context.service_workers
            worker = workers[0] if workers else await context.wait_for_event("serviceworker", timeout=_WAIT_S * 1000)
            assert context.browser is not None
            browser = await context.browser.new_browser_cdp_session()
            yield Toolbar(context, context.pages[0], worker.url.split("/")[2], browser)
        finally:
            await context.close()

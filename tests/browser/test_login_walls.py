"""A sample of login pages and of pages with forms, as rendered by a real browser."""

from __future__ import annotations

import asyncio
from itertools import islice
from urllib.parse import urlsplit

import pytest

from cache.capture import CaptureOutcome
from tests.browser.conftest import Rig
from tests.labelled.forms import FormPage, content_pages, login_pages
from tests.standin.web import Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

EVERY_LOGIN, EVERY_CONTENT = 4, 9


async def _outcomes(rig: Rig, pages: list[FormPage]) -> dict[str, tuple[CaptureOutcome, str]]:
    async def one(number: int, page: FormPage) -> tuple[str, tuple[CaptureOutcome, str]]:
        parts = urlsplit(page.url)
        path = f"/{number}{parts.path}"
        rig.site.pages[path] = Reply.html(page.html)
        seen = await rig.capturer.capture(rig.site.url(f"{path}?{parts.query}"))
        return page.name, (seen.outcome, seen.detail)

    return dict(await asyncio.gather(*(one(number, page) for number, page in enumerate(pages))))


async def test_login_pages_are_distinguished_from_pages_with_forms(rig: Rig) -> None:
    walls = list(islice(login_pages(), 0, None, EVERY_LOGIN))
    walls += [page for page in login_pages() if page.name in ("ASP.NET", "registration with countries", "two steps en")]
    content = list(islice(content_pages(), 0, None, EVERY_CONTENT))
    content += [page for page in content_pages() if "registration below" in page.name][:4]
    found = await _outcomes(rig, walls + content)
    missed = [page.name for page in walls if found[page.name][0] is not CaptureOutcome.LOGIN_WALL]
    refused = [(page.name, *found[page.name]) for page in content if found[page.name][0] is not CaptureOutcome.OK]
    assert (missed, refused) == ([], [])
    assert found["registration with countries"][1] == "a registration form and little beside it"

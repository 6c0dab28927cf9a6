"""Captures of the unusual pages and of eight error pages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cache.capture import CaptureOutcome, Capturer, Observation
from cache.egress.proxy import EgressProxy
from tests.standin.http import refused_address
from tests.standin.web import Answer, Reply, StandInWeb
from tests.unusual_pages.pages import BESIDES, CONTENT, EXPECTED, PROSE

ERRORS: Mapping[str, tuple[Reply, CaptureOutcome]] = {
    "not-found": (Reply.html(f"<h1>Nothing here</h1>{PROSE}", status=404), CaptureOutcome.HTTP_ERROR),
    "broken": (Reply.html("<h1>Oops</h1>", status=500), CaptureOutcome.HTTP_ERROR),
    "silent": (Reply(delay_s=300), CaptureOutcome.TIMEOUT),
    "login-wall": (
        Reply.html("<h1>Sign in</h1><form><input name=u><input type=password><button>Go</button></form>"),
        CaptureOutcome.LOGIN_WALL,
    ),
    "bot-wall": (
        Reply.html("<title>Just a moment...</title><script>window._cf_chl_opt={}</script><p>Verifying…", status=403),
        CaptureOutcome.CAPTCHA,
    ),
    "empty-shell": (Reply.html("<title>App</title><div id=root></div>"), CaptureOutcome.EMPTY),
    "soft-404": (Reply.html("<title>Page not found</title><h1>Page not found</h1><p>Sorry."), CaptureOutcome.SOFT_404),
}
"""The eighth is ``refused``: a closed port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusualPagesResult:
    """Number of pages captured completely (``read``) and of error pages with the correct outcome (``recognised``).

    ``wrong``: the other pages, with the reason.
    """

    pages: int
    read: int
    errors: int
    recognised: int
    wrong: Mapping[str, str]


async def capture_unusual_pages(make: Callable[[EgressProxy], Capturer], *, every: int = 1) -> UnusualPagesResult:
    """Capture every ``every``-th page and all errors with the capturer that ``make`` creates.

    One page does not respond before the deadline.
    """
    async with StandInWeb() as site, StandInWeb(host="127.0.0.2") as other:
        with refused_address() as refused:
            seen = await _capture_all(make, site, other, refused, every)
    return _check_captures(seen)


async def _capture_all(
    make: Callable[[EgressProxy], Capturer], site: StandInWeb, other: StandInWeb, refused: str, every: int
) -> Mapping[str, Observation]:
    site.pages.update(_site_pages(other.url("")))
    other.pages.update({"/inner-elsewhere": BESIDES["inner-elsewhere"]})
    allowed = frozenset({site.host_port, other.host_port, refused})
    async with EgressProxy(allowed) as proxy:
        capturer = make(proxy)
        urls = {name: site.url(f"/{name}") for name in (*list(CONTENT)[::every], *ERRORS)} | {
            "refused": f"http://{refused}/"
        }
        try:
            seen = await asyncio.gather(*(capturer.capture(url) for url in urls.values()))
        finally:
            await capturer.aclose()
    return dict(zip(urls, seen, strict=True))


def _site_pages(elsewhere: str) -> dict[str, Answer]:
    replies = {**CONTENT, **BESIDES, **{name: reply for name, (reply, _) in ERRORS.items()}}
    return {f"/{name}": _with_other_host(reply, elsewhere) for name, reply in replies.items()}


def _with_other_host(answer: Answer, elsewhere: str) -> Answer:
    if isinstance(answer, Reply) and b"{elsewhere}" in answer.body[:10_000]:
        return replace(answer, body=answer.body.replace(b"{elsewhere}", elsewhere.encode()))
    return answer


def _check_captures(seen: Mapping[str, Observation]) -> UnusualPagesResult:
    outcomes = {name: outcome for name, (_, outcome) in ERRORS.items()} | {"refused": CaptureOutcome.CONNECT_ERROR}
    wrong: dict[str, str] = {}
    for name, page in seen.items():
        if name in outcomes:
            if page.outcome is not outcomes[name]:
                wrong[name] = f"{page.outcome.value}: {page.detail}"
        elif not page.is_evidence:
            wrong[name] = f"{page.outcome.value}: {page.detail}"
        elif _collapse_spaces(EXPECTED.get(name, f"MARK {name}")) not in _collapse_spaces(page.text):
            wrong[name] = f"not read: {page.text[-200:]!r}"
        elif "NEVER" in page.text:
            wrong[name] = "hidden text was read"
    return UnusualPagesResult(
        pages=sum(name in CONTENT for name in seen),
        read=sum(name in CONTENT and name not in wrong for name in seen),
        errors=len(outcomes),
        recognised=sum(name not in wrong for name in outcomes),
        wrong=wrong,
    )


def _collapse_spaces(text: str) -> str:
    return re.sub(r"\s+", " ", text)

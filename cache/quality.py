"""Whether what was fetched is the page, or something that stands in its place.

Pure: facts in, finding out. Structural markers (a vendor's challenge form, a password field, a consent dialog)
decide together with a co-signal (status, little text beside it, the title); words alone never do. An article
about captchas is an article.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from cache.capture import CaptureOutcome
from cache.challenges import CAPTCHA_WIDGET, CHALLENGE_TITLE, CHALLENGES
from cache.soft_404 import is_missing_headline, is_sent_home

GONE_STATUSES = frozenset({404, 410})
_BLOCK_STATUSES = frozenset({401, 403, 429, 503})
_LITTLE_TEXT = 1500
_LOGIN_TEXT = 2500
_LOGIN_BESIDE = 600
_CONSENT_BESIDE = 200
_SOFT_404_TEXT = 2000
_EMPTY_TEXT = 50
_SHELL_TEXT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """What a finding is made from. Counts are of visible characters with white space collapsed.

    ``login_form_chars`` and ``consent_chars`` are what stands inside a form with a visible password field and
    inside a consent dialog; ``inputs`` counts visible fields a person can fill in.
    """

    url: str
    final_url: str
    status: int | None
    title: str = ""
    headlines: tuple[str, ...] = ()
    text: str = ""
    html: str = ""
    has_password_field: bool = False
    login_form_chars: int = 0
    consent_chars: int = 0
    inputs: int = 0
    links: int = 0
    large_images: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the page is; ``detail`` names the marker and the co-signal."""

    outcome: CaptureOutcome
    detail: str = ""
    gone: bool = False


_LOGIN_PATH = re.compile(
    r"(?:^|[/._-])(?:log-?in|sign-?in|sso|oauth2?|authwall|authenticate|session/new|checkpoint)(?:[/._?-]|$)",
    re.IGNORECASE,
)
_LOGIN_HOST = re.compile(r"^(?:login|signin|sso|accounts?|auth|idp|passport)\.", re.IGNORECASE)
_CONSENT_HOST = re.compile(r"^(?:consent|guce|privacy-mgmt|cmp)\.", re.IGNORECASE)
_NEEDS_SCRIPT = re.compile(
    r"\b(?:enable|activate|turn on|requires?|needs?)\b[^.]{0,30}\bjava\s?script\b"
    r"|\bjava\s?script\b[^.]{0,40}\b(?:disabled|enabled?|required|turned off)\b",
    re.IGNORECASE,
)


def classify(facts: PageFacts) -> Finding:
    """What the page is. ``ok`` unless something says otherwise."""
    chars = len(" ".join(facts.text.split()))
    checks = (_challenge, _bad_status, _captcha_form, _login_wall, _consent_wall, _soft_404, _empty)
    for check in checks:
        finding = check(facts, chars)
        if finding is not None:
            return finding
    return Finding(outcome=CaptureOutcome.OK)


def _challenge(facts: PageFacts, chars: int) -> Finding | None:
    if facts.status in _BLOCK_STATUSES:
        with_signal = f"with status {facts.status}"
    elif CHALLENGE_TITLE.match(facts.title.strip()):
        with_signal = "with its title"
    elif chars < _LITTLE_TEXT:
        with_signal = "with little text"
    else:
        return None
    for challenge in CHALLENGES:
        if challenge.marker.search(facts.html):
            return Finding(outcome=challenge.outcome, detail=f"{challenge.vendor} {with_signal}")
    return None


def _bad_status(facts: PageFacts, chars: int) -> Finding | None:
    status = facts.status
    if status is None or status < 400:
        return None
    if status in (403, 429):
        return Finding(outcome=CaptureOutcome.BLOCKED, detail=f"HTTP status {status}")
    if status == 401:
        return Finding(outcome=CaptureOutcome.LOGIN_WALL, detail="HTTP status 401")
    return Finding(outcome=CaptureOutcome.HTTP_ERROR, detail=f"HTTP status {status}", gone=status in GONE_STATUSES)


def _captcha_form(facts: PageFacts, chars: int) -> Finding | None:
    """A captcha and nothing else. One beside a form, as on a contact page, is ordinary."""
    if facts.inputs or not CAPTCHA_WIDGET.search(facts.html):
        return None
    if chars < 400 and (facts.links <= 3 or CHALLENGE_TITLE.match(facts.title.strip())):
        return Finding(outcome=CaptureOutcome.CAPTCHA, detail="a captcha and nothing else")
    return None


def _login_wall(facts: PageFacts, chars: int) -> Finding | None:
    beside = chars - facts.login_form_chars
    at_login = _is_login_address(facts.final_url)
    sent_there = at_login and not _is_login_address(facts.url)
    if facts.has_password_field and beside < _LOGIN_BESIDE:
        return Finding(outcome=CaptureOutcome.LOGIN_WALL, detail="a password field and little beside its form")
    if facts.has_password_field and at_login and chars < _LOGIN_TEXT:
        return Finding(outcome=CaptureOutcome.LOGIN_WALL, detail="a password field at a login address")
    if sent_there and facts.inputs and chars < _LOGIN_TEXT:
        return Finding(outcome=CaptureOutcome.LOGIN_WALL, detail="redirected to a login form")
    return None


def _consent_wall(facts: PageFacts, chars: int) -> Finding | None:
    """Consent asked for instead of the page. A banner over or beside real content is ordinary."""
    final, cited = urlsplit(facts.final_url).hostname or "", urlsplit(facts.url).hostname or ""
    if final != cited and _CONSENT_HOST.match(final):
        return Finding(outcome=CaptureOutcome.CONSENT_WALL, detail=f"redirected to {final}")
    if facts.consent_chars and chars - facts.consent_chars < _CONSENT_BESIDE and not facts.large_images:
        return Finding(outcome=CaptureOutcome.CONSENT_WALL, detail="a consent dialog and little beside it")
    return None


def _soft_404(facts: PageFacts, chars: int) -> Finding | None:
    if chars < _SOFT_404_TEXT:
        for headline in (facts.title, *facts.headlines[:2]):
            if is_missing_headline(headline):
                return Finding(outcome=CaptureOutcome.SOFT_404, detail=f"headline {headline.strip()[:60]!r}")
    if is_sent_home(facts.url, facts.final_url):
        return Finding(outcome=CaptureOutcome.SOFT_404, detail="redirected to the home page")
    return None


def _empty(facts: PageFacts, chars: int) -> Finding | None:
    if chars < _EMPTY_TEXT and not facts.large_images:
        return Finding(outcome=CaptureOutcome.EMPTY, detail=f"{chars} characters of visible text")
    if chars < _SHELL_TEXT and _NEEDS_SCRIPT.search(facts.text):
        return Finding(outcome=CaptureOutcome.EMPTY, detail="the page asks for JavaScript")
    return None


def _is_login_address(url: str) -> bool:
    parts = urlsplit(url)
    return bool(_LOGIN_PATH.search(parts.path) or _LOGIN_HOST.match(parts.hostname or ""))

"""Page classification: decides whether a response is the cited page or a wall, an error page or a placeholder.

Pure functions. A structural marker (a vendor's challenge form, a password field, a consent dialog) counts only with a
second signal (status, little other text, title). Words alone never count: an article about captchas is an article.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from cache.capture import CaptureOutcome, Soft404Confidence
from cache.classify.soft_404 import (
    asks_for_age,
    error_in_title,
    has_crashed,
    is_browser_error,
    is_default_page,
    is_missing_headline,
    is_parked,
    is_redirected_home,
    is_redirected_to_parent,
    is_status_code_only,
    requires_other_browser,
    says_page_is_missing,
    says_under_maintenance,
)
from cache.classify.walls import (
    AUTOMATION_CHECK,
    BLOCK_TITLE,
    CAPTCHA_WIDGET,
    CHALLENGE_HEADERS,
    CHALLENGE_TITLE,
    CHALLENGE_URL,
    CHALLENGES,
    is_login_address,
    is_login_title,
    is_registration_title,
    may_be_login_address,
    mentions_accounts,
)
from cache.page_text.sentences import garbled_reason
from cache.urls import MAX_URL_CHARS

GONE_STATUSES = frozenset({404, 410})
_BLOCK_STATUSES = frozenset({401, 403, 429, 503})
_SEARCHED_CHARS = 2_000_000
_LITTLE_TEXT = 1500
_BLOCK_TEXT = 1000
_LOGIN_TEXT = 2500
_LOGIN_OTHER_TEXT = 600
_LOGIN_INPUTS = 4
_CONSENT_OTHER_TEXT = 200
_SOFT_404_TEXT = 2000
_CODE_404_TEXT = 350
_SUBHEAD_404_TEXT = 500
_BARE_TEXT = 50
_MUCH_HIDDEN_TEXT = 500
_MUCH_INVISIBLE_TEXT = 1000
_SHELL_TEXT = 500
_SHORT_SHELL_TEXT = 200
_CRASH_TEXT = 300
_ERROR_TEXT = 200
_NOTICE_TEXT = 500
_PROSE_LINE = 100
_OTHER_PROSE = 300
_WHOLE_PAGE = 1500
_MIN_POSTS = 4
_POST_LINE = 25
_POST_CHARS = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """Input of the classification. Counts are visible characters with white space collapsed.

    Attributes:
        login_form_chars: Text in a form with a visible password field.
        consent_chars: Text in a consent dialog.
        consent_covers: A consent dialog covers the page, or may cover it. It may be left out of the text.
        inputs: Number of visible fields that a person can fill in.
        has_user_field: A field asks for a user name or an e-mail address.
        is_registration: All password fields are for a new password.
        large_images: Number of large images that were loaded.
        drawings: Number of other large elements that can show an image: canvas, SVG, video, backgrounds.
        hidden_chars: Text that is not visible.
        script_chars: Prose in scripts and templates.
        address: Address that the page shows, if scripts may have changed it without a request.
        headers: Response headers, names in lower case.
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
    consent_covers: bool = False
    inputs: int = 0
    links: int = 0
    large_images: int = 0
    has_user_field: bool = False
    is_registration: bool = False
    drawings: int = 0
    hidden_chars: int = 0
    script_chars: int = 0
    address: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of the classification.

    Attributes:
        detail: Names the marker and the second signal.
        gone: The page is known not to exist.
        soft_404_confidence: How likely the page is a soft 404.
        may_be_blocked: The page is empty and shows a sign that it refuses this browser.
    """

    outcome: CaptureOutcome
    detail: str = ""
    gone: bool = False
    soft_404_confidence: Soft404Confidence | None = None
    may_be_blocked: bool = False


_CONSENT_HOST = re.compile(r"^(?:consent|guce|privacy-mgmt|cmp)\.", re.IGNORECASE)
_NEEDS_SCRIPT = re.compile(
    r"\b(?:enable|activate|turn on|requires?|needs?)\b[^.]{0,30}\bjava\s?script\b"
    r"|\bjava\s?script\b[^.]{0,40}\b(?:disabled|enabled?|required|turned off)\b",
    re.IGNORECASE,
)
_PAYWALL = re.compile(r"[\"']isAccessibleForFree[\"']\s*:\s*[\"']?false", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!?\u061f\u0964](?:\s|$)|[\u3002\uff01\uff1f]")
_STILL_LOADING = re.compile(
    r"\W*(?:(?:loading|please wait|one moment(?:,? please)?|wird geladen|bitte warten|chargement(?: en cours)?|cargando"
    r"|caricamento(?: in corso)?|carregando|laden|загрузка|読み込み中|加载中|로딩 ?중)\W*){1,2}",
    re.IGNORECASE,
)
_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def classify(facts: PageFacts) -> Finding:
    """Classify a page. The outcome is ``ok`` unless a check matches; ``detail`` then contains notes for the reader.

    A page of pictures below a consent dialog is ``partial``: it may show its content only after the dialog.
    """
    chars = len(" ".join(facts.text.split()))
    if not any(char.isprintable() and char != " " for char in facts.text):
        chars = 0  # only format characters such as zero-width spaces
    facts = replace(
        facts,
        html=facts.html[:_SEARCHED_CHARS],
        url=facts.url[:MAX_URL_CHARS],
        final_url=facts.final_url[:MAX_URL_CHARS],
        address=facts.address[:MAX_URL_CHARS],
    )
    checks = (
        _browser_error,
        _challenge,
        _bad_status,
        _garbled,
        _captcha_form,
        _block_page,
        _login_wall,
        _consent_wall,
        _placeholder,
        _soft_404,
        _empty,
    )
    for check in checks:
        finding = check(facts, chars)
        if finding is not None:
            return finding
    if facts.consent_covers and _shows_consent_only(facts, chars):
        return Finding(outcome=CaptureOutcome.PARTIAL, detail="a consent dialog covers a page with little text")
    notes = [f"HTTP status {facts.status}"] if facts.status in _BLOCK_STATUSES else []
    notes += ["a paywall: the page states that it is not entirely free"] if _PAYWALL.search(facts.html) else []
    is_sent_to_parent = is_redirected_to_parent(facts.url, facts.final_url, (facts.title, *facts.headlines))
    notes += ["redirected to an address above it"] if is_sent_to_parent else []
    notes += _invisible_text_notes(facts, chars)
    return Finding(
        outcome=CaptureOutcome.OK,
        detail="; ".join(notes),
        soft_404_confidence=Soft404Confidence.SLIGHT if is_sent_to_parent else None,
    )


def _prose_chars(text: str) -> int:
    """Return the number of characters in long lines. Content has them; forms and link lists do not."""
    sizes = map(_weighted_length, text.splitlines())
    return sum(size for size in sizes if size >= _PROSE_LINE)


def _sentence_chars(text: str) -> int:
    """Return the number of characters in long lines with sentences. Menus can be long lines too."""
    lines = (line for line in text.splitlines() if _SENTENCE.search(line))
    return _prose_chars("\n".join(lines))


def _has_posts(facts: PageFacts) -> bool:
    """Return whether a page with a login form contains short posts, for example a forum thread.

    The title must contain a heading of the page. The page must have several different short sentences, with more text
    than the login form. Sentences about accounts and passwords do not count.
    """
    title = facts.title.casefold()
    if not any(headline.strip() and headline.strip().casefold() in title for headline in facts.headlines):
        return False
    lines = {line.strip() for line in facts.text.splitlines() if _SENTENCE.search(line) and not mentions_accounts(line)}
    sizes = [size for size in map(_weighted_length, lines) if size >= _POST_LINE]
    return len(sizes) >= _MIN_POSTS and sum(sizes) > max(_POST_CHARS, facts.login_form_chars)


def _weighted_length(line: str) -> int:
    """Return the length of a line. Characters that represent words or syllables count twice."""
    return len(line) + len(_WIDE.findall(line))


def _browser_error(facts: PageFacts, chars: int) -> Finding | None:
    if chars < _LITTLE_TEXT and is_browser_error(facts.html):
        return Finding(outcome=CaptureOutcome.CONNECT_ERROR, detail="the error page of a browser")
    return None


def _challenge(facts: PageFacts, chars: int) -> Finding | None:
    if facts.status is not None and facts.status >= 500 and facts.status not in _BLOCK_STATUSES:
        return None  # an error of the server itself, even if a protection vendor relays it
    if facts.status in _BLOCK_STATUSES:
        with_signal = f"with status {facts.status}"
    elif CHALLENGE_TITLE.match(facts.title.strip()):
        with_signal = "with its title"
    elif chars < _LITTLE_TEXT:
        with_signal = "with little text"
    else:
        return None
    for name, value in CHALLENGE_HEADERS.items():
        if value.search(facts.headers.get(name, "")):
            return Finding(outcome=CaptureOutcome.CAPTCHA, detail=f"header {name!r} {with_signal}")
    for challenge in CHALLENGES:
        if challenge.marker.search(facts.html):
            return Finding(outcome=challenge.outcome, detail=f"{challenge.vendor} {with_signal}")
    if _is_challenge_address(facts.final_url) and not _is_challenge_address(facts.url):
        return Finding(outcome=CaptureOutcome.CAPTCHA, detail=f"redirected to a challenge address, {with_signal}")
    return None


def _is_challenge_address(url: str) -> bool:
    parts = urlsplit(url)
    return CHALLENGE_URL.search(f"{parts.hostname or ''}{parts.path}") is not None


def _bad_status(facts: PageFacts, chars: int) -> Finding | None:
    status = facts.status
    if status is None or status < 400:
        return None
    if status == 403 and _prose_chars(facts.text) >= _WHOLE_PAGE:
        return None  # the status says refused, but the page is there and no marker contradicts it
    if status in (403, 429):
        return Finding(outcome=CaptureOutcome.BLOCKED, detail=f"HTTP status {status}")
    if status == 401:
        return Finding(outcome=CaptureOutcome.LOGIN_WALL, detail="HTTP status 401")
    return Finding(outcome=CaptureOutcome.HTTP_ERROR, detail=f"HTTP status {status}", gone=status in GONE_STATUSES)


def _garbled(facts: PageFacts, chars: int) -> Finding | None:
    """Check for binary data decoded as text: compressed, in another charset, or an image declared as a page."""
    reason = garbled_reason(facts.text)
    return Finding(outcome=CaptureOutcome.DAMAGED, detail=reason) if reason else None


def _captcha_form(facts: PageFacts, chars: int) -> Finding | None:
    """Check for a page with only a captcha. A captcha next to a form, as on a contact page, is normal."""
    if facts.inputs or not CAPTCHA_WIDGET.search(facts.html):
        return None
    if chars < 400 and (facts.links <= 3 or CHALLENGE_TITLE.match(facts.title.strip())):
        return Finding(outcome=CaptureOutcome.CAPTCHA, detail="a captcha and little else")
    return None


def _block_page(facts: PageFacts, chars: int) -> Finding | None:
    """Check for a block page without a vendor's marker. Its title and heading say only that access is denied."""
    if chars < _BLOCK_TEXT and all(BLOCK_TITLE.fullmatch(name.strip()) for name in (facts.title, *facts.headlines[:1])):
        return Finding(outcome=CaptureOutcome.BLOCKED, detail=f"a block page: {facts.title.strip()[:60]!r}")
    return None


def _login_wall(facts: PageFacts, chars: int) -> Finding | None:
    """Check for a login or registration form instead of the page. A form next to real content is normal."""
    other_chars = chars - facts.login_form_chars
    prose = _prose_chars(facts.text) - facts.login_form_chars
    sentences = _sentence_chars(facts.text)
    is_bare = other_chars < _LOGIN_OTHER_TEXT and prose < _OTHER_PROSE and not _has_posts(facts)
    titles = (facts.title, *facts.headlines)
    has_login_title = any(map(is_login_title, titles))
    registers = facts.is_registration or (not has_login_title and any(map(is_registration_title, titles)))
    address = facts.address or facts.final_url
    at_login = is_login_address(address)
    is_sent_to_login = at_login and not is_login_address(facts.url)
    reason = ""
    if facts.has_password_field and registers:
        reason = "a registration form and little beside it" if is_bare else ""
    elif facts.has_password_field:
        if is_bare or (at_login and other_chars < _LOGIN_OTHER_TEXT):
            reason = "a password field and little beside its form"
        elif at_login and (chars < _LOGIN_TEXT or sentences < _OTHER_PROSE):
            reason = "a password field at a login address"
        elif is_login_title(facts.title) or (has_login_title and sentences < _WHOLE_PAGE):
            reason = "a password field under a login title"
        elif may_be_login_address(address) and sentences < _OTHER_PROSE:
            reason = "a password field at an account address and little text"
    elif facts.has_user_field and facts.inputs <= _LOGIN_INPUTS and sentences < _OTHER_PROSE and has_login_title:
        reason = "a user name field under a login title"
    if not reason and is_sent_to_login and facts.inputs and chars < _LOGIN_TEXT:
        reason = "redirected to a login form"
    return Finding(outcome=CaptureOutcome.LOGIN_WALL, detail=reason) if reason else None


def _consent_wall(facts: PageFacts, chars: int) -> Finding | None:
    """Check for a consent dialog instead of the page. A banner over or next to real content is normal."""
    final, cited = urlsplit(facts.final_url).hostname or "", urlsplit(facts.url).hostname or ""
    if final != cited and _CONSENT_HOST.match(final):
        return Finding(outcome=CaptureOutcome.CONSENT_WALL, detail=f"redirected to {final}")
    if _shows_consent_only(facts, chars) and not facts.large_images:
        return Finding(outcome=CaptureOutcome.CONSENT_WALL, detail="a consent dialog and little beside it")
    if chars < _NOTICE_TEXT and any(map(asks_for_age, (facts.title, *facts.headlines[:1]))):
        return Finding(
            outcome=CaptureOutcome.CONSENT_WALL, detail="a question for the reader's age and little beside it"
        )
    return None


def _shows_consent_only(facts: PageFacts, chars: int) -> bool:
    """Return whether a page has little text beside a consent dialog.

    A bar that covers nothing must also have more text than the page.
    """
    other_chars = chars - facts.consent_chars
    limit = _CONSENT_OTHER_TEXT if facts.consent_covers else min(_CONSENT_OTHER_TEXT, facts.consent_chars)
    return other_chars < limit


def _placeholder(facts: PageFacts, chars: int) -> Finding | None:
    """Check for a parked domain, a web server's default page, or an error or maintenance page with another status."""
    if chars >= _LITTLE_TEXT:
        return None
    if is_parked(urlsplit(facts.final_url).hostname or "", facts.html):
        return Finding(outcome=CaptureOutcome.SOFT_404, detail="a parked domain")
    if is_default_page(facts.title) and any(map(is_default_page, facts.headlines or ("",))):
        return Finding(outcome=CaptureOutcome.SOFT_404, detail=f"a server's default page: {facts.title.strip()[:60]!r}")
    status = error_in_title(facts.title)
    if status is not None and chars < _ERROR_TEXT:
        return Finding(outcome=CaptureOutcome.HTTP_ERROR, detail=f"a server's error page: {facts.title.strip()[:60]!r}")
    notice = next(filter(says_under_maintenance, (facts.title, *facts.headlines[:1])), None)
    if notice is not None and chars < _NOTICE_TEXT:
        return Finding(outcome=CaptureOutcome.HTTP_ERROR, detail=f"a maintenance page: {notice.strip()[:60]!r}")
    return None


def _soft_404(facts: PageFacts, chars: int) -> Finding | None:
    whole_text = [facts.text] if 0 < chars < _BARE_TEXT else []
    # The first heading may be the name of the site.
    subheads = [line.removeprefix("## ") for line in facts.text.splitlines() if line.startswith("## ")]
    subheads = subheads if len(subheads) == 1 and chars < _SUBHEAD_404_TEXT else []
    missing = [
        headline
        for headline in (facts.title, *facts.headlines[:2], *subheads, *whole_text)
        if chars < _SOFT_404_TEXT
        and is_missing_headline(headline)
        and not (is_status_code_only(headline) and chars >= _CODE_404_TEXT)
    ]
    if missing:
        detail = f"headline {missing[0].strip()[:60]!r}"
        says_so = says_page_is_missing(missing, facts.text)
    elif is_redirected_home(facts.url, facts.final_url):
        detail, says_so = "redirected to the home page", False
    else:
        return None
    # If the page would be empty even as a real page, the sibling URL cannot make it evidence.
    is_bare = chars < _BARE_TEXT and not facts.large_images
    says_so = says_so or is_bare or _empty(facts, chars) is not None
    soft_404_confidence = Soft404Confidence.STATED if says_so else Soft404Confidence.LIKELY
    return Finding(outcome=CaptureOutcome.SOFT_404, detail=detail, soft_404_confidence=soft_404_confidence)


def _empty(facts: PageFacts, chars: int) -> Finding | None:
    """Check for a page that shows nothing, or only a placeholder for its content."""
    may_be_blocked = AUTOMATION_CHECK.search(facts.html) is not None
    if not chars and not facts.large_images and not facts.drawings:
        detail = "; ".join(["no visible text and no picture", *_invisible_text_notes(facts, chars)])
        return Finding(outcome=CaptureOutcome.EMPTY, detail=detail, may_be_blocked=may_be_blocked)
    if chars < _BARE_TEXT and _STILL_LOADING.fullmatch(facts.text):
        may_be_blocked = may_be_blocked or CHALLENGE_TITLE.match(facts.title.strip()) is not None
        return Finding(outcome=CaptureOutcome.EMPTY, detail="the page is still loading", may_be_blocked=may_be_blocked)
    little = chars < _SHORT_SHELL_TEXT or (chars < _SHELL_TEXT and not facts.headlines)
    if little and _NEEDS_SCRIPT.search(facts.text):
        return Finding(outcome=CaptureOutcome.EMPTY, detail="the page requires JavaScript", may_be_blocked=True)
    if chars < _CRASH_TEXT and has_crashed(facts.text):
        return Finding(outcome=CaptureOutcome.EMPTY, detail="the page's scripts failed")
    if chars < _CRASH_TEXT and requires_other_browser(facts.text):
        return Finding(outcome=CaptureOutcome.EMPTY, detail="the page requires another browser", may_be_blocked=True)
    return None


def _invisible_text_notes(facts: PageFacts, chars: int) -> list[str]:
    """Return notes for a page whose text is mostly not visible."""
    notes = []
    if facts.script_chars >= max(_MUCH_INVISIBLE_TEXT, 2 * chars):
        notes.append(f"{chars} characters visible; most text is in scripts")
    if facts.hidden_chars >= (max(_MUCH_INVISIBLE_TEXT, chars + 1) if chars else _MUCH_HIDDEN_TEXT):
        notes.append(f"most of its text is hidden ({facts.hidden_chars} of {chars + facts.hidden_chars} characters)")
    return notes

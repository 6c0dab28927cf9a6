"""Placeholder detection: parked domains, default pages of web servers, error pages of browsers and servers.

Data and pure functions. ``quality`` combines each marker with a second signal.
"""

from __future__ import annotations

import re

from cache.classify.soft_404 import title_parts

_BROWSER_ERROR = re.compile(r"\bid=[\"']main-frame-error[\"']")
_PARKING = re.compile(
    r"(?:sedoparking\.com|parkingcrew\.net|d38psrni17bvxu\.cloudfront\.net|parklogic\.com|bodiscdn\.com|above\.com/marketplace"
    r"|cdn\.hugedomains\.com|img1\.wsimg\.com/parking-lander)/"
    r"|\b(?:window\.park|var park)\s*=",
    re.IGNORECASE,
)
_MARKETS = r"(?:sedo\.com/search/details|afternic\.com/forsale|hugedomains\.com/domain_profile|dan\.com/buy-domain)"
_DEFAULT_TITLE = re.compile(
    r"welcome to nginx!?|apache2? (?:\w+ )?default page(?:: it works)?|it works!?|test page for the .{3,40}server.*"
    r"|iis (?:windows(?: server)?|\d+(?:\.\d)?)|account suspended|default web site page|web server's default page"
    r"|site not (?:configured|published yet)|future home of something quite cool",
    re.IGNORECASE,
)
_ERROR_TITLE = re.compile(
    r"(?P<status>[45]\d\d)\W+(?:bad request|unauthorized|authorization required|forbidden|not found|method not allowed"
    r"|gone|internal server error|bad gateway|service (?:temporarily )?unavailable|gateway time-?out)",
    re.IGNORECASE,
)
_CRASHED = re.compile(
    r"application error: a client-side exception has occurred|unexpected application error!|chunkloaderror",
    re.IGNORECASE,
)
_OLD_BROWSER = re.compile(
    r"\b(?:your|this) (?:web )?browser "
    r"(?:is (?:not|no longer) supported|is (?:unsupported|out of date|outdated|too old))",
    re.IGNORECASE,
)
_WORK = r"(?:scheduled |planned |routine |urgent )?maintenance(?: work)?"
_UNDER_MAINTENANCE = re.compile(
    r"(?:sorry,? )?(?:we(?:'ll| will) )?be (?:right )?back (?:soon|shortly|in a (?:few )?(?:minutes?|moments?))"
    rf"|(?:sorry,? )?(?:(?:this|the|our) )?(?:web)?(?:site|page|service) is (?:(?:currently |temporarily )?"
    rf"(?:under|undergoing|in|(?:down|offline|closed|unavailable) (?:for|due to)) {_WORK}"
    r"|(?:currently|temporarily) (?:offline|unavailable))"
    rf"|(?:sorry,? )?we(?:'re| are) (?:currently |temporarily )?"
    rf"(?:undergoing|(?:down|offline|closed|unavailable) (?:for|due to)) {_WORK}"
    rf"|(?:currently |temporarily )?(?:under|down for|closed for) {_WORK}|maintenance mode is on",
    re.IGNORECASE,
)
_AGE = r"(?:18|19|20|21)(?: years?)?(?: old| of age)?(?: (?:or|and) (?:older|over|above))?"
_AGE_CHECK = re.compile(
    r"(?:please )?(?:verify|confirm|enter) your (?:age|date of birth|birth ?date|birthday)(?: to (?:enter|continue))?"
    rf"|are you (?:over |at least |older than )?{_AGE}|you must be (?:over |at least )?{_AGE}.{{0,60}}"
    r"|are you (?:of legal (?:drinking |smoking )?age|old enough).{0,60}",
    re.IGNORECASE,
)


def is_browser_error(html: str) -> bool:
    """Return whether this is an error page of Chromium, in any language, that was saved or served as a page."""
    return "neterror" in html and _BROWSER_ERROR.search(html) is not None


def is_parked(host: str, html: str) -> bool:
    """Return whether this is the page of a parking service, or offers its own domain for sale."""
    if _PARKING.search(html):
        return True
    own = re.escape(host.removeprefix("www."))
    return bool(own) and re.search(rf"{_MARKETS}[^\"'\s]{{0,100}}{own}", html, re.IGNORECASE) is not None


def is_default_page(title: str) -> bool:
    """Return whether a title is only that of a web server's default page.

    >>> is_default_page("Welcome to nginx!"), is_default_page("Welcome to nginx: a first configuration")
    (True, False)
    """
    return _DEFAULT_TITLE.fullmatch(title.strip()) is not None


def error_in_title(title: str) -> int | None:
    """Return the status in the title of a server's error page, or None for other titles.

    >>> error_in_title("502 Bad Gateway"), error_in_title("HTTP 404 - Encyclopedia")
    (502, None)
    """
    match = _ERROR_TITLE.fullmatch(title.strip())
    return None if match is None else int(match["status"])


def says_under_maintenance(headline: str) -> bool:
    """Return whether a title or headline, apart from the site's name, only says that the site is not available now.

    >>> says_under_maintenance("We\u2019ll be back soon!"), says_under_maintenance("Down for maintenance | Shop")
    (True, True)
    >>> says_under_maintenance("Maintenance"), says_under_maintenance("The site is under maintenance by the city")
    (False, False)
    """
    return _any_part(_UNDER_MAINTENANCE, headline)


def asks_for_age(headline: str) -> bool:
    """Return whether a title or headline, apart from the site's name, only asks for the reader's age.

    >>> asks_for_age("Are you over 18?"), asks_for_age("Age verification in the law of 2019")
    (True, False)
    """
    return _any_part(_AGE_CHECK, headline)


def _any_part(pattern: re.Pattern[str], headline: str) -> bool:
    return any(pattern.fullmatch(part.strip(" .!?\u2026")) for part in title_parts(headline))


def has_crashed(text: str) -> bool:
    """Return whether a script framework reports that it crashed."""
    return _CRASHED.search(text) is not None


def requires_other_browser(text: str) -> bool:
    return _OLD_BROWSER.search(text) is not None

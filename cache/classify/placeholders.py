"""What stands at an address where nobody has put a page: parked names, a server's first page, a browser's error.

Markers of their makers, each with a co-signal. Data and pure functions; ``quality`` decides.
"""

from __future__ import annotations

import re

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


def is_browser_error(html: str) -> bool:
    """Whether it is Chromium's own error page, in any language, saved or served as if it were a page."""
    return "neterror" in html and _BROWSER_ERROR.search(html) is not None


def is_parked(host: str, html: str) -> bool:
    """Whether a parking service made the page, or it offers its own name on a market for names."""
    if _PARKING.search(html):
        return True
    own = re.escape(host.removeprefix("www."))
    return bool(own) and re.search(rf"{_MARKETS}[^\"'\s]{{0,100}}{own}", html, re.IGNORECASE) is not None


def is_default_page(title: str) -> bool:
    """Whether a title is that of the page a server shows before anybody has made one, and nothing else.

    >>> is_default_page("Welcome to nginx!"), is_default_page("Welcome to nginx: a first configuration")
    (True, False)
    """
    return _DEFAULT_TITLE.fullmatch(title.strip()) is not None


def error_in_title(title: str) -> int | None:
    """The status that a server's own error page names in its title; None for any other title.

    >>> error_in_title("502 Bad Gateway"), error_in_title("HTTP 404 - Encyclopedia")
    (502, None)
    """
    found = _ERROR_TITLE.fullmatch(title.strip())
    return None if found is None else int(found["status"])


def has_crashed(text: str) -> bool:
    """Whether a script framework says that it broke."""
    return _CRASHED.search(text) is not None


def wants_other_browser(text: str) -> bool:
    return _OLD_BROWSER.search(text) is not None

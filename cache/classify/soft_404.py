"""Soft 404 detection: error headlines, and redirects to the home page or a parent section.

Some signals are weak: a page titled "404" may be about the number, and a page that redirects to a parent section may
have moved there.

Placeholders are parked domains, default pages of web servers, and error pages of browsers and servers. ``quality``
combines each marker with a second signal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from cache.urls import canonical_key

_THING = (
    r"(?:the |this |that |your )?(?:requested )?"
    r"(?:page|content|article|document|file|url|link|product|item|post|listing|job|vacancy|video|profile|account|user"
    r"|recipe|event|ad|property|topic|thread|group|channel)"
    r"(?: you(?:'re| are|'ve| have)? (?:looking for|requested|followed))?"
)
_ABSENT = (
    r"(?:(?:(?:was|is|could|can|has|does)(?:n't| not| no longer)|cannot|can't|no longer|not)"
    r" (?:be |been )?(?:found|available|exists?|here)|not found|is gone|is missing)"
)
_PHRASES = (
    rf"{_THING} {_ABSENT}(?: here| anymore| any more)?",
    r"(?:sorry,? )?(?:we )?(?:can't|cannot|couldn't|could not) (?:seem to )?find (?:that|the|this|your) page.*",
    r"(?:oops|uh[- ]?oh|whoops)[!,. ]*",
    rf"(?:oops|uh[- ]?oh|whoops|sorry|hmm+)[!,.\u2026 ]*{_THING} {_ABSENT}.*",
    r"nothing (?:was )?found(?: here)?|not found|does not exist|nothing here",
    r"(?:http |error |status |code )*(?:404|410)(?: error| not found| gone| page not found| file not found)*",
    # German
    r"(?:die )?(?:angeforderte |gewünschte |gesuchte )?seite (?:wurde |konnte )?(?:leider )?nicht gefunden(?: werden)?",
    r"(?:diese |die )?seite existiert nicht(?: mehr)?",
    # French
    r"(?:la )?page (?:demandée )?(?:est )?(?:introuvable|non trouvée|inexistante)|cette page n'existe (?:pas|plus)",
    # Spanish
    r"(?:la )?página (?:solicitada )?no (?:se ha )?(?:encontrada|encontrado|existe|disponible)",
    r"no se (?:ha )?(?:encontró|encontrado) la página",
    # Italian, Portuguese
    r"(?:la )?pagina (?:richiesta )?non (?:è stata )?(?:trovata|disponibile|esiste)",
    r"(?:a )?página (?:solicitada )?não (?:foi )?(?:encontrada|existe|disponível)",
    # Dutch, Polish, Swedish
    r"(?:de )?pagina (?:is )?niet gevonden|(?:deze )?pagina bestaat niet(?: meer)?",
    r"nie znaleziono strony|strona nie (?:została znaleziona|istnieje)",
    r"sidan (?:kunde inte hittas|hittades inte|finns inte)",
    # Danish and Norwegian, Czech, Finnish, Hungarian, Romanian, Turkish, Greek, Arabic, Vietnamese
    r"siden (?:blev |ble )?(?:ikke (?:fundet|funnet)|findes ikke|finnes ikke)",
    r"stránka (?:nebyla )?(?:nalezena|nenalezena|neexistuje)",
    r"sivua ei (?:löytynyt|löydy)|(?:az )?oldal nem található|pagina nu (?:a fost găsită|există)",
    r"(?:aradığınız )?sayfa (?:bulunamadı|mevcut değil)|(?:η )?σελίδα δεν βρέθηκε",  # noqa: RUF001
    r"الصفحة (?:المطلوبة )?غير موجودة",
    r"(?:không tìm thấy trang|trang không tồn tại)",
    # Russian, Japanese, Chinese, Korean
    r"страница не (?:найдена|существует)",
    r"(?:お探しの)?ページ(?:が|は)?(?:見つかりません(?:でした)?|存在しません)",
    r"(?:您(?:访问|请求)的)?(?:页面|网页|頁面)(?:不存在|未找到|找不到|无法找到)|找不到(?:页面|网页|頁面)",
    r"(?:요청하신 |찾으시는 )?페이지(?:를|가) (?:찾을 수 없습니다|존재하지 않습니다|없습니다)",
)
_MISSING = re.compile(rf"(?:404\W+)?(?:{'|'.join(_PHRASES)})\W*(?:404\W*)?", re.IGNORECASE)
_ONLY_CODE = re.compile(r"(?:http |error |status |code )*(?:404|410)\W*", re.IGNORECASE)
_BARE = re.compile(
    r"(?:(?:http |error |status |code )*(?:404|410)\W*)?"
    r"(?:(?:oops|uh[- ]?oh|whoops)\W*|not found|nothing (?:was )?found(?: here)?|does not exist|nothing here)?\W*",
    re.IGNORECASE,
)
_APOLOGY = re.compile(r"^\W*(?:(?:we(?:'re| are) )?sorry\b[, ]*(?:but )?)?", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?\u3002\n]+")
_SEPARATOR = re.compile(r"\s+[|\u2013\u2014\u00b7\u2022:\u00bb-]\s+|\s*[|\u00bb]\s*")
_HOME_NAMES = re.compile(
    r"/(?:index|home|default|main|start)(?:\.\w+)?/?$|^/?[a-z]{2}(?:[-_][a-z]{2})?/?$", re.IGNORECASE
)
_MIN_DEPTH = 2
_MAX_HEADLINE_CHARS = 1000
_VIEW_SEGMENT = re.compile(r"(?:index|default)(?:\.\w+)?|amp|print|page|\d{1,3}", re.IGNORECASE)
_ITEM = re.compile(r"(?!(?:19|20)\d\d$).*\d{3}|(?:[^-]+-){2}")
_WORD = re.compile(r"[^\W\d_]{4,}")


def is_missing_headline(headline: str) -> bool:
    """Return whether a title or headline, apart from the site's name, only says that the page is missing.

    >>> is_missing_headline("Page not found | Example"), is_missing_headline("404")
    (True, True)
    >>> is_missing_headline("How to design a 404 page"), is_missing_headline("Lost city not found after all")
    (False, False)
    """
    return any(_MISSING.fullmatch(piece) for piece in title_parts(headline))


def is_status_code_only(headline: str) -> bool:
    """Return whether only a status code in the headline says that the page is missing. It can be an article's title.

    >>> is_status_code_only("HTTP 404 - Encyclopedia"), is_status_code_only("404 Not Found")
    (True, False)
    """
    missing = [piece for piece in title_parts(headline) if _MISSING.fullmatch(piece)]
    return bool(missing) and all(_ONLY_CODE.fullmatch(piece) for piece in missing)


def says_page_is_missing(headlines: Sequence[str], text: str) -> bool:
    """Return whether a headline or a whole sentence says that the page is missing.

    A bare "not found" does not count, because it does not say what is missing.

    >>> says_page_is_missing(["404"], "404 is the number of a reply.")
    False
    >>> says_page_is_missing(["404: page not found"], "")
    True
    >>> says_page_is_missing(["Not Found"], "Sorry, the page you requested could not be found. Go home?")
    True
    """
    phrases = [piece for headline in headlines for piece in title_parts(headline)]
    phrases += [_APOLOGY.sub("", sentence).strip() for sentence in _SENTENCE_END.split(text.replace("\u2019", "'"))]
    return any(_MISSING.fullmatch(piece) and not _BARE.fullmatch(piece) for piece in phrases)


def title_parts(headline: str) -> list[str]:
    """Return up to three parts of a title, such as a page's name and the site's name."""
    # Runs of white space would make the separator quadratic.
    text = " ".join(headline.split())[:_MAX_HEADLINE_CHARS]
    pieces = (piece.strip().replace("\u2019", "'") for piece in _SEPARATOR.split(text))
    return [piece for piece in pieces if piece][:3]


def is_redirected_home(cited: str, final: str) -> bool:
    """Return whether a URL with at least two path segments redirected to the home page of the same site.

    >>> is_redirected_home("https://a.com/news/2020/story.html", "https://www.a.com/")
    True
    >>> is_redirected_home("https://a.com/index.html", "https://a.com/"), is_redirected_home("https://a.com/en", "https://a.com/")
    (False, False)
    """
    cited_parts, final_parts = urlsplit(canonical_key(cited)), urlsplit(canonical_key(final))
    if cited_parts.hostname != final_parts.hostname or final_parts.path not in ("", "/"):
        return False
    if final_parts.query or final_parts.fragment or cited_parts.fragment or _HOME_NAMES.search(cited_parts.path):
        return False
    return len(_segments(cited_parts.path)) >= _MIN_DEPTH


def is_redirected_to_parent(cited: str, final: str, headlines: Sequence[str]) -> bool:
    """Return whether a URL redirected to a parent section or the home page whose ``headlines`` do not match the URL.

    This is a weak signal, because pages move.

    >>> is_redirected_to_parent("https://a.com/news/2020/story", "https://a.com/news", ["News"])
    True
    >>> is_redirected_to_parent("https://a.com/news/blue-lamps", "https://a.com/news", ["Blue lamps"])
    False
    >>> is_redirected_to_parent("https://a.com/item/12345/lamp", "https://a.com/item/12345", ["A lamp"])
    False
    """
    cited_parts, final_parts = urlsplit(canonical_key(cited)), urlsplit(canonical_key(final))
    if cited_parts.hostname != final_parts.hostname or final_parts.query or final_parts.fragment:
        return False
    cited_segments, final_segments = _segments(cited_parts.path), _segments(final_parts.path)
    dropped = cited_segments[len(final_segments) :]
    if cited_parts.fragment or not dropped or cited_segments[: len(final_segments)] != final_segments:
        return False
    if all(map(_VIEW_SEGMENT.fullmatch, dropped)) or (_ITEM.match(final_segments[-1]) if final_segments else False):
        return False
    if not final_segments and _HOME_NAMES.search(cited_parts.path):
        return False
    name = unquote(cited_segments[-1])
    words = _words(name.rpartition(".")[0] or name) - _words(unquote(final_parts.path))
    return not words or 2 * len(words & _words(" ".join(headlines))) < len(words)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


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

"""Pages that say "not found" with status 200: by a headline that says nothing else, or by being sent home."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from cache.urls import canonical_key

_THING = (
    r"(?:the |this |that |your )?(?:requested )?"
    r"(?:page|content|article|document|file|url|link|product|item|post|listing)"
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
    rf"(?:oops|uh[- ]?oh|whoops|sorry)[!,. ]*{_THING} {_ABSENT}.*",
    r"nothing (?:was )?found(?: here)?|not found|does not exist|nothing here",
    r"(?:http |error |status |code )*(?:404|410)(?: error| not found| gone| page not found| file not found)*",
    # German
    r"(?:die )?(?:angeforderte )?seite (?:wurde )?(?:leider )?nicht gefunden",
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
    # Russian, Japanese, Chinese
    r"страница не (?:найдена|существует)",
    r"(?:お探しの)?ページ(?:が|は)?(?:見つかりません(?:でした)?|存在しません)",
    r"(?:您(?:访问|请求)的)?(?:页面|网页|頁面)(?:不存在|未找到|找不到|无法找到)|找不到(?:页面|网页|頁面)",
)
_MISSING = re.compile(rf"(?:404\W+)?(?:{'|'.join(_PHRASES)})\W*(?:404\W*)?", re.IGNORECASE)
_SEPARATOR = re.compile(r"\s+[|\u2013\u2014\u00b7\u2022:\u00bb-]\s+|\s*[|\u00bb]\s*")
_HOME_NAMES = re.compile(
    r"/(?:index|home|default|main|start)(?:\.\w+)?/?$|^/?[a-z]{2}(?:[-_][a-z]{2})?/?$", re.IGNORECASE
)
_MIN_DEPTH = 2


def is_missing_headline(headline: str) -> bool:
    """Whether a title or headline says that the page is missing, and nothing else but the site's name.

    >>> is_missing_headline("Page not found | Example"), is_missing_headline("404")
    (True, True)
    >>> is_missing_headline("How to design a 404 page"), is_missing_headline("Lost city not found after all")
    (False, False)
    """
    pieces = [piece.strip().replace("\u2019", "'") for piece in _SEPARATOR.split(headline.strip()) if piece.strip()]
    return any(_MISSING.fullmatch(piece) for piece in pieces[:3])


def is_sent_home(cited: str, final: str) -> bool:
    """Whether a deep address ended at the front page of the same site.

    >>> is_sent_home("https://a.com/news/2020/story.html", "https://www.a.com/")
    True
    >>> is_sent_home("https://a.com/index.html", "https://a.com/"), is_sent_home("https://a.com/en", "https://a.com/")
    (False, False)
    """
    cited_parts, final_parts = urlsplit(canonical_key(cited)), urlsplit(canonical_key(final))
    if cited_parts.hostname != final_parts.hostname or final_parts.path not in ("", "/"):
        return False
    if final_parts.query or final_parts.fragment or cited_parts.fragment or _HOME_NAMES.search(cited_parts.path):
        return False
    return len([segment for segment in cited_parts.path.split("/") if segment]) >= _MIN_DEPTH

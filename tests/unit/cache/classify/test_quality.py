"""Classification of pages and their placeholders. Every good page would match a simple word list."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cache.capture import CaptureOutcome, Soft404Confidence
from cache.classify.quality import PageFacts, classify
from cache.classify.soft_404 import is_missing_headline, is_redirected_home, is_redirected_to_parent

URL = "https://news.example/2024/story"
ARTICLE = "The council met on Tuesday and agreed on the plan for the bridge, after a long debate. " * 12
LONG = ARTICLE * 4


def facts(text: str, html: str = "", **changes: object) -> PageFacts:
    plain = PageFacts(
        url=URL, final_url=URL, status=200, title="Story", text=text, html=f"<p>{text}</p>{html}", links=20
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


GOOD: dict[str, PageFacts] = {
    "an article": facts(ARTICLE),
    "a style sheet class": facts(ARTICLE, "<style>.cf-button { color: red }</style>"),
    "an article about captchas": facts("Are you a robot? Verify you are human: how captchas work. " + ARTICLE),
    "an article about 404 pages": facts(
        ARTICLE, title="How to design a 404 page that helps", headlines=("The 404 page",)
    ),
    "a short page about an error code": facts(
        "HTTP 404 means that a resource is missing. " * 3, title="404 (number) - Encyclopedia"
    ),
    "a passive beacon of a vendor": facts(
        LONG, "<script src='https://static.cloudflareinsights.com/beacon.min.js'></script>"
    ),
    "a protected page, let through": facts(LONG, "<script>window._cf_chl_opt = {}</script>"),
    "a contact form with a captcha": facts("Write to us. " * 10, "<div class='g-recaptcha'></div>", inputs=4),
    "a forum thread with a login box": facts(ARTICLE, has_password_field=True, login_form_chars=40, inputs=2),
    "a thread of short posts with a login box": facts(
        "\n".join(f"Boat {n} came in before noon, said the crew." for n in range(5)),
        title="Boats at the quay - Harbour forum",
        headlines=("Boats at the quay",),
        has_password_field=True,
        login_form_chars=40,
        inputs=2,
    ),
    "the manual of a login page": facts(ARTICLE, final_url="https://docs.example/guide/login", title="Login"),
    "a story about signing in": facts(ARTICLE, url="https://a.example/sign-in", final_url="https://a.example/sign-in"),
    "a long banner over a short article": facts(
        "A short but real article. " * 12 + "We and our partners " * 40, consent_chars=800
    ),
    "a drawing": facts("", drawings=1),
    "a photograph": facts("Sunset, 2019", large_images=1),
    "a bar with less text than a short page": facts("Open from 8:40 to 17:15. We use cookies.", consent_chars=15),
    "a photograph under a banner": facts("We use cookies, accept them all", consent_chars=31, large_images=2),
    "a short answer": facts("Ada Lovelace was born on 10 December 1815 in London."),
    "a course on scripts": facts("JavaScript is required knowledge for this course. " + ARTICLE),
    "a page reached by a shortener": facts(ARTICLE, url="https://sho.rt/a/b", final_url="https://news.example/"),
    "the home page itself": facts(ARTICLE, url="https://news.example/", final_url="https://news.example/"),
    "a route of an app": facts(ARTICLE, url="https://a.example/x/y", final_url="https://a.example/#/x/y"),
    "no status": facts(ARTICLE, status=None),
    "a film named like a block page": facts(
        "Access Denied is a thriller.", title="Access Denied (1997) - Films", headlines=("Access Denied",)
    ),
    "a road under maintenance": facts(
        "The coast road is under maintenance until May.",
        title="Roads",
        headlines=("The coast road is under maintenance",),
    ),
    "a list of error codes": facts(
        "# Errors\n\n## Page not found\n\nStatus 404.\n\n## Gone\n\nStatus 410.", title="Errors", headlines=("Errors",)
    ),
    "an app that changed its address": facts("Welcome back. Search", inputs=1, address="https://news.example/home"),
}

_CLOUDFLARE = "<title>Just a moment...</title><script>window._cf_chl_opt={cvId: '3'}</script>"
BAD: dict[str, tuple[PageFacts, CaptureOutcome]] = {
    "not found": (facts("Sorry", status=404), CaptureOutcome.HTTP_ERROR),
    "a server's error": (facts(ARTICLE, status=500), CaptureOutcome.HTTP_ERROR),
    "forbidden": (facts("No", status=403), CaptureOutcome.BLOCKED),
    "too many requests": (facts("Slow down", status=429), CaptureOutcome.BLOCKED),
    "unauthorised": (facts("Who are you?", status=401), CaptureOutcome.LOGIN_WALL),
    "cloudflare's challenge": (
        facts("Verifying you are human.", _CLOUDFLARE, status=403, title="Just a moment..."),
        CaptureOutcome.CAPTCHA,
    ),
    "cloudflare's challenge with status 200": (
        facts("Performing security verification", "<form id='challenge-form'></form>"),
        CaptureOutcome.CAPTCHA,
    ),
    "cloudflare's bad gateway": (
        facts("Bad gateway", "<div class='p-0 cf-error-details-wrapper cf-error-overview'></div>", status=502),
        CaptureOutcome.HTTP_ERROR,
    ),
    "datadome": (
        facts("", "<script>var dd={'rt':'c'}</script><script src='https://ct.captcha-delivery.com/c.js'></script>"),
        CaptureOutcome.CAPTCHA,
    ),
    "incapsula": (
        facts("Request unsuccessful.", "<iframe id=x src='/_Incapsula_Resource?SWUDNSAI=31'></iframe>"),
        CaptureOutcome.BLOCKED,
    ),
    "akamai": (
        facts(
            "You don't have permission to access this. Reference #18.2d351ab8.1557333295.a4e16ab",
            "<h1>Access Denied</h1>You don't have permission. Reference&#32;&#35;18.2d351ab8",
        ),
        CaptureOutcome.BLOCKED,
    ),
    "cloudflare's challenge by its header": (facts("", headers={"cf-mitigated": "challenge"}), CaptureOutcome.CAPTCHA),
    "amazon's challenge by its header": (
        facts("", status=202, headers={"x-amzn-waf-action": "challenge"}),
        CaptureOutcome.CAPTCHA,
    ),
    "a search engine's": (
        facts("Our systems have detected unusual traffic", "<form id='captcha-form' action='index'></form>"),
        CaptureOutcome.CAPTCHA,
    ),
    "sucuri": (facts("", "<script>sucuri_cloudproxy_js = ''</script>"), CaptureOutcome.BLOCKED),
    "ddos-guard": (
        facts("Checking", "<script src='https://check.ddos-guard.net/check.js'></script>"),
        CaptureOutcome.BLOCKED,
    ),
    "a maintenance page": (
        facts("Thank you for your patience.", title="Site maintenance", headlines=("We\u2019ll be back soon!",)),
        CaptureOutcome.HTTP_ERROR,
    ),
    "a question for the age": (
        facts("Yes. No. Drink responsibly.", title="A brewery", headlines=("Are you of legal drinking age?",), links=2),
        CaptureOutcome.CONSENT_WALL,
    ),
    "a captcha and nothing else": (
        facts("Please confirm.", "<div class='g-recaptcha'></div>", links=1),
        CaptureOutcome.CAPTCHA,
    ),
    "a login form": (
        facts("Sign in to continue. Email Password Forgot it?", has_password_field=True, login_form_chars=30, inputs=2),
        CaptureOutcome.LOGIN_WALL,
    ),
    "a login form with short sentences about accounts": (
        facts(
            "\n".join(f"{what} needs an account of this harbour." for what in ("A berth", "A crane", "A tug", "A key")),
            title="Harbour - Members",
            headlines=("Harbour",),
            has_password_field=True,
            login_form_chars=40,
            inputs=2,
        ),
        CaptureOutcome.LOGIN_WALL,
    ),
    "a login form under a title of another thing": (
        facts(
            "\n".join(f"Boat {n} came in before noon, said the crew." for n in range(5)),
            title="Portal",
            headlines=("Good morning",),
            has_password_field=True,
            login_form_chars=40,
            inputs=2,
        ),
        CaptureOutcome.LOGIN_WALL,
    ),
    "a login form with a long foot": (
        facts(
            ARTICLE,
            has_password_field=True,
            login_form_chars=50,
            inputs=2,
            final_url="https://news.example/login?next=1",
        ),
        CaptureOutcome.LOGIN_WALL,
    ),
    "a login that asks for the address first": (
        facts("Enter your email to continue " * 4, inputs=1, final_url="https://accounts.news.example/x"),
        CaptureOutcome.LOGIN_WALL,
    ),
    "sent to a sign-in page": (
        facts("Welcome back. Email. Next. " * 4, inputs=1, final_url="https://news.example/sign-in"),
        CaptureOutcome.LOGIN_WALL,
    ),
    "a consent page of its own": (
        facts(ARTICLE, final_url="https://consent.news.example/m?continue=x"),
        CaptureOutcome.CONSENT_WALL,
    ),
    "a dialog that covers a menu": (facts("Home News Sport", consent_covers=True), CaptureOutcome.CONSENT_WALL),
    "a dialog that covers a photograph": (
        facts("Sunset, 2019", consent_covers=True, large_images=1),
        CaptureOutcome.PARTIAL,
    ),
    "a consent dialog and nothing else": (
        facts("We and our 847 partners store information on your device. " * 5, consent_chars=280),
        CaptureOutcome.CONSENT_WALL,
    ),
    "not found, politely": (facts("Try the search " * 9, title="Page not found | News"), CaptureOutcome.SOFT_404),
    "not found, in the headline": (facts("Sorry about that. " * 9, headlines=("404",)), CaptureOutcome.SOFT_404),
    "not found, in Japanese": (
        facts("申し訳ありません。" * 9, title="ページが見つかりません"),
        CaptureOutcome.SOFT_404,
    ),
    "not found, under the name of the site": (
        facts("# Acme\n\n## Page not found\n\nTry the search.", title="Acme", headlines=("Acme",)),
        CaptureOutcome.SOFT_404,
    ),
    "a block page without a vendor's marker": (
        facts(
            "Something about your browser made us think you were a bot. " * 9,
            title="Pardon Our Interruption",
            headlines=("Pardon Our Interruption...",),
        ),
        CaptureOutcome.BLOCKED,
    ),
    "an app that went to its login form": (
        facts("Welcome back\nE-mail Continue", inputs=1, address="https://news.example/login?next=%2Fstory"),
        CaptureOutcome.LOGIN_WALL,
    ),
    "sent home": (facts(ARTICLE, final_url="https://www.news.example/"), CaptureOutcome.SOFT_404),
    "nothing": (facts(""), CaptureOutcome.EMPTY),
    "nothing but zero-width characters": (facts("\u200b \ufeff\n" * 100), CaptureOutcome.EMPTY),
    "nothing but its number": (facts("404"), CaptureOutcome.SOFT_404),
    "much that is hidden, and nothing else": (facts("", hidden_chars=3000), CaptureOutcome.EMPTY),
    "an app that wants scripts": (
        facts("You need to enable JavaScript to run this app. " + "Home About Contact " * 5),
        CaptureOutcome.EMPTY,
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_page_is_evidence(name: str) -> None:
    finding = classify(GOOD[name])
    assert (finding.outcome, finding.detail, finding.gone) == (CaptureOutcome.OK, "", False)


@pytest.mark.parametrize("name", BAD)
def test_bad_page_has_its_outcome_and_a_detail(name: str) -> None:
    page, outcome = BAD[name]
    finding = classify(page)
    assert finding.outcome is outcome
    assert finding.detail


def test_picture_over_much_hidden_text_is_evidence_with_a_note() -> None:
    finding = classify(facts("", large_images=1, hidden_chars=3000))
    assert finding.outcome is CaptureOutcome.OK
    assert "most of its text is hidden" in finding.detail


SIGNS: dict[str, PageFacts] = {
    "script that looks for a driver": facts("", "<script>if (navigator.webdriver) document.body.remove()</script>"),
    "script of a vendor behind a placeholder": facts(
        "Loading…", "<script src='https://js.datadome.co/tags.js'></script>"
    ),
    "title of a challenge": facts("Please wait...", title="One moment, please"),
    "asks for JavaScript": facts("Please enable JavaScript to continue."),
    "asks for another browser": facts("Your browser is not supported."),
}


@pytest.mark.parametrize("name", SIGNS)
def test_empty_page_with_a_sign_of_blocking_may_be_blocked(name: str) -> None:
    finding = classify(SIGNS[name])
    assert (finding.outcome, finding.may_be_blocked) == (CaptureOutcome.EMPTY, True)


@pytest.mark.parametrize("page", [facts(""), facts("Loading…"), facts("", "<script src='/app.js'></script>")])
def test_empty_page_without_a_sign_of_blocking_is_only_empty(page: PageFacts) -> None:
    finding = classify(page)
    assert (finding.outcome, finding.may_be_blocked) == (CaptureOutcome.EMPTY, False)


def test_automation_check_on_a_page_with_content_is_no_sign() -> None:
    assert not classify(facts(ARTICLE, "<script>track(navigator.webdriver)</script>")).may_be_blocked
    assert not classify(facts(ARTICLE, headers={"cf-mitigated": "challenge"})).may_be_blocked


@pytest.mark.parametrize(("status", "gone"), [(404, True), (410, True), (403, False), (500, False), (451, False)])
def test_only_404_and_410_mean_that_a_page_is_gone(status: int, gone: bool) -> None:
    assert classify(facts("Sorry", status=status)).gone is gone


@pytest.mark.parametrize(
    ("page", "outcome", "soft_404_confidence"),
    [
        (facts(ARTICLE), CaptureOutcome.OK, None),
        (facts("Sorry. " * 9, title="Page not found"), CaptureOutcome.SOFT_404, Soft404Confidence.STATED),
        (facts("Listen to it. " * 9, title="Not Found"), CaptureOutcome.SOFT_404, Soft404Confidence.LIKELY),
        (facts("The page was not found.\n" * 9, title="Not Found"), CaptureOutcome.SOFT_404, Soft404Confidence.STATED),
        (facts("An even number. " * 9, headlines=("404",)), CaptureOutcome.SOFT_404, Soft404Confidence.LIKELY),
        (facts("Oops", headlines=("404",)), CaptureOutcome.SOFT_404, Soft404Confidence.STATED),
        (facts(ARTICLE, final_url="https://news.example/"), CaptureOutcome.SOFT_404, Soft404Confidence.LIKELY),
        (
            facts(ARTICLE, title="News", final_url="https://news.example/2024"),
            CaptureOutcome.OK,
            Soft404Confidence.SLIGHT,
        ),
        (facts(ARTICLE, title="A story", final_url="https://news.example/2024"), CaptureOutcome.OK, None),
        (facts("no", final_url="https://news.example/2024", status=404), CaptureOutcome.HTTP_ERROR, None),
    ],
)
def test_possible_soft_404_has_its_confidence(
    page: PageFacts, outcome: CaptureOutcome, soft_404_confidence: Soft404Confidence | None
) -> None:
    found = classify(page)
    assert (found.outcome, found.soft_404_confidence) == (outcome, soft_404_confidence)


@pytest.mark.parametrize(
    ("cited", "final", "up"),
    [
        ("https://a.com/news/2020/story", "https://www.a.com/news", True),
        ("https://a.com/story", "https://a.com/", True),
        ("https://a.com/news/story", "https://a.com/news/story", False),
        ("https://a.com/news/story", "https://a.com/newsroom", False),
        ("https://a.com/news/story", "https://a.com/news?from=story", False),
        ("https://a.com/news/index.html", "https://a.com/news/", False),
        ("https://a.com/news/story/amp", "https://a.com/news/story", False),
        ("https://a.com/a-song-of-ours/lyrics", "https://a.com/a-song-of-ours", False),
        ("https://a.com/#/story", "https://a.com/", False),
        ("https://a.com/en", "https://a.com/", False),
    ],
)
def test_redirect_to_a_parent_url_is_recognized(cited: str, final: str, up: bool) -> None:
    assert is_redirected_to_parent(cited, final, ("The news",)) is up


def test_binary_data_decoded_as_text_is_damaged() -> None:
    packed = bytes(range(256)).decode("cp1252", errors="replace") * 4
    finding = classify(facts(packed))
    assert finding.outcome is CaptureOutcome.DAMAGED
    assert "no writing" in finding.detail
    few = ARTICLE.replace("debate", "d\ufffdbate") + "\x07" * 5
    assert classify(facts(few)).outcome is CaptureOutcome.OK


@pytest.mark.parametrize(
    "headline",
    ["404", "Error 404", "This page isn't available", "Sorry, we couldn't find that page", "Article not found - Site",
     "404 - Page not found", "Whoops!", "Site | 404"],
)  # fmt: skip
def test_headlines_of_missing_pages_are_recognized(headline: str) -> None:
    assert is_missing_headline(headline)


@pytest.mark.parametrize(
    "headline",
    ["Page found", "Lost and found", "404 ways to cook rice", "Not found in nature: an element made", "Error handling",
     ""],
)  # fmt: skip
def test_other_headlines_are_not_headlines_of_missing_pages(headline: str) -> None:
    assert not is_missing_headline(headline)


@pytest.mark.parametrize(
    ("cited", "final", "home"),
    [
        ("https://a.com/x/y.html", "https://a.com/", True),
        ("http://a.com/x/y", "https://www.a.com", True),
        ("https://a.com/x/y", "https://a.com/?from=x", False),
        ("https://a.com/about", "https://a.com/", False),
        ("https://a.com/x/y", "https://b.com/", False),
        ("https://a.com/en/home", "https://a.com/", False),
    ],
)
def test_redirect_to_the_home_page_is_recognized(cited: str, final: str, home: bool) -> None:
    assert is_redirected_home(cited, final) is home


def test_detail_names_where_unshown_text_is() -> None:
    dead = classify(facts("Harbour news", script_chars=3000))
    folded = classify(facts("Harbour news", hidden_chars=3000))
    assert (dead.outcome, dead.detail) == (CaptureOutcome.OK, "12 characters visible; most text is in scripts")
    assert (folded.outcome, folded.detail) == (
        CaptureOutcome.OK,
        "most of its text is hidden (3000 of 3012 characters)",
    )
    assert classify(facts(ARTICLE, script_chars=300, hidden_chars=300)).detail == ""

"""Login pages of many structures and languages are recognized; pages with a form next to their content are not."""

from __future__ import annotations

import time

import pytest

from cache.backends.content import facts_of
from cache.backends.plain_html import read_html
from cache.capture import CaptureOutcome
from cache.classify.quality import Finding, classify
from cache.classify.walls import is_login_address, is_login_title, is_registration_title, may_be_login_address
from tests.labelled.forms import FormPage, content_pages, login_pages

pytestmark = pytest.mark.slow


def _classify_page(page: FormPage) -> Finding:
    plain = read_html(page.html, page.url)
    return classify(facts_of(plain, page.html, url=page.url, final_url=page.url, status=200))


def test_at_least_95_percent_of_login_pages_are_recognized() -> None:
    pages = list(login_pages())
    missed = [page.name for page in pages if _classify_page(page).outcome is not CaptureOutcome.LOGIN_WALL]
    assert len(pages) >= 46
    assert len(missed) <= 0.05 * len(pages), missed


def test_at_most_one_percent_of_content_pages_are_rejected() -> None:
    pages = list(content_pages())
    refused = [
        (page.name, _classify_page(page).detail)
        for page in pages
        if _classify_page(page).outcome is not CaptureOutcome.OK
    ]
    assert len(pages) >= 100
    assert len(refused) <= 0.01 * len(pages), refused


@pytest.mark.parametrize(
    "title",
    ["Login", "Member login | Society of Engineers", "Weft - Sign In", "Please log in", "Welcome back! Sign in",
     "Log in or sign up", "Anmelden bei Weft", "Inicio de sesión", "ログイン | Weft", "Weft: Log in"],
)  # fmt: skip
def test_titles_of_login_pages_are_recognized(title: str) -> None:
    assert is_login_title(title)


@pytest.mark.parametrize(
    "title",
    ["How to log in to Weft", "Single sign-on - Encyclopedia", "Sign in with a stamp: the county tries a new login",
     "docker login | Reference", "Anmeldung zum Kurs: so geht es", "The accession", ""],
)  # fmt: skip
def test_titles_of_other_pages_are_not_recognized(title: str) -> None:
    assert not is_login_title(title)


def test_titles_of_registration_forms_are_recognized() -> None:
    assert is_registration_title("Create an account | Weft")
    assert not is_registration_title("Registration of boats | Weft")


@pytest.mark.parametrize(
    ("path", "certain", "possible"),
    [
        ("/login", True, True),
        ("/member-login.php", True, True),
        ("/connexion", True, True),
        ("/account.html", False, True),
        ("/myaccount.asp", False, True),
        ("/index.php?content=login", False, True),
        ("/login-history-of-banks", False, False),
        ("/accounts-of-the-war", False, False),
        ("/story?title=login", False, True),
        ("/story?q=how+to+login", False, False),
    ],
)
def test_addresses_of_login_pages_are_recognized(path: str, certain: bool, possible: bool) -> None:
    url = f"https://a.example{path}"
    assert (is_login_address(url), may_be_login_address(url)) == (certain, possible)


@pytest.mark.parametrize("piece", ["please ", "log in ", "| "])
def test_hostile_titles_are_read_in_linear_time(piece: str) -> None:
    began = time.process_time()
    is_login_title(piece * 50_000)
    is_login_title((piece * 150)[:150])
    assert time.process_time() - began < 0.5

"""Classification of the labelled pages from their HTML."""

from __future__ import annotations

import time

import pytest

from cache.backends.content import facts_of
from cache.backends.plain_html import read_html
from cache.capture import CaptureOutcome
from cache.classify.quality import Finding, PageFacts, classify
from tests.labelled.labels import LabelledPage, compare_with_labels, labelled_pages

pytestmark = pytest.mark.slow


def _classify_page(page: LabelledPage) -> Finding:
    plain = read_html(page.html, page.final_url)
    return classify(facts_of(plain, page.html, url=page.url, final_url=page.final_url, status=page.status))


def test_precision_and_recall_of_classification_meet_their_targets() -> None:
    found = compare_with_labels({page.name: _classify_page(page).outcome for page in labelled_pages()})
    assert found.precision >= 0.98, found.false_alarms
    assert found.recall >= 0.90, found.missed
    assert found.exact >= 0.90 * found.bad


def test_paywall_is_reported_and_the_page_is_still_evidence() -> None:
    finding = _classify_page(next(page for page in labelled_pages() if page.name == "paywalled-story"))
    assert finding.outcome is CaptureOutcome.OK
    assert "paywall" in finding.detail


@pytest.mark.parametrize(
    "piece", ["<noscript>", "<iframe ", "<h1>access denied</h1>", "var dd={", "<body class='neterror' "]
)
def test_hostile_markup_is_read_in_linear_time(piece: str) -> None:
    """Linear time is a fraction of a second, quadratic time takes minutes."""
    began = time.process_time()
    html = piece * (200_000 // len(piece))
    classify(
        PageFacts(url="https://a.example/", final_url="https://a.example/", status=200, html=html, text=html[:200])
    )
    read_html(f"<noscript></noscript>{html}", "https://a.example/")
    assert time.process_time() - began < 5

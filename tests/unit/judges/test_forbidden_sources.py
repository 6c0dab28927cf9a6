from __future__ import annotations

import pytest
from pydantic import ValidationError

from judges.forbidden_sources import ForbiddenSource, ForbiddenSources
from rubrics.verdict import Claim, Outcome, Reason


def forbidden(**fields: object) -> ForbiddenSource:
    return ForbiddenSource(reason="the benchmark", **fields)  # type: ignore[arg-type]


HOST = forbidden(host="Bench.example")
PREFIX = forbidden(url="https://hub.example/sets/bench")
PAGE = forbidden(url="https://hub.example/page?id=1")
DOI = forbidden(doi="https://doi.org/10.1234/Abc.56")


@pytest.mark.parametrize(
    ("entry", "url", "matches"),
    [
        (HOST, "http://www.bench.example/tasks", True),
        (HOST, "https://data.bench.example:8443/x?y#z", True),
        (HOST, "https://mybench.example/", False),
        (HOST, "https://bench.example.org/", False),
        (HOST, "https://other.example/?u=https://bench.example/", False),
        (HOST, "https://web.archive.org/web/20250101000000/https://bench.example/tasks", True),
        (HOST, "https://web.archive.org/web/2025id_/http:/www.bench.example/", True),
        (HOST, "https://web.archive.org/web/2025/bench.example/tasks", True),
        (HOST, "https://web.archive.org/web/2025/https://web.archive.org/web/2024/www.bench.example", True),
        (HOST, "https://web.archive.org/web/2025/other.example/bench.example", False),
        (PREFIX, "https://hub.example/sets/bench/", True),
        (PREFIX, "http://www.hub.example/sets/bench/files?page=2", True),
        (PREFIX, "https://hub.example/sets/bench?tab=1", True),
        (PREFIX, "https://hub.example/sets/benchmark", False),
        (PAGE, "https://hub.example/page?id=1&tab=2", True),
        (PAGE, "https://hub.example/page?id=12", False),
        (PREFIX, "https://hub.example/sets/%62ench/a", True),
        (DOI, "https://dx.doi.org/10.1234/abc.56", True),
        (DOI, "https://publisher.example/doi/full/10.1234/ABC.56?download=true", True),
        (DOI, "https://publisher.example/article?id=10.1234%2Fabc.56", True),
        (DOI, "https://preprints.example/10.1234/abc.56v2.full.pdf", True),
        (DOI, "https://publisher.example/doi/10.1234/abc.567", False),
        (DOI, "https://publisher.example/doi/110.1234/abc.56", False),
        (HOST, "no address", False),
    ],
)
def test_entry_matches_urls_of_its_source(entry: ForbiddenSource, url: str, matches: bool) -> None:
    assert entry.matches(url) is matches


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "exactly one of host, url and doi"),
        ({"host": "a.example", "doi": "10.1234/x"}, "exactly one of host, url and doi"),
        ({"host": "https://a.example/x"}, "without scheme and path"),
        ({"url": "a.example/x"}, "only http and https"),
        ({"doi": "abc"}, "write it as 10.1234/abcd"),
        ({"host": "a.example", "score": -2}, "score"),
    ],
)
def test_invalid_entry_is_rejected(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        forbidden(**fields)


@pytest.mark.parametrize(
    ("sources", "penalized"),
    [
        (None, None),
        ((), None),
        (("https://bench.example/", "https://other.example/"), None),
        (("https://bench.example/",), False),
        (("https://bench.example/", "https://doi.org/10.1234/abc"), True),
    ],
)
def test_claim_fails_only_if_all_its_sources_are_forbidden(
    sources: tuple[str, ...] | None, penalized: bool | None
) -> None:
    listed = ForbiddenSources([HOST, forbidden(doi="10.1234/abc", score=-1)])
    verdict = listed.verdict(Claim(text="It is so", sources=sources))
    assert (verdict and verdict.penalized) is penalized
    if verdict is not None:
        assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, Reason.SOURCE_FORBIDDEN)
        assert "https://bench.example/ does not count as a source: the benchmark" in verdict.reasoning

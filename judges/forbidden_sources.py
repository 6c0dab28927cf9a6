"""Sources that do not count: hosts, URL prefixes and DOIs that a task or the service does not accept. Pure.

Typical entries are the pages of the benchmark itself, and the article that a task was written from. A claim whose
sources are all forbidden fails, see ``source_policy``. Other sources of a claim still count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from cache.capture import Capture
from cache.urls import canonical_key, unfetchable_reason
from rubrics.verdict import Claim, Outcome, Reason, Verdict

_HOST: Final = re.compile(r"(?:[\w-]{1,63}\.)*[\w-]{1,63}")
_DOI: Final = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
_ARCHIVED: Final = re.compile(r"https://web\.archive\.org/web/[^/]*/(?:https?:/+)?(.+)", re.IGNORECASE)
_Entry = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]


class ForbiddenSource(BaseModel):
    """Entry of a list of forbidden sources: a host with its subdomains, the pages below a URL, or a DOI."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: _Entry | None = Field(default=None, description="Host, with all its subdomains: benchmark.example")
    url: _Entry | None = Field(default=None, description="URL of a page, with all pages below it")
    doi: _Entry | None = Field(default=None, description="DOI, in whatever URL: 10.1234/abcd")
    reason: _Entry = Field(description="Why the source does not count; shown with the verdict")
    score: Literal[0, -1] = Field(
        default=0, description="Score of a claim that cites only such sources: 0, or -1 as in DeepResearch Bench II"
    )

    @model_validator(mode="after")
    def _one_pattern(self) -> ForbiddenSource:
        if [self.host, self.url, self.doi].count(None) != 2:
            raise _invalid("use exactly one of host, url and doi")
        if self.host is not None and not _HOST.fullmatch(self.host):
            raise _invalid(f"host {self.host!r} is not a host name; write it without scheme and path: example.org")
        if self.url is not None and (refusal := unfetchable_reason(self.url)) is not None:
            raise _invalid(f"url {self.url!r} is invalid: {refusal}")
        if self.doi is not None and not _DOI.fullmatch(self.doi):
            raise _invalid(f"doi {self.doi!r} is not a DOI; write it as 10.1234/abcd")
        return self

    def matches(self, url: str) -> bool:
        """Return whether a URL is one of this source. A copy in the web archive counts as the page itself."""
        key = canonical_key(url)
        while (archived := _ARCHIVED.fullmatch(key)) is not None:
            key = canonical_key(f"https://{archived[1]}")
        if self.doi is not None:
            doi = _DOI.fullmatch(self.doi)
            return doi is not None and _contains_doi(key, doi[1])
        if self.url is not None:
            prefix = canonical_key(self.url)
            return key == prefix or key.startswith((f"{prefix.rstrip('/')}/", f"{prefix}?", f"{prefix}&", f"{prefix}#"))
        wanted = urlsplit(canonical_key(f"https://{self.host}/")).hostname or ""
        found = urlsplit(key).hostname or ""
        return found == wanted or found.endswith(f".{wanted}")


def _invalid(message: str) -> PydanticCustomError:
    return PydanticCustomError("forbidden_source", "{message}", {"message": message})


def _contains_doi(url: str, doi: str) -> bool:
    """Return whether a URL contains a DOI. ``v2`` after it is a version, ``.pdf`` a format."""
    pattern = rf"(?<![\d.]){re.escape(unquote(doi).casefold())}(?:v\d+)?(?![a-z\d])"
    return re.search(pattern, unquote(url).casefold()) is not None


class ForbiddenSources:
    """List of forbidden sources. Of several entries that match, one with the score -1 counts, else the first."""

    def __init__(self, entries: Iterable[ForbiddenSource] = ()) -> None:
        self.entries = tuple(sorted(entries, key=lambda entry: entry.score))

    def __bool__(self) -> bool:
        return bool(self.entries)

    def find(self, *urls: str | None) -> ForbiddenSource | None:
        """Return the entry that one of the URLs matches; None if none does."""
        known = [url for url in urls if url]
        return next((entry for entry in self.entries if any(map(entry.matches, known))), None)

    def of_capture(self, capture: Capture) -> ForbiddenSource | None:
        """Return the entry that the URL of a page or one of its redirects matches."""
        return self.find(capture.url, *capture.chain, capture.final_url)

    def verdict(self, claim: Claim) -> Verdict | None:
        """Return the verdict of a claim all of whose sources are forbidden by their URLs; None for any other claim."""
        found = [(url, self.find(url)) for url in claim.sources or ()]
        entries = [entry for _, entry in found if entry is not None]
        if not entries or len(entries) < len(found):
            return None
        return Verdict(
            outcome=Outcome.FAILED,
            reason=Reason.SOURCE_FORBIDDEN,
            reasoning="\n".join(forbidden_text(url, entry.reason) for url, entry in found if entry is not None),
            penalized=any(entry.score < 0 for entry in entries),
        )


def entries_json(entries: Iterable[ForbiddenSource]) -> list[dict[str, Any]]:
    """Return entries as they are in results."""
    return [entry.model_dump(exclude_defaults=True) for entry in entries]


def forbidden_text(url: str, reason: str) -> str:
    """Return the sentence that a source does not count."""
    return f"{url} does not count as a source: {reason}"


NONE_FORBIDDEN: Final = ForbiddenSources()

"""Definition of a page of this set and of its expected capture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.standin.web import Reply

CDN = "https://cdn.missing.example"
"""Host that does not exist: requests to it fail at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A page, and what a person sees on it.

    Attributes:
        reply: Response of the server.
        shown: Texts that a person can read. All of them must be in the captured text.
        unseen: Texts that a person cannot see. None of them may be in the captured text.
        detail: Phrases that the detail of the capture must contain.
        evidence: False for a page that must not count as evidence.
        beside: Further resources of the same host, by path.
        path: The path of the page's address.
    """

    reply: Reply
    shown: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    detail: tuple[str, ...] = ()
    evidence: bool = True
    beside: Mapping[str, Reply] = field(default_factory=dict)
    path: str = "/"


def page(body: str, *, title: str = "Harbour news", head: str = "") -> Reply:
    return Reply.html(f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>")


def paragraphs(name: str, count: int = 12) -> tuple[str, ...]:
    """Return different sentences, so that a test can search a text for each."""
    return tuple(
        f"Paragraph {number} of {name}: the harbour board measured {number * 7 + 3} boats on quay {number + 1} and "
        f"noted that the ferry from pier {number + 20} carried {number * 31 + 118} passengers before noon."
        for number in range(1, count + 1)
    )


def article(name: str, count: int = 12) -> str:
    return f"<h1>About {name}</h1>" + "".join(f"<p>{text}</p>" for text in paragraphs(name, count))

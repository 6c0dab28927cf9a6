"""Articles whose style sheets, scripts and pictures come from hosts that are down."""

# ruff: noqa: E501 - markup and scripts are easier to read in one piece

from __future__ import annotations

from collections.abc import Mapping

from tests.page_shapes.shapes import CDN, Shape, article, page, paragraphs
from tests.standin.web import Reply

_STYLES = "".join(f"<link rel=stylesheet href='{CDN}/{n}.css'>" for n in range(4))
_SCRIPTS = "".join(f"<script src='{CDN}/{n}.js'></script>" for n in range(6))
_PICTURES = "".join(f"<figure><img src='{CDN}/{n}.jpg' width=700 height=400 alt='quay {n}'></figure>" for n in range(5))
_MENU = "<nav><ul>" + "".join(f"<li><a href='/section/{n}'>Section {n}</a></li>" for n in range(40)) + "</ul></nav>"
_COMMENTS = "".join(f"<li class=comment><p>Comment {n}: I saw that boat, too.</p></li>" for n in range(60))
_SOCKET = "<script>const feed = new WebSocket(`ws://${location.host}/feed`)</script>"
_TABLE = "<table>" + "".join(f"<tr><td>Boat {n}<td>{n * 12} t<td>quay {n % 7}</tr>" for n in range(80)) + "</table>"


def _story(
    name: str,
    *,
    head: str = "",
    before: str = "",
    after: str = "",
    count: int = 24,
    beside: Mapping[str, Reply] | None = None,
) -> Shape:
    body = f"{_MENU}{before}<main><article>{article(name, count)}</article></main>{after}"
    return Shape(
        reply=page(body, title=f"About {name}", head=head), shown=paragraphs(name, count),
        beside=beside or {},
    )  # fmt: skip


ARTICLES: Mapping[str, Shape] = {
    "all-there": _story("all-there", after=f"<ol>{_COMMENTS}</ol>"),
    "nothing-but-the-document": _story("nothing-but-the-document", head=_STYLES + _SCRIPTS, before=_PICTURES, after=_TABLE),
    "open-socket": _story("open-socket", after=_SOCKET),
    "hanging-picture": _story("hanging-picture", before="<img src=/never.jpg width=600 height=300>", beside={"/never.jpg": Reply(delay_s=60)}),
    "long": _story("long", head=_STYLES, count=150, after=f"<ol>{_COMMENTS}</ol>"),
    "in-a-frame": Shape(
        reply=page("<iframe src=/story width=1000 height=3000></iframe>", head=_STYLES),
        shown=paragraphs("in-a-frame", 20), beside={"/story": page(article("in-a-frame", 20))},
    ),
}  # fmt: skip
"""Articles by name, each with all paragraphs that a person can read."""

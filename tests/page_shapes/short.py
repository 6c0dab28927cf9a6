"""Genuine pages with little or no text: everything visible on them is evidence."""

from __future__ import annotations

from collections.abc import Mapping

from tests.page_shapes.shapes import CDN, Shape, page
from tests.standin.documents import image_bytes
from tests.standin.web import Reply

_PICTURE = Reply(headers={"Content-Type": "image/jpeg"}, body=image_bytes(640, 400, kind="JPEG"))
_HIDDEN = "The harbour board met on the first of March and elected its chair. " * 10
_DRAWN = (
    "<canvas id=c width=600 height=300></canvas><script>const pen = c.getContext('2d'); pen.fillStyle = '#a40';"
    "for (let n = 1; n < 9; n++) pen.fillRect(n * 60, 280 - n * 25, 40, n * 25)</script>"
)
_APP = (
    "<div id=app></div><script>fetch('/api/state').then((r) => r.json()).then((state) => {"
    "document.getElementById('app').innerHTML = `<h1>${state.name}</h1><p>${state.says}</p>` })</script>"
)
_MISSING = f"<link rel=stylesheet href='{CDN}/site.css'><script src='{CDN}/site.js'></script>"


def _typed(content_type: str, body: str) -> Reply:
    return Reply(headers={"Content-Type": content_type}, body=body.encode())


def _says(text: str, *, body: str = "<p>{}</p>") -> Shape:
    return Shape(reply=page(body.format(text)), shown=(text,))


SHORT: Mapping[str, Shape] = {
    "status-line": _says("OK"),
    "sold-out": Shape(reply=page("<p class=stock>Sold out</p>", head=_MISSING), shown=("Sold out",)),
    "no-results": _says("0 results"),
    "chinese": _says("图书馆星期一闭馆。"),
    "small-app": Shape(
        reply=page(_APP),
        shown=("Pier 4", "Next ferry: 14:20, on time"),
        beside={"/api/state": _typed("application/json", '{"name": "Pier 4", "says": "Next ferry: 14:20, on time"}')},
    ),
    "canvas-chart": Shape(reply=page(_DRAWN)),
    "background-picture": Shape(
        reply=page("<div style='height:400px;background:url(/poster.jpg)'></div>"), beside={"/poster.jpg": _PICTURE}
    ),
    "picture-over-hidden-text": Shape(
        reply=page(f"<img src=/map.jpg><div style='display:none'>{_HIDDEN}</div>"),
        unseen=(_HIDDEN[:50],),
        detail=("most of its text is hidden",),
        beside={"/map.jpg": _PICTURE},
    ),
    "framed-text": Shape(
        reply=page("<iframe src=/inside width=400 height=80></iframe>"),
        shown=("Water level: 3.4 m",),
        beside={"/inside": page("<p>Water level: 3.4 m</p>")},
    ),
    "json": Shape(reply=_typed("application/json", '{"open": true}'), shown=('{"open": true}',)),
    "image-file": Shape(reply=Reply(headers={"Content-Type": "image/png"}, body=image_bytes(500, 300))),
}  # fmt: skip
"""Pages by name; each is served at the root of a separate host."""

EMPTY: Mapping[str, Shape] = {
    "blank": Shape(reply=page(""), evidence=False),
    "dead-app": Shape(
        reply=page(f"<div id=root></div><script src='{CDN}/app.js'></script>"),
        evidence=False,
        detail=("1 of 1 scripts",),
    ),
    "still-loading": Shape(reply=page("<div id=root class=loading>Loading…</div>"), evidence=False),
    "hidden-text": Shape(
        reply=page(f"<div style='display:none'>{_HIDDEN}</div>"), evidence=False, detail=("no visible text",)
    ),
}
"""Pages that show no cited content."""

"""Pages whose scripts repeat failing requests forever, and pages with many resources on a host that is down."""

from __future__ import annotations

from collections.abc import Mapping

from tests.page_shapes.shapes import CDN, Shape, article, page, paragraphs

STOPPED = "its scripts were stopped because too many of its requests failed"
_PRIVATE = "http://10.0.0.1/again"


def _sync(url: str) -> str:
    return (
        "setInterval(() => { for (let n = 0; n < 50; n++) { try { const asked = new XMLHttpRequest();"
        f"asked.open('GET', '{url}?' + Math.random(), false); asked.send() }} catch (error) {{}} }} }}, 0)"
    )


def _loop(name: str, script: str) -> Shape:
    reply = page(f"{article(name)}<script>{script}</script>")
    return Shape(reply=reply, shown=paragraphs(name), detail=(STOPPED,))


LOOPS: Mapping[str, Shape] = {
    "sync-to-private": _loop("sync-to-private", _sync(_PRIVATE)),
}
BLOCKED = "a script blocked the page and was stopped"


def _endless(name: str, script: str) -> Shape:
    return Shape(reply=page(f"{article(name)}<script>{script}</script>"), shown=paragraphs(name), detail=(BLOCKED,))


ENDLESS: Mapping[str, Shape] = {
    "endless-at-once": _endless("endless-at-once", "for (;;) {}"),
}
"""Pages with a script that blocks the page forever."""


def _waits(name: str, clock: str) -> Shape:
    script = f"const until = {clock} + 50; while ({clock} < until) {{}} said.textContent = 'It waited for the clock.'"
    return Shape(
        reply=page(f"{article(name)}<p id=said></p><script>setTimeout(() => {{ {script} }}, 1500)</script>"),
        shown=(*paragraphs(name), "It waited for the clock."),
    )


WAITING: Mapping[str, Shape] = {
    "waits-for-now": _waits("waits-for-now", "performance.now()"),
    "waits-for-the-date": _waits("waits-for-the-date", "Date.now()"),
}
"""Pages with a script that busy-waits for a time."""
DOWN: Mapping[str, Shape] = {
    "many-pictures-down": Shape(
        reply=page(
            article("many-pictures-down")
            + "".join(f"<img width=200 height=90 src='{CDN}/{n}.jpg'>" for n in range(300))
        ),
        shown=paragraphs("many-pictures-down"),
    ),
    "many-scripts-down": Shape(
        reply=page(
            article("many-scripts-down"), head="".join(f"<script src='{CDN}/{n}.js'></script>" for n in range(40))
        ),
        shown=paragraphs("many-scripts-down"),
        detail=("40 of 40 scripts could not be loaded",),
    ),
    "many-pieces-down": Shape(
        reply=page(
            f"{article('many-pieces-down')}<script>for (let n = 0; n < 80; n++) {{ const piece ="
            f"document.createElement('script'); piece.src = `{CDN}/${{n}}.js`; document.head.append(piece) }}</script>"
        ),
        shown=paragraphs("many-pieces-down"),
        detail=("80 of 80 scripts could not be loaded",),
    ),
}

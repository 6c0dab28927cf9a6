"""The forms a page may come in: late, lazy, framed, packed, in another alphabet, or no web page at all.

Each says MARK and its name somewhere that a person gets to see. ``NEVER`` must not be read anywhere.
"""

# ruff: noqa: E501 - markup and scripts are easier to read in one piece

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from types import MappingProxyType

from tests.standin.documents import image_bytes, pdf_with_pages
from tests.standin.web import Answer, Reply, Visit

PROSE = "<p>" + "Ada Lovelace wrote the first program in 1843, for a machine that was never built. " * 6 + "</p>"
HTML = "text/html; charset=utf-8"


def _page(inside: str, *, head: str = "") -> Reply:
    return Reply.html(f"<!doctype html><title>Ada</title>{head}<h1>Ada</h1>{PROSE}{inside}")


def _script(code: str) -> Reply:
    return _page(f"<div id=here></div><script>{code}</script>")


def _packed(encoding: str, body: bytes) -> Reply:
    return Reply(headers={"Content-Type": HTML, "Content-Encoding": encoding}, body=body)


def _typed(content_type: str, body: bytes, **headers: str) -> Reply:
    return Reply(headers={"Content-Type": content_type, **headers}, body=body)


_ADD = "document.body.insertAdjacentHTML('beforeend', '<p>MARK {}</p>')"
_LAZY = (
    "for (let n = 0; n < 9; n++) {{ const el = document.createElement('div'); el.style.height = '900px';"
    "document.body.append(el); {watch} }}"
)
_SHOW = "el.textContent = n == 8 ? 'MARK {}' : 'item'"


def _twenty_megabytes(_: Visit) -> Reply:
    paragraphs = "".join(f"<p>{n}. {'words and figures ' * 280}</p>" for n in range(4_000))
    return _typed(HTML, f"<h1>MARK twenty-megabytes</h1>{paragraphs}".encode())


def _pdf(content_type: str) -> Answer:
    return lambda _: _typed(content_type, pdf_with_pages(2))


LATE: Mapping[str, Reply] = {
    "late-timer": _script(f"setTimeout(() => {_ADD.format('late-timer')}, 5000)"),
    "late-chain": _script(
        f"let n = 0; const next = () => ++n < 12 ? setTimeout(next, 400) : {_ADD.format('late-chain')}; next()"
    ),
    "late-answer": _script(
        "fetch('/slow-answer').then((r) => r.text()).then((t) => document.body.insertAdjacentHTML('beforeend', t))"
    ),
    "late-image-hangs": _page(f"<img src='/never'><script>setTimeout(() => {_ADD.format('late-image-hangs')}, 900)</script>"),
    "late-frame": _page(
        "<iframe width=400 height=90 srcdoc=\"<script>setTimeout(() => document.body.append('MARK late-frame'), 4000)"
        '</script>"></iframe>'
    ),
    "typed-out": _script(
        "const words = 'MARK typed-out'; let n = 0; const step = () => { here.textContent = words.slice(0, n++ / 4);"
        "if (n <= 4 * words.length) requestAnimationFrame(step) }; step()"
    ),
    "lazy-on-intersection": _script(
        _LAZY.format(
            watch="new IntersectionObserver((all, me) => all.forEach((e) => { if (e.isIntersecting) { "
            + _SHOW.format("lazy-on-intersection")
            + "; me.disconnect() } })).observe(el)"
        )
    ),
    "lazy-on-scroll": _script(
        _LAZY.format(
            watch="addEventListener('scroll', () => { if (el.getBoundingClientRect().top < innerHeight) "
            + _SHOW.format("lazy-on-scroll")
            + " })"
        )
    ),
    "lazy-frame": _page("<div style='height:4000px'></div><iframe loading=lazy width=400 height=90 src='/inner-lazy'></iframe>"),
    "content-visibility": _page("<div style='height:4000px'></div><div style='content-visibility:auto'>MARK content-visibility</div>"),
    "list-that-grows": _script(
        "let n = 0; const more = () => { for (let i = 0; i < 10; i++) document.body.insertAdjacentHTML('beforeend',"
        "`<p style='height:99px'>${++n == 35 ? 'MARK list-that-grows' : n}</p>`) }; more(); addEventListener('scroll',"
        "() => { if (n < 40 && scrollY + innerHeight > document.body.offsetHeight - 300) setTimeout(more, 40) })"
    ),
    "inner-scroller": Reply.html(
        "<!doctype html><title>Ada</title><body style='margin:0;height:100vh;overflow:hidden'><main style='height:100vh;"
        f"overflow-y:auto'><h1>Ada</h1>{PROSE}<div style='height:5000px'></div><p>MARK inner-scroller</p></main>"
    ),
    "tall": _page("<div style='height:29000px'></div><p>MARK tall</p>"),
}  # fmt: skip

MADE: Mapping[str, Reply] = {
    "app-that-fetches": Reply.html(
        "<!doctype html><title>Ada</title><div id=root></div><script>fetch('/data').then((r) => r.json()).then((d) => {"
        "root.innerHTML = `<h1>${d.name}</h1><p>${d.text.repeat(5)}</p>` })</script>"
    ),
    "app-with-routes": _script("history.pushState({}, '', '/made-up-route'); here.textContent = 'MARK app-with-routes'"),
    "written": _page("<script>document.write('<p>MARK writ' + 'ten</p>')</script>"),
    "custom-element": _script(
        "customElements.define('my-part', class extends HTMLElement { connectedCallback() {"
        "this.attachShadow({ mode: 'open' }).innerHTML = '<p>MARK custom-<slot></slot></p>' } });"
        "here.innerHTML = '<my-part>element</my-part>'"
    ),
    "shadow-declared": _page("<div><template shadowrootmode=open><p>MARK shadow-declared</p></template></div>"),
    "shadow-closed": _script("here.attachShadow({ mode: 'closed' }).innerHTML = '<p>MARK shadow-closed</p>'"),
    "generated": _page("<p class=g>MARK</p>", head="<style>.g::after { content: ' generated' }</style>"),
    "frame": _page("<iframe src='/inner-frame' width=400 height=90></iframe>"),
    "frame-elsewhere": _page("<iframe src='{elsewhere}/inner-elsewhere' width=400 height=90></iframe>"),
    "frame-in-frame": _page("<iframe src='/outer' width=500 height=200></iframe>"),
    "frameset": Reply.html("<title>Ada</title><frameset rows='50%,50%'><frame src='/inner-one'><frame src='/inner-two'></frameset>"),
    "under-a-banner": _page(
        "<p>MARK under-a-banner</p><div id=onetrust-banner-sdk role=dialog style='position:fixed;inset:0;background:#fff'>"
        "<p>We value your privacy</p><button>Accept all</button></div>"
    ),
    "asks-in-dialogs": _page(
        "<script>alert('NEVER'); confirm('NEVER'); prompt('NEVER'); onbeforeunload = () => 'NEVER'</script><p>MARK asks-in-dialogs"
    ),
    "opens-windows": _page("<script>open('/never-seen'); setTimeout(() => open('/never-seen'), 300)</script><p>MARK opens-windows"),
    "folded": _page("<details><summary>More</summary><p>MARK folded</p></details>"),
    "behind-a-tab": _page(
        "<div role=tablist><button role=tab aria-controls=p>Size</button></div><div role=tabpanel id=p hidden>MARK behind-a-tab</div>"
    ),
    "table": _page("<table><tr><th>Form<th>Mark<tr><td colspan=2>both<tr><td>MARK<td>table</table>"),
    "tables-within": _page("<table><tr><td><table><tr><td>a<td>b<tr><td>MARK<td>tables-within</table></table>"),
    "definitions": _page("<dl><dt>MARK<dd>definitions</dl>"),
    "form-values": _page("<form><input value='MARK form-values'><textarea>kept</textarea></form>"),
    "columns": _page("<div style='columns:2'><p>MARK columns</p><p>more</p></div>"),
    "drawn-text": _page("<svg width=400 height=50><text y=30>MARK drawn-text</text></svg>"),
    "ruby-and-maths": _page("<p>MARK <ruby>ruby<rp>(</rp><rt>r</rt><rp>)</rp></ruby> <math><mi>x</mi><mo>=</mo><mn>2</mn></math>"),
}  # fmt: skip

BYTES: Mapping[str, Answer] = {
    "gzip": _packed("gzip", gzip.compress(_page("MARK gzip").body)),
    "deflate": _packed("deflate", zlib.compress(_page("MARK deflate").body)),
    "latin-1": _typed("text/html; charset=iso-8859-1", "<h1>Café</h1>".encode("latin-1") + _page("MARK latin-1").body),
    "charset-in-head": _typed("text/html", "<meta charset=windows-1251><p>Мост MARK charset-in-head ".encode("cp1251") + PROSE.encode()),
    "utf-16": _typed("text/html", ("\ufeff<p>MARK utf-16 " + PROSE).encode("utf-16-le")),
    "shift-jis": _typed("text/html; charset=shift_jis", ("<p>桜 MARK shift-jis " + PROSE).encode("shift_jis")),
    "xhtml": _typed(
        "application/xhtml+xml",
        f"<html xmlns='http://www.w3.org/1999/xhtml'><head><title>A</title></head><body>{PROSE}<p>MARK xhtml</p></body></html>".encode(),
    ),
    "no-doctype-no-type": Reply(body=b"<html><body>" + PROSE.encode() + b"MARK no-doctype-no-type"),
    "right-to-left": _page("<p dir=rtl>افتتحت البلدية المكتبة MARK right-to-left</p>"),
    "twenty-megabytes": _twenty_megabytes,
    "pdf": _pdf("application/pdf"),
    "pdf-called-html": _pdf(HTML),
    "pdf-called-bytes": _pdf("application/octet-stream"),
    "json": _typed("application/json", b'{"said": "MARK json"}'),
    "csv-attached": _typed("text/csv", b"MARK,csv-attached\n" * 9, **{"Content-Disposition": "attachment; filename=a.csv"}),
    "plain-text": _typed("text/plain", b"MARK plain-text\n"),
    "markdown": _typed("text/markdown", b"# MARK markdown\n"),
    "feed": _typed("application/rss+xml", b"<rss><channel><title>MARK feed</title></channel></rss>"),
    "image": lambda _: _typed("image/png", image_bytes(300, 200)),
}  # fmt: skip

WAYS: Mapping[str, Answer] = {
    "redirects": Reply.redirect("/hop-1"),
    "refresh": Reply.html("<meta http-equiv=refresh content='0; url=/arrived-refresh'>"),
    "by-script": Reply.html("<script>location.replace('/arrived-script')</script>"),
    "odd-status": Reply(status=203, headers={"Content-Type": HTML}, body=_page("MARK odd-status").body),
    "wants-a-cookie": lambda visit: (
        _page("MARK wants-a-cookie")
        if "been=here" in visit.headers.get("cookie", "")
        else Reply(status=302, headers={"Location": "/wants-a-cookie", "Set-Cookie": "been=here; Path=/"})
    ),
}

BESIDES: Mapping[str, Reply] = {
    "slow-answer": Reply(body=b"<p>MARK late-answer</p>", delay_s=4.5),
    "never": Reply(delay_s=120),
    "never-seen": Reply.html("<h1>NEVER</h1>" + PROSE),
    "data": _typed("application/json", b'{"name": "Ada", "text": "MARK app-that-fetches and more of the same text. "}'),
    "inner-frame": Reply.html("<p>MARK frame</p>"),
    "inner-lazy": Reply.html("<p>MARK lazy-frame</p>"),
    "inner-elsewhere": Reply.html("<p>MARK frame-elsewhere</p>"),
    "outer": Reply.html("<p>outer</p><iframe src='/inmost' width=300 height=90></iframe>"),
    "inmost": Reply.html("<p>MARK frame-in-frame</p>"),
    "inner-one": Reply.html(f"<p>MARK frameset</p>{PROSE}"),
    "inner-two": Reply.html("<p>the other one</p>"),
    **{f"hop-{n}": Reply.redirect(f"/hop-{n + 1}", status=code) for n, code in enumerate((301, 302, 303, 307, 308), start=1)},
    "hop-6": _page("MARK redirects"),
    "arrived-refresh": _page("MARK refresh"),
    "arrived-script": _page("MARK by-script"),
}  # fmt: skip

CONTENT: Mapping[str, Answer] = MappingProxyType({**LATE, **MADE, **BYTES, **WAYS})
"""The pages themselves, by name; each is served at ``/name``."""

EXPECTED: Mapping[str, str] = MappingProxyType(
    {
        "pdf": "Page number 2 is visible",
        "pdf-called-html": "Page number 2 is visible",
        "pdf-called-bytes": "Page number 2 is visible",
        "table": "MARK | table",
        "tables-within": "MARK | tables-within",
        "definitions": "MARK\ndefinitions",
        "csv-attached": "MARK,csv-attached",
        "ruby-and-maths": "MARK ruby",
        "image": "",
    }
)
"""What must be read of a page, where that is not MARK and its name."""

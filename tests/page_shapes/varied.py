# ruff: noqa: E501, RUF001 - words of many languages, and markup
"""Pages of many languages and frameworks. None of them was used to tune the capture."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.page_shapes.shapes import Shape, page
from tests.standin.web import Reply

_SKELETON = "<div class='v-skeleton-loader v-skeleton-loader__article'><div class=v-skeleton-loader__bone></div></div>"


def _lines(pattern: str, count: int) -> tuple[str, ...]:
    """Return ``count`` different sentences from a pattern with ``{a}`` and ``{b}``."""
    return tuple(pattern.format(a=3 + 7 * n, b=118 + 31 * n) for n in range(count))


def _paragraphs(lines: tuple[str, ...]) -> str:
    return "".join(f"<p>{line}</p>" for line in lines)


def _json(value: object) -> Reply:
    return Reply(headers={"Content-Type": "application/json"}, body=json.dumps(value).encode())


_PT = _lines(
    "Em {b} dias de medição, o cais recebeu {a} barcos e o conselho registou cada chegada antes do meio-dia.", 10
)
_PL = _lines("W roku {b} rada portu policzyła {a} łodzi i zapisała wszystkie rejsy promu do wyspy.", 8)
_FI = _lines("Satamalautakunta laski {a} venettä laiturilla ja {b} matkustajaa lautalla ennen puoltapäivää.", 8)
_AR = _lines("سجل مجلس الميناء {a} قاربًا و{b} مسافرًا قبل الظهر على الرصيف الجديد.", 12)
_EL = _lines("Το λιμεναρχείο μέτρησε {a} σκάφη και {b} επιβάτες στο πλοίο πριν από το μεσημέρι.", 24)
_JA = _lines("港湾局は正午までに{a}隻の船と{b}人の乗客を記録した。", 8)
_IT = _lines("Ho visto {a} barche e {b} passeggeri al molo.", 5)

VARIED: Mapping[str, Shape] = {
    # Applications
    "skeleton-app": Shape(
        reply=page(
            f"<div id=app>{_SKELETON}</div><script type=module>"
            "const get = (path) => fetch(path).then((reply) => reply.json());"
            "const { next } = await get('/boot.json'); const { title, ids } = await get(next);"
            "const parts = await Promise.all(ids.map((id) => get(`/part-${id}.json`)));"
            "document.querySelector('#app').innerHTML = `<h1>${title}</h1>` + parts.map((p) => `<p>${p.text}</p>`).join('')"
            "</script>",
            title="Cais",
        ),
        shown=("Relatório do cais", *_PT),
        beside={
            "/boot.json": _json({"next": "/index.json"}),
            "/index.json": Reply(
                headers={"Content-Type": "application/json"},
                body=json.dumps({"title": "Relatório do cais", "ids": list(range(10))}).encode(),
                delay_s=0.4,
            ),
            **{f"/part-{n}.json": _json({"text": text}) for n, text in enumerate(_PT)},
        },
    ),
    "declarative-shadow": Shape(
        reply=page(
            "<port-report><template shadowrootmode=open><style>:host{display:block} ::slotted(p){color:#123}</style>"
            "<header><slot name=head></slot></header><main><slot></slot></main><p>Źródło: kapitanat</p></template>"
            f"<h1 slot=head>Raport portowy</h1>{_paragraphs(_PL)}</port-report>"
        ),
        shown=("Raport portowy", *_PL, "Źródło: kapitanat"),
    ),
    "streamed-boundaries": Shape(
        reply=page(
            "<main><h1>Satama</h1><div id=B0><template></template><p>Ladataan…</p></div></main>"
            f"<div hidden id=S0>{_paragraphs(_FI)}</div><script>setTimeout(() => {{ const slot = document.getElementById('B0');"
            "slot.replaceChildren(...document.getElementById('S0').childNodes) }, 1200)</script>"
        ),
        shown=("Satama", *_FI),
        unseen=("Ladataan",),
    ),
    # Overlays and late text
    "modal-dialog": Shape(
        reply=page(
            f"<article dir=rtl lang=ar><h1>تقرير الميناء</h1>{_paragraphs(_AR)}</article>"
            "<dialog id=d><p>نستخدم ملفات تعريف الارتباط</p><button>موافق</button></dialog><script>d.showModal()</script>",
            head="<style>dialog::backdrop{background:rgba(0,0,0,.55)}</style>",
        ),
        shown=("تقرير الميناء", *_AR[4:]),
    ),
    "revealed-on-scroll": Shape(
        reply=page(
            "<h1>Λιμάνι</h1>"
            + "".join(f"<section data-reveal><p>{line}</p></section>" for line in _EL)
            + "<script>const watch = new IntersectionObserver((found) => found.forEach((each) => {"
            "if (each.isIntersecting) each.target.classList.add('in') }), { rootMargin: '0px 0px -20% 0px' });"
            "document.querySelectorAll('[data-reveal]').forEach((each) => watch.observe(each))</script>",
            head="<style>section{min-height:260px} [data-reveal]{opacity:0;transform:translateY(60px);"
            "transition:opacity .8s .2s,transform .8s} [data-reveal].in{opacity:1;transform:none}</style>",
        ),
        shown=("Λιμάνι", *_EL),
    ),
    # Short pages
    "frameset-in-shift-jis": Shape(
        reply=Reply.html(
            "<html><head><title>潮位</title></head><frameset cols='30%,*'><frame src=/menu><frame src=/body></frameset></html>"
        ),
        shown=("目次", *_JA),
        beside={
            path: Reply(
                headers={"Content-Type": "text/html; charset=Shift_JIS"},
                body=f"<html><body>{inside}</body></html>".encode("shift_jis"),
            )
            for path, inside in (("/menu", "<a href=/body target=b>目次</a>"), ("/body", _paragraphs(_JA)))
        },
    ),
    # Forms and walls
    "curtain-with-a-button": Shape(
        reply=page(
            "<div style='position:fixed;inset:0;background:#fff;z-index:99'><p>Vítejte</p><button>Vstoupit</button></div>"
            f"<h1>Přístav</h1>{_paragraphs(_PL)}"
        ),
        shown=("Vítejte", "Přístav", *_PL),
    ),
    "forum-with-quick-login": Shape(
        reply=page(
            "<h1>Barche al molo</h1>"
            + "".join(
                f"<div class=post><b>utente{n}</b><div class=body>{line}</div></div>" for n, line in enumerate(_IT)
            )
            + "<form method=post action=/ucp><fieldset><legend>Accesso rapido</legend><input name=username size=10>"
            "<input type=password name=password size=10><button>Accedi</button></fieldset></form>",
            title="Barche al molo - Forum del porto",
        ),
        shown=("Barche al molo", *_IT),
    ),
}

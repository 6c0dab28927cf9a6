# ruff: noqa: E501, RUF001 - words of many languages, and markup
"""Pages of many languages and frameworks. None of them was used to tune the capture."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.page_shapes.shapes import CDN, Shape, page
from tests.standin.web import Reply

_COUNTRIES = "".join(f"<option value={n}>País número {n}</option>" for n in range(220))
_SKELETON = "<div class='v-skeleton-loader v-skeleton-loader__article'><div class=v-skeleton-loader__bone></div></div>"
_MENU = "".join(f"<li><a href='/s/{n}'>Oddělení služeb pro čtenáře {n}</a></li>" for n in range(30))


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
_DE = _lines("Nach {b} Fahrten zählte das Hafenamt {a} Boote am Kai und vermerkte jede Ankunft vor Mittag.", 12)
_FI = _lines("Satamalautakunta laski {a} venettä laiturilla ja {b} matkustajaa lautalla ennen puoltapäivää.", 8)
_AR = _lines("سجل مجلس الميناء {a} قاربًا و{b} مسافرًا قبل الظهر على الرصيف الجديد.", 12)
_EL = _lines("Το λιμεναρχείο μέτρησε {a} σκάφη και {b} επιβάτες στο πλοίο πριν από το μεσημέρι.", 24)
_RU = _lines("Совет порта насчитал {a} лодок у причала и {b} пассажиров парома до полудня.", 10)
_JA = _lines("港湾局は正午までに{a}隻の船と{b}人の乗客を記録した。", 8)
_IT = _lines("Ho visto {a} barche e {b} passeggeri al molo.", 5)
_HI = _lines("बंदरगाह बोर्ड ने दोपहर से पहले {a} नावें और {b} यात्री दर्ज किए।", 10)

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
    "hydrated-and-revealed": Shape(
        reply=page(
            f"<div id=__next style='visibility:hidden'><article><h1>Hafenbericht</h1>{_paragraphs(_DE)}</article></div>"
            f"<script id=__NEXT_DATA__ type=application/json>{json.dumps({'props': list(_DE) * 8})}</script>"
            "<script>addEventListener('DOMContentLoaded', () => requestAnimationFrame(() => setTimeout(() => "
            "document.getElementById('__next').style.visibility = '', 300)))</script>"
        ),
        shown=("Hafenbericht", *_DE),
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
    "status-stream": Shape(
        reply=page(
            "<p id=level>…</p><script>new EventSource('/levels').onmessage = (told) => {"
            "document.getElementById('level').textContent = told.data }</script>"
        ),
        shown=("Vattenstånd 84 cm",),
        beside={
            "/levels": Reply(
                headers={"Content-Type": "text/event-stream"},
                body="data: Vattenstånd 84 cm\n\n".encode(),
                pause_s=0.7,
                hang=True,
            )
        },
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
    "curtain-that-fades": Shape(
        reply=page(
            f"<div class=curtain><b>Порт</b></div><h1>Отчёт порта</h1>{_paragraphs(_RU)}",
            head="<style>.curtain{position:fixed;inset:0;background:#fff;z-index:9;animation:away .6s 3.5s forwards}"
            "@keyframes away{to{opacity:0;visibility:hidden}}</style>",
        ),
        shown=("Отчёт порта", *_RU),
    ),
    "endless-list": Shape(
        reply=page(
            f"<h1>Feed</h1><ul id=u>{''.join(f'<li>{line}</li>' for line in _DE)}</ul><div id=end style='height:20px'></div>"
            "<script>let n = 0; new IntersectionObserver((found) => { if (found[0].isIntersecting) for (let k = 0; k < 30; k++)"
            "{ const li = document.createElement('li'); li.textContent = 'Meldung ' + ++n; u.append(li) } }).observe(end)"
            "</script>"
        ),
        shown=("Feed", *_DE),
    ),
    # Short pages
    "free-spaces": Shape(
        reply=page(
            "<label>Frei <meter value=128 max=400></meter> <output>128</output></label>"
            "<details><summary>Mehr</summary><p>Nur für Anwohner</p></details>"
        ),
        shown=("Frei", "128", "[collapsed: Mehr] Nur für Anwohner"),
    ),
    "typed-in-slow-frames": Shape(
        reply=page(
            "<p id=t></p><script>const words = 'Brücke 4 gesperrt'; let n = 0; const step = () => {"
            "for (let k = 0; k < 3e7; k++) globalThis.sum = k; t.textContent = words.slice(0, n++ / 2);"
            "if (n <= 2 * words.length) requestAnimationFrame(step) }; step()</script>"
        ),
        shown=("Brücke 4 gesperrt",),
    ),
    "ticking-clock": Shape(
        reply=page(
            "<main><time id=t></time><p>Gate 12 closes soon</p></main><script>let n = 0; setInterval(() => {"
            "t.textContent = 'T-' + ++n }, 100)</script>"
        ),
        shown=("Gate 12 closes soon",),
    ),
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
    "drawn-words": Shape(
        reply=page(
            "<svg width=600 height=200><text x=20 y=50 font-size=30>Vízállás: 214 cm</text>"
            "<foreignObject x=20 y=80 width=400 height=80><p xmlns='http://www.w3.org/1999/xhtml'>Apad</p></foreignObject></svg>"
        ),
        shown=("Vízállás: 214 cm", "Apad"),
    ),
    # Forms and walls
    "two-steps-turkish": Shape(
        reply=page(
            "<main><img alt=logo><h2>Giriş yap</h2><form action=/next><input type=email name=eposta autocomplete=username>"
            "<button>Devam</button></form><a href=/yardim>Yardım</a></main>",
            title="Giriş Yap | Kütüphane",
        ),
        detail=("user name field",),
        evidence=False,
    ),
    "readers-account-czech": Shape(
        reply=page(
            f"<nav><ul>{_MENU}</ul></nav><h1>Přihlášení</h1><form><label>Číslo průkazu <input name=cislo></label>"
            "<label>Heslo <input type=password name=heslo></label><button>Přihlásit se</button></form>"
            "<footer>Městská knihovna</footer>",
            title="Moje konto",
        ),
        path="/moje-konto/",
        detail=("password field",),
        evidence=False,
    ),
    "application-form-spanish": Shape(
        reply=page(
            "<h1>Solicitud de amarre</h1><p>Rellene el formulario. Respondemos en tres días.</p><form><input name=nombre>"
            f"<input type=email name=correo><select name=pais>{_COUNTRIES}</select><textarea name=texto></textarea>"
            "<input type=file name=plano><label><input type=checkbox> Deseo crear una cuenta</label><button>Enviar</button></form>",
            title="Solicitud",
        ),
        shown=("Solicitud de amarre", "Respondemos en tres días."),
    ),
    "curtain-that-stays": Shape(
        reply=page(
            "<div style='position:fixed;inset:0;background:#fff;z-index:99'><svg width=40 height=40></svg></div>"
            f"<h1>बंदरगाह</h1>{_paragraphs(_HI)}",
            head=f"<script src='{CDN}/jquery.js'></script><script>window.jQuery && jQuery(() => 0)</script>",
        ),
        unseen=_HI,
        detail=("most of its text is hidden", "1 of 1 scripts could not be loaded"),
        evidence=False,
    ),
    "curtain-with-a-button": Shape(
        reply=page(
            "<div style='position:fixed;inset:0;background:#fff;z-index:99'><p>Vítejte</p><button>Vstoupit</button></div>"
            f"<h1>Přístav</h1>{_paragraphs(_PL)}"
        ),
        shown=("Vítejte", "Přístav", *_PL),
    ),
    "application-in-a-fixed-box": Shape(
        reply=page(
            f"<div style='position:fixed;inset:0;background:#fff;overflow:auto'><h1>Satama</h1>{_paragraphs(_FI)}</div>"
        ),
        shown=("Satama", *_FI),
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

"""Consent dialogs over a page: left out of text and screenshot, or a wall."""

# ruff: noqa: E501 - markup is easier to read in one piece

from __future__ import annotations

import io

import pytest
from PIL import Image

from cache.capture import CaptureOutcome, Observation
from tests.browser.conftest import Rig
from tests.standin.web import Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PROSE = (
    "<h1>Ada</h1><p>"
    + "Ada Lovelace wrote the first program in 1843, for a machine that was never built. " * 8
    + "</p>"
)
DIALOGS: dict[str, str] = {
    "absolute, by its wording": "<div style='position:absolute;z-index:9;left:0;top:0;width:100%;height:700px;background:#fff'>"
    "<p>{}</p><button>OK</button></div>",
    "box before a dark background": "<div style='position:fixed;inset:0;background:rgba(0,0,0,.8)'></div>"
    "<div class=consent-box style='position:fixed;left:400px;top:150px;background:#fff'><p>{}</p><button>OK</button></div>",
    "dialog element": "<dialog style='width:900px;height:600px'><p>{}</p><button>OK</button></dialog>"
    "<script>document.querySelector('dialog').showModal()</script>",
    "frame of another site, by its title": "<iframe title='SP Consent Message' src='FRAME' style='position:fixed;inset:0;width:100%;height:100%;border:0'>"
    "</iframe>",
    "frame of another site, by its wording": "<iframe src='FRAME' style='position:fixed;inset:0;width:100%;height:100%;border:0'></iframe>",
}  # fmt: skip
QUESTIONS = (
    "We use cookies and similar techniques.",
    "Valoramos su privacidad.",
    "当サイトではクッキーを使用します。",
    "我们重视您的隐私。",
    "נשתמש בעוגיות באתר זה.",
)
RED_PICTURE = (
    "<canvas id=c width=9 height=9 hidden></canvas><img id=i style='display:block;width:1280px;height:800px'><script>"
    "const g = c.getContext('2d'); g.fillStyle = '#f00'; g.fillRect(0, 0, 9, 9); i.src = c.toDataURL()</script>"
)


def _share_of_red(seen: Observation) -> float:
    pixels = Image.open(io.BytesIO(seen.screenshots[0])).convert("RGB").resize((40, 40)).tobytes()
    return sum(pixels[n] > 200 > 60 > pixels[n + 1] for n in range(0, len(pixels), 3)) / 1600


@pytest.mark.parametrize("how", DIALOGS)
async def test_consent_dialog_over_the_page_is_left_out_or_a_wall(rig: Rig, how: str) -> None:
    question = QUESTIONS[list(DIALOGS).index(how)]
    rig.site.pages["/ask"] = Reply.html(f"<p>{question}</p><button>OK</button>")
    address = rig.site.url("/ask").replace("127.0.0.1", "localhost")
    rig.allow(address.split("/")[2])
    dialog = DIALOGS[how].format(question).replace("FRAME", address)
    prose = await rig.show("/prose", Reply.html(PROSE + dialog))
    assert (prose.outcome, prose.detail) == (CaptureOutcome.OK, "a consent dialog that covered the page is left out")
    assert "wrote the first program in 1843" in prose.text
    assert question not in prose.text
    picture = await rig.show("/picture", Reply.html(f"<body style='margin:0'>{RED_PICTURE}{dialog}"))
    assert picture.outcome is CaptureOutcome.PARTIAL, "not fully seen, so that it refutes nothing"
    assert question not in picture.text
    assert _share_of_red(picture) == 1
    wall = await rig.show("/nothing", Reply.html(f"<p>Home News</p>{dialog}"))
    assert wall.outcome is CaptureOutcome.CONSENT_WALL


BARS: dict[str, str] = {
    "app in a fixed element": "<div style='position:fixed;inset:0'><main><p>We bake cookies every day.</p><button>OK</button></main></div>",
    "sign-in dialog": "<div style='position:fixed;left:0;top:0;width:700px;height:600px'>Sign in. We use cookies."
    "<input type=password><button>OK</button></div>",
}  # fmt: skip


@pytest.mark.parametrize("bar", BARS)
async def test_words_about_cookies_that_cover_nothing_remain(rig: Rig, bar: str) -> None:
    for page in (
        Reply.html(PROSE + BARS[bar]),
        Reply.html(f"<h1>Ada's bakery</h1><p>Open from 8:40 to 17:15.</p>{BARS[bar]}"),
    ):
        seen = await rig.show("/bar", page)
        assert seen.outcome in (CaptureOutcome.OK, CaptureOutcome.LOGIN_WALL)
        assert "cookies" in seen.text
        assert "consent" not in seen.detail

"""Text made invisible by less common CSS, and visible text that uses the same CSS."""

# ruff: noqa: E501 - markup and scripts are easier to read in one piece

from __future__ import annotations

import pytest

from cache.capture import CaptureOutcome
from tests.browser.conftest import Rig
from tests.standin.web import Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DISGUISED = {
    "oklch": "<p style='color:oklch(1 0 0)'>{}</p>",
    "lab": "<p style='color:lab(100 0 0)'>{}</p>",
    "p3": "<p style='color:color(display-p3 1 1 1)'>{}</p>",
    "oklchbg": "<div style='background:oklch(0.5 0.1 20)'><p style='color:oklch(0.5 0.1 20)'>{}</p></div>",
    "bgp3": "<div style='background:color(display-p3 0 0 0)'><p style='color:#000'>{}</p></div>",
    "fill": "<p style='-webkit-text-fill-color:transparent'>{}</p>",
    "insetpx": "<p style='clip-path:inset(500px)'>{}</p>",
    "clippoly": "<p style='clip-path:polygon(0 0)'>{}</p>",
    "clippath": "<p style='clip-path:path(\"M0 0\")'>{}</p>",
    "clipcircle": "<p style='clip-path:circle(1px at 0 0)'>{}</p>",
    "cliprect": "<p style='clip-path:rect(0 0 0 0)'>{}</p>",
    "clipurl": "<svg width=0 height=0><clipPath id=cp></clipPath></svg><p style='clip-path:url(#cp)'>{}</p>",
    "masksize": "<p style='mask-image:linear-gradient(#000,#000);mask-size:0 0;mask-repeat:no-repeat'>{}</p>",
    "fbright": "<p style='filter:brightness(20);color:#333'>{}</p>",
    "fcontrast": "<div style='background:#808080'><p style='filter:contrast(0);color:#000'>{}</p></div>",
    "fblur": "<p style='filter:blur(60px)'>{}</p>",
    "fixedbelow": "<p style='position:fixed;top:60000px'>{}</p>",
    "covershadow": "<p style='box-shadow:inset 0 0 0 1000px #fff;color:#fff'>{}</p>",
    "bgimgwhite": "<p style='background-image:linear-gradient(#fff,#fff);color:#fff'>{}</p>",
    "svgtext": "<svg width=200 height=20><text x=0 y=15 fill=#fff>{}</text></svg>",
    "svgdefs": "<svg width=200 height=20><defs><text x=0 y=15>{}</text></defs></svg>",
    "svgcliptext": "<svg width=200 height=20><clipPath id=cc><rect width=0 height=0 /></clipPath><g clip-path='url(#cc)'><text x=0 y=15>{}</text></g></svg>",
    "scrollbox": "<div style='height:3px;overflow:auto'>{}</div>",
    "shape": "<p style='border-image:none;font-variant-caps:normal;-webkit-line-clamp:0;display:-webkit-box;-webkit-box-orient:vertical;overflow:hidden;max-height:2px'>{}</p>",
    "yellow": "<p style='color:#ffffee'>{}</p>",
    "textshadow": "<p style='color:#fff;text-shadow:0 0 0 #fff'>{}</p>",
    "stroke": "<p style='color:transparent;-webkit-text-stroke:1px #fff'>{}</p>",
    "cliptext": "<p style='background:#fff;-webkit-background-clip:text;color:transparent'>{}</p>",
    "inputwhite": "<input value='{}' style='color:#fff;background:#fff;border:0'>",
    "inputplaceholderhid": "<style>.ph::placeholder{color:transparent}</style><input class=ph placeholder='{}'>",
    "inputoff": "<input value='{}' style='position:absolute;left:-9999px'>",
    "selwhite": "<select style='color:#fff;background:#fff'><option>{}</select>",
    "beforewhite": '<style>.bw::before{content:"{}";color:oklch(1 0 0)}</style><p class=bw>.</p>',
    "details": "<details><summary style='display:none'>s</summary>{}</details>",
    "detailsoff": "<details style='position:absolute;left:-9999px'><summary>s</summary>{}</details>",
    "detailswhite": "<details><summary>more</summary><p style='color:#fff'>{}</p></details>",
    "scrolleroff": "<div style='position:absolute;left:-9999px;width:200px;overflow-x:auto'><div style='width:900px'>{}</div></div>",
    "leftofscroller": "<div style='width:200px;overflow-x:auto'><div style='width:900px'><p style='margin-left:-3000px'>{}</p></div></div>",
    "frameoff": "<iframe srcdoc='{}' style='position:absolute;left:-9999px'></iframe>",
    "frameinner": "<iframe srcdoc='<p style=color:white>{}</p>' width=300 height=60></iframe>",
    "framecovered": "<div style='position:relative'><iframe srcdoc='{}' width=300 height=60></iframe><div style='position:absolute;inset:0;background:#fff'></div></div>",
    "framefilter": "<iframe srcdoc='{}' style='filter:opacity(0)' width=300 height=60></iframe>",
}

UNRENDERED = {
    "bgdata": "<p style=\"background:url('data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=');color:#fff\">{}</p>",
    "coverbefore": "<style>.cb::before{content:\"\";position:absolute;inset:0;background:#fff;z-index:2}</style><div class=cb style='position:relative'>{}</div>",
    "coverpe": "<div style='position:relative'>{}<div style='position:absolute;inset:0;background:#fff;pointer-events:none'></div></div>",
    "firstline": "<style>.fl::first-line{color:#fff}</style><p class=fl>{}</p>",
    "fsvg": "<svg width=0 height=0><filter id=ff><feFlood flood-opacity=0 /></filter></svg><p style='filter:url(#ff)'>{}</p>",
    "highlight": "<p id=hl>{}</p><style>::highlight(h){color:#fff}</style><script>{const r=new Range();r.selectNodeContents(hl);CSS.highlights.set('h',new Highlight(r))}</script>",
    "insetshadowbg": "<p style='box-shadow:inset 0 0 0 1000px #000;color:#000'>{}</p>",
    "masksvg": "<p style=\"mask-image:url('data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22 width=%221%22 height=%221%22/>')\">{}</p>",
    "maskurl": "<svg width=0 height=0><mask id=mk></mask></svg><p style='mask:url(#mk)'>{}</p>",
    "cliprow": "<div style='contain:strict'>{}</div>",
}

SHOWN = {
    "oklch": "<p style='color:oklch(0.3 0.1 20)'>{}</p>",
    "p3": "<div style='background:color(display-p3 0 0 0.2)'><p style='color:color(srgb 1 1 1)'>{}</p></div>",
    "grey": "<p style='color:#bbb'>{}</p>",
    "hexagon": "<div style='clip-path:polygon(5% 0, 95% 0, 100% 50%, 95% 100%, 5% 100%, 0 50%);padding:20px'>{}</div>",
    "slanted": "<section style='clip-path:inset(0 0 10px 0);padding:20px'><p>{}</p></section>",
    "untouchable": "<div style='clip-path:inset(1px);pointer-events:none'><p>{}</p></div>",
    "fade": "<div style='mask-image:linear-gradient(#000 80%, transparent)'><p>{}</p><p>fading</p></div>",
    "soft": "<p style='filter:blur(.5px)'>{}</p>",
    "darkmode": "<div style='filter:brightness(.9) contrast(1.1);background:#222;color:#ddd'>{}</div>",
    "onpicture": "<div style='background:linear-gradient(#123, #456);color:#fff'>{}</div>",
    "gradient": "<p style='background:linear-gradient(90deg,#c00,#00c);-webkit-background-clip:text;color:transparent'>{}</p>",
    "flatclip": "<p style='background:#046;-webkit-background-clip:text;color:transparent'>{}</p>",
    "outlined": "<p style='color:#fff;-webkit-text-stroke:1px #000'>{}</p>",
    "shaded": "<p style='color:#fff;text-shadow:1px 1px 2px #000'>{}</p>",
    "svg": "<svg width=300 height=20><text x=0 y=15>{}</text></svg>",
    "svgwhite": "<svg width=300 height=20 style='background:#024'><text x=0 y=15 fill=#fff>{}</text></svg>",
    "header": "<div style='position:fixed;top:0;left:0;background:#fff'>{}</div>",
    "input": "<input value='{}' style='width:300px'>",
    "placeholder": "<input placeholder='{}' style='width:300px'>",
    "darkinput": "<div style='background:#000'><input value='{}' style='width:300px;color:#fff;background:transparent;border:0'></div>",
    "before": "<style>.bf::before{content:'{}';color:oklch(0.2 0 0)}</style><p class=bf></p>",
    "details": "<details><summary>More</summary><p style='color:#333'>{}</p></details>",
    "frame": "<iframe srcdoc='<body style=background:#000;color:#fff>{}' width=300 height=60></iframe>",
    "low": "<div style='height:30px;overflow:hidden'>{}</div>",
    "wide": "<div style='overflow-x:auto;width:200px'><div style='width:150px'>{}</div></div>",
    "widetable": "<div style='overflow-x:auto;width:600px'><table><tr><td><div style='width:2000px'>first</div><td>{}</table></div>",
}


async def _text(rig: Rig, path: str, ways: dict[str, str], word: str) -> str:
    body = "".join(f"<div>{way.replace('{}', f'{word}-{name}-')}</div>" for name, way in ways.items())
    seen = await rig.show(
        path, Reply.html(f"<!doctype html><h1>Page</h1>{body}<p>{'Words that can be read. ' * 40}</p>")
    )
    assert seen.outcome is CaptureOutcome.OK
    assert "Words that can be read." in seen.text
    return seen.text


async def test_disguised_text_is_not_read(rig: Rig) -> None:
    text = await _text(rig, "/disguised", DISGUISED, "secret")
    assert [name for name in DISGUISED if f"secret-{name}-" in text] == []


async def test_visible_text_with_the_same_css_is_read(rig: Rig) -> None:
    text = await _text(rig, "/shown", SHOWN, "shown")
    assert [name for name in SHOWN if f"shown-{name}-" not in text] == []


async def test_text_missing_from_the_screenshot_is_stored_as_hidden_text(rig: Rig) -> None:
    body = "".join(f"<div>{way.replace('{}', f'secret-{name}-')}</div>" for name, way in UNRENDERED.items())
    prose = "".join(f"<p>Line {n} of what can be read." for n in range(40))
    seen = await rig.show("/undrawn", Reply.html(f"<!doctype html><h1>Page</h1>{body}{prose}"))
    assert [name for name in UNRENDERED if f"secret-{name}-" in seen.text] == []
    assert [name for name in UNRENDERED if f"secret-{name}-" not in seen.hidden_text] == []
    assert [n for n in range(40) if f"Line {n} of what can be read." not in seen.text] == []


async def test_overlay_over_the_whole_page_removes_no_text(rig: Rig) -> None:
    """A screenshot that shows almost nothing of the page is treated as unreliable."""
    veil = "<div style='position:fixed;inset:0;background:#eee;pointer-events:none'></div>"
    prose = "".join(f"<p>Line {n} of what can be read." for n in range(20))
    seen = await rig.show("/veiled", Reply.html(f"<!doctype html><h1>Page</h1>{prose}{veil}"))
    assert "Line 19 of what can be read." in seen.text

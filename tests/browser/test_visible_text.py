"""Visible text of a page; hidden text is stored separately."""

# ruff: noqa: E501 - markup and scripts are easier to read in one piece

from __future__ import annotations

import json

import pytest

from cache.backends.plain_html import read_html
from cache.capture import CaptureOutcome
from tests.browser.conftest import Rig
from tests.standin.web import Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

READABLE = """<!doctype html><title>Everything</title><h1>Big <em>title</em></h1>
<nav style="display:flex"><a href="/a">Home</a><a href="/b">About us</a></nav>
<p>First <b>bold</b> word<br>second line &amp; more.</p>
<h2>Lists</h2><ul><li>one<li>two<ul><li>inner</ul><li>three</ul><ol start="3"><li>c<li>d</ol>
<table><caption>People</caption><tr><th>Name<th>Born</tr><tr><td>Ada<td>1815</tr>
<tr><td>Alan <a href="/t">T.</a><td>1912</tr></table>
<details><summary>More</summary><p>Folded away</p></details><pre>a = 1
  b = 2</pre>
<p style="background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent">Gradient words</p>
<div style="background:#000;color:#fff">White on black</div>
<div style="position:relative;height:60px"><div style="position:absolute;inset:0;background:#123"></div>
<p style="position:relative;color:#fff">White over a picture</p></div>
<input value="typed"><select><option>chosen<option>other</select>
<ol reversed><li>bronze<li>silver</ol><ol><li value="7">seventh<li>eighth<li value="x">ninth</ol>
<style>i { display: inline-block; font-style: normal }</style><p><i>$</i><i>19</i><i>.99</i> <i>S</i><i>a</i><i>le</i></p>
<p><i style="width:90px">Weight</i><i>9 kg</i><i style="margin-left:9px">new</i><i style="padding:9px">Home</i><i>Up</i></p>
<p><span style="float:left;font-size:40px">O</span>nce upon a time</p><p><b style="float:left">5</b>stars</p>
<div id="host"></div><script>host.attachShadow({mode: "open"}).innerHTML = "<p>Shadow <slot></slot></p>";
host.innerHTML = "<b>slotted</b>"</script>
<iframe srcdoc="<h3>Framed</h3><p>Inside</p>" width="300" height="100"></iframe>
<iframe srcdoc="nobody sees this frame" style="display:none"></iframe><p>The end of it."""

EXPECTED = """# Big title

Home
About us

First bold word
second line & more.

## Lists

- one
- two
  - inner
- three

3. c
4. d

People
Name | Born
Ada | 1815
Alan T. | 1912

[collapsed: More]

Folded away

[end of collapsed]

a = 1
  b = 2

Gradient words

White on black

White over a picture

typed chosen

2. bronze
1. silver

7. seventh
8. eighth
9. ninth

$19.99 Sale

Weight 9 kg new Home Up

Once upon a time

5
stars

Shadow slotted

### Framed

Inside

The end of it."""

CONCEALED = {
    "display": "<p style='display:none'>{}</p>",
    "visibility": "<p style='visibility:hidden'>{}</p>",
    "attribute": "<p hidden>{}</p>",
    "opacity": "<p style='opacity:0'>{}</p>",
    "faint": "<p style='opacity:.01'>{}</p>",
    "fading": "<div style='opacity:.3'><div style='opacity:.3'><p style='opacity:.3'>{}</p></div></div>",
    "nofont": "<p style='font-size:0'>{}</p>",
    "smallfont": "<p style='font-size:1px'>{}</p>",
    "samecolour": "<p style='color:#fff'>{}</p>",
    "transparent": "<p style='color:transparent'>{}</p>",
    "thinink": "<p style='color:rgba(0,0,0,.02)'>{}</p>",
    "left": "<p style='position:absolute;left:-9999px'>{}</p>",
    "moved": "<p style='transform:translateX(-9999px)'>{}</p>",
    "indent": "<p style='text-indent:-9999px'>{}</p>",
    "pushedout": "<p style='text-indent:100%;white-space:nowrap;overflow:hidden;width:90px'>{}</p>",
    "clippath": "<p style='clip-path:inset(100%)'>{}</p>",
    "circle": "<p style='clip-path:circle(0)'>{}</p>",
    "clip": "<p style='position:absolute;clip:rect(0 0 0 0)'>{}</p>",
    "noheight": "<div style='height:0;overflow:hidden'>{}</div>",
    "onepixel": "<div style='height:1px;width:1px;overflow:hidden;position:absolute'>{}</div>",
    "below": "<div style='height:20px;overflow:hidden'><div style='height:60px'></div>{}</div>",
    "covered": "<div style='position:relative'>{}<div style='position:absolute;inset:0;background:#fff'></div></div>",
    "behind": "<div style='position:relative;background:#fff'><p style='position:relative;z-index:-1'>{}</p></div>",
    "scaled": "<p style='transform:scale(0)'>{}</p>",
    "shrunk": "<p style='transform:scale(.01)'>{}</p>",
    "onedge": "<p style='transform:rotateY(90deg)'>{}</p>",
    "filtered": "<p style='filter:opacity(0)'>{}</p>",
    "masked": "<p style='mask-image:linear-gradient(transparent,transparent)'>{}</p>",
    "unrendered": "<div style='content-visibility:hidden'>{}</div>",
    "offscreen": "<p style='position:fixed;top:-500px'>{}</p>",
}

PLACED = {
    "template": "<template>{}</template>",
    "noscript": "<noscript>{}</noscript>",
    "script": "<script type='application/json'>{}</script>",
    "linkeddata": '<script type=\'application/ld+json\'>[{{"name": "{}"}}]</script>',
    "style": "<style>/* {} */ .x {{ --y: '{}' }}</style>",
    "comment": "<!-- {} -->",
    "dialog": "<dialog>{}</dialog>",
    "popover": "<div popover>{}</div>",
    "option": "<select><option>one<option>{}</select>",
    "group": "<select><option>one<optgroup label='{}'></optgroup></select>",
    "suggestion": "<datalist><option value='{}'>{}</datalist>",
    "field": "<input type=hidden value='{}'>",
    "password": "<input type=password value='{}'>",
    "unsent": "<textarea hidden>{}</textarea>",
    "alternative": "<img alt='{}' src='data:,'>",
    "drawing": "<svg width=9 height=9><title>{}</title><desc>{}</desc></svg>",
    "object": "<object data='data:image/gif;base64,R0lGODlhAQABAAAAACw=' type='image/gif'>{}</object>",
    "video": "<video>{}</video>",
    "canvas": "<canvas>{}</canvas>",
    "frame": "<iframe srcdoc='{}' style='display:none'></iframe>",
    "tinyframe": "<iframe srcdoc='{}' width=1 height=1></iframe>",
    "area": "<map name=m><area alt='{}' href='#x'></map>",
    "unslotted": "<div id=u>{}</div><script>u.attachShadow({{mode: 'open'}}).innerHTML = '<p>x</p>'</script>",
    "parenthesis": "<ruby>x<rp>{}</rp></ruby>",
    "meta": "<meta name=description content='{}'>",
    "printed": "<style>.printed {{ display: none }} @media print {{ .printed {{ display: block }} }}</style><p class=printed>{}</p>",
}


async def test_text_of_a_page_is_what_a_person_reads(rig: Rig) -> None:
    seen = await rig.show("/everything", Reply.html(READABLE))
    assert seen.outcome is CaptureOutcome.OK
    assert seen.text == EXPECTED
    assert [label for label, _ in seen.links] == ["Home", "About us", "T."]


@pytest.mark.parametrize("ways", [CONCEALED, PLACED], ids=["concealed", "placed"])
async def test_invisible_text_is_not_in_the_visible_text(rig: Rig, ways: dict[str, str]) -> None:
    body = "".join(way.replace("{}", f"secret-{name}").format() for name, way in ways.items())
    seen = await rig.show("/hiding", Reply.html(f"<h1>Hiding</h1>{body}<p>{'Words that can be read. ' * 40}</p>"))
    assert seen.outcome is CaptureOutcome.OK
    assert [name for name in ways if f"secret-{name}" in seen.text] == []
    assert "Words that can be read." in seen.text


GENERATED = """<!doctype html><meta charset=utf-8><title>Generated</title><style>
.price::before { content: "EUR " } .price::after { content: " a night" }
[data-unit]::after { content: " " attr(data-unit) } .warn::before { content: "Sold out"; display: block; color: #b00 }
h2::before { content: "Part: " } q { quotes: none } .icon::before { content: "\\e801" } .said::after { content: "x" / "spoken" }
.clear::after { content: ""; display: table }
.h1::after { content: "unseen-display"; display: none } .h2::after { content: "unseen-visibility"; visibility: hidden }
.h3::after { content: "unseen-colour"; color: #fff } .h4::after { content: "unseen-size"; font-size: 0 }
.h5::after { content: "unseen-place"; position: absolute; left: -9999px } .h6::after { content: "unseen-faint"; opacity: 0 }
.h7 { position: absolute; left: -9999px } .h7::after { content: "unseen-host" }
.h8::after { content: "unseen-scale"; display: inline-block; transform: scale(0) }
.h9::after { content: "unseen-clip"; position: absolute; clip-path: inset(100%) }
.h10::after { content: "unseen-box"; display: block; width: 1px; height: 1px; overflow: hidden }
.h11::after { content: "unseen-indent"; display: block; text-indent: -9999px }
.badge { position: relative; display: block; height: 40px } .badge::after { content: "Corner"; position: absolute; right: 4px; top: 4px }
</style><h2>Rooms</h2><p class=price>120</p><p data-unit=metres>Height 40</p><p class=warn>Lake room</p><p class=clear>Clear</p>
<p><span class=icon></span>Icon <span class=said></span></p><p class=badge>Badge</p>""" + "".join(
    f"<p class=h{n}>seen-{n}</p>" if n != 7 else "<p class=h7></p>" for n in range(1, 12)
)


async def test_visible_generated_content_of_style_sheets_is_read(rig: Rig) -> None:
    seen = await rig.show("/generated", Reply.html(GENERATED))
    for line in ("## Part: Rooms", "EUR 120 a night", "Height 40 metres", "Sold out", "Icon x", "Badge Corner"):
        assert line in seen.text.splitlines(), (line, seen.text)
    assert "unseen" not in seen.text
    assert seen.hidden_text.count("unseen-") == 10, "all but the one that is not made at all"


CLOSED = """<!doctype html><title>Closed</title><h1>Roots</h1>
<div id=scripted></div><shop-price><b slot=sum>99</b></shop-price>
<section><template shadowrootmode=closed><p>Declared</p><div id=inner></div></template></section>
<div style="opacity:0" id=faint></div>
<script>
const close = (host, html) => { const root = host.attachShadow({ mode: "closed" }); root.innerHTML = html; return root };
const outer = close(scripted, "<h2>Scripted</h2><div id=deep></div><iframe width=300 height=90 srcdoc='<p>Framed within</p>'></iframe>");
close(outer.getElementById("deep"), "<p>Deep down</p><p style='font-size:0'>SECRET</p>");
close(document.querySelector("shop-price"), "<p>Only <slot name=sum></slot> crowns</p>");
close(faint, "<p>SECRET too</p>");
</script><p>The end."""


async def test_visible_text_of_closed_shadow_roots_is_read(rig: Rig) -> None:
    seen = await rig.show("/closed", Reply.html(CLOSED))
    assert seen.text.replace("\n\n", "\n").splitlines() == [
        "# Roots", "## Scripted", "Deep down", "Framed within", "Only 99 crowns", "Declared", "The end.",
    ]  # fmt: skip
    assert "SECRET" in seen.hidden_text


async def test_content_of_an_inactive_tab_is_a_labelled_block(rig: Rig) -> None:
    tabs = """<div role=tablist><button role=tab aria-controls=p1>About</button>
    <button role=tab aria-controls=p2 id=t2>Measures</button></div><div role=tabpanel id=p1>Made of oak.</div>
    <div role=tabpanel id=p2 aria-labelledby=t2 hidden><p>Height 40 cm</p><p style="display:none">SECRET</p></div>
    <div role=tabpanel id=p3 hidden>ORPHAN</div>"""
    seen = await rig.show("/tabs", Reply.html(f"<h1>Chair</h1>{tabs}<p>{'Words that can be read. ' * 20}"))
    assert "[collapsed: Measures]\n\nHeight 40 cm\n\n[end of collapsed]" in seen.text
    assert "SECRET" not in seen.text
    assert "ORPHAN" not in seen.text


async def test_closed_part_of_an_accordion_is_a_labelled_block(rig: Rig) -> None:
    accordion = """<h3><button aria-expanded=false aria-controls=a1>Is it heavy?</button></h3><div id=a1 hidden>It weighs 9 kg.</div>
    <h3><a href="#a2" aria-expanded=false aria-controls=a2>Is it old?</a></h3>
    <div id=a2 style="max-height:0;overflow:hidden"><p>From 1902.</p><p style="display:none">SECRET 1</p></div>
    <button aria-expanded=false aria-controls=a3 style="display:none">No button</button><div id=a3 hidden>SECRET 2</div>
    <button aria-expanded=false aria-controls=a4 style="position:absolute;left:-9999px">Far</button><div id=a4 hidden>SECRET 3</div>
    <button aria-expanded=false aria-controls=a5></button><div id=a5 hidden>SECRET 4</div>
    <nav><button aria-expanded=false aria-controls=a6>Products</button><ul id=a6 hidden><li>SECRET 5</ul></nav>
    <button aria-expanded=true aria-controls=a7>Open</button><div id=a7 hidden>SECRET 6</div>"""
    seen = await rig.show(
        "/accordion", Reply.html(f"<h1>Chair</h1>{accordion}<p>{'Words that can be read. ' * 20}</p>")
    )
    assert "[collapsed: Is it heavy?]\nIt weighs 9 kg.\n[end of collapsed]" in seen.text
    assert "[collapsed: Is it old?]\n\nFrom 1902.\n\n[end of collapsed]" in seen.text
    assert "SECRET" not in seen.text
    assert seen.hidden_text.count("SECRET") == 6


async def test_redefined_built_in_functions_do_not_change_the_text(rig: Rig) -> None:
    lies = (
        "<script>document.querySelectorAll = () => []; Element.prototype.getBoundingClientRect = () => null;"
        "Range.prototype.getClientRects = () => [{width: 99, height: 99, right: 99, bottom: 99, left: 0, top: 0}];"
        "getComputedStyle = () => ({}); String.prototype.trim = () => 'LIE'; Array.prototype.push = () => 0</script>"
    )
    page = f"<h1>Truth</h1><p style='position:absolute;left:-9999px'>HIDDEN</p><p>{'Honest words. ' * 20}</p>{lies}"
    seen = await rig.show("/lies", Reply.html(page))
    assert seen.outcome is CaptureOutcome.OK
    assert seen.text.startswith("# Truth\n\nHonest words.")
    assert "HIDDEN" not in seen.text


RUBY: dict[str, str] = {
    "<ruby>東京<rt>とうきょう</rt></ruby>タワーに行く": "東京タワーに行く (とうきょう)",
    "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rp>(</rp><rt>じ</rt><rp>)</rp></ruby>の<ruby>本<rt>ほん</rt></ruby>": "漢字の本 (かん じ ほん)",
    "<ruby><rb>北<rb>京<rtc><rt>ㄅㄟˇ<rt>ㄐㄧㄥ</rtc></ruby>站": "北京站 (ㄅㄟˇ ㄐㄧㄥ)",
    "the <ruby style='display:inline-flex;flex-direction:column-reverse'><span>Base</span><rt style='display:block'>gloss</rt></ruby>": "the Base (gloss)",
    "<b>旧<ruby>国<rt>くに</rt></ruby></b>名": "旧国名 (くに)",
    "<style>.shown rp{display:inline}</style><span class=shown><ruby>火<rp>(</rp><rt>ひ</rt><rp>)</rp></ruby>山</span>": "火山 (ひ)",
    "<ruby>水<rt style='display:none'>みず</rt></ruby>車": "水車",
}  # fmt: skip


async def test_ruby_readings_follow_their_line(rig: Rig) -> None:
    html = "<h1>Ruby</h1>" + "".join(f"<p>{line}</p>" for line in RUBY)
    seen = await rig.show("/ruby", Reply.html(html))
    assert seen.text.split("\n\n")[1:] == list(RUBY.values())
    assert read_html(html, "https://a.example/").text.split("\n\n")[1:] == list(RUBY.values())
    heading = (
        "<h1><ruby>東京<rt>とうきょう</rt></ruby>塔</h1><table><tr><td><ruby>東<rt>ひがし</rt></ruby>口<td>1<tr><td>2"
    )
    seen = await rig.show("/ruby-lines", Reply.html(heading))
    assert seen.text.splitlines() == ["# 東京塔 (とうきょう)", "", "東口 (ひがし) | 1", "2"]
    assert seen.places is not None
    found = [seen.text[start:end] for start, end, *_ in json.loads(seen.places)["lines"]]
    assert found == ["東京", "塔", "とうきょう", "東", "口", "ひがし", "1", "2"]

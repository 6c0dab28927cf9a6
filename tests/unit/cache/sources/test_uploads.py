"""Uploaded pages pass the checks of a capture and have a provenance."""

from __future__ import annotations

import hashlib

import pytest

from cache.capture import CaptureOutcome, CaptureSource, Observation, PageKind
from cache.errors import DocumentRejected
from cache.sources.uploads import UploadedPage, observe_upload
from tests.unit.cache.scripted import NOON
from tests.unit.cache.sources.test_mhtml import saved

URL = "https://towns.example/benches"
CAPTCHA = "<title>Just a moment...</title><script>window._cf_chl_opt = {}</script><p>Checking your browser."


async def upload(**fields: object) -> Observation:
    return await observe_upload(UploadedPage(url=URL, uploader="key-1", uploaded_at=NOON, **fields))  # type: ignore[arg-type]


async def test_html_is_read_as_an_unrendered_page() -> None:
    data = b"<title>Benches</title><script>x</script><p hidden>secret<p>" + b"There are two benches by the gate. " * 3
    seen = await upload(content=data)
    assert (seen.outcome, seen.kind, seen.title) == (CaptureOutcome.OK, PageKind.WEB, "Benches")
    assert "two benches" in seen.text
    assert "secret" not in seen.text
    assert (seen.source, seen.backend, seen.detail) == (CaptureSource.UPLOAD, "upload", "not rendered")
    digest = hashlib.sha256(data).hexdigest()
    assert seen.provenance == {"by": "key-1", "at": NOON.isoformat(), "as": "html", "sha256": digest}
    assert (seen.captured_at, seen.final_url, seen.html) == (NOON, None, data)


async def test_hidden_elements_are_kept_separately() -> None:
    concealed = (
        "<p style='display:none'>secret-a</p><div style='COLOR:red; Opacity : 0.0 !important'>secret-b"
        "<b style='visibility:hidden'>secret-c</b></div><p hidden>secret-d</p><dialog>secret-e</dialog>"
        "<div popover>secret-f</div><p style='font-size:0px'>secret-g</p>"
    )
    shown = "<p style='opacity:.9'>seen-a</p><p style='font-size:0.8em'>seen-b</p><dialog open>seen-c</dialog>"
    plain = "There are two benches by the gate. " * 3
    seen = await upload(content=f"<!doctype html><body style='opacity:0'>{plain}{concealed}{shown}".encode())
    assert "secret" not in seen.text
    assert seen.hidden_text.split() == [f"secret-{letter}" for letter in "abcdefg"]
    assert seen.hidden_words == 7
    assert [f"seen-{letter}" in seen.text for letter in "abc"] == [True] * 3


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        (CAPTCHA.encode(), CaptureOutcome.CAPTCHA),
        (b"<title>Page not found</title><h1>Page not found</h1><p>Try the home page.", CaptureOutcome.SOFT_404),
        (b"<!doctype html><form><input type=password></form><p>Sign in to go on.", CaptureOutcome.LOGIN_WALL),
        (saved(CAPTCHA.encode()), CaptureOutcome.CAPTCHA),
    ],
)
async def test_uploaded_wall_is_not_evidence(content: bytes, outcome: CaptureOutcome) -> None:
    assert (await upload(content=content)).outcome is outcome


async def test_text_is_stored_unchanged_unless_it_is_an_error_message() -> None:
    seen = await upload(text="Two benches stand by the gate, and one of them is green.\n")
    assert (seen.outcome, seen.text.count("\n")) == (CaptureOutcome.OK, 1)
    assert seen.provenance["as"] == "text"
    assert (await upload(text="Sold out")).outcome is CaptureOutcome.OK
    assert (await upload(text="404")).outcome is CaptureOutcome.SOFT_404


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({}, CaptureOutcome.UNSUPPORTED),
        ({"content": b"<p>" + b"x" * (25 * 1024 * 1024)}, CaptureOutcome.TOO_LARGE),
        ({"text": "fine, and long enough to be a page of its own", "image": b"GIF? no"}, CaptureOutcome.UNSUPPORTED),
        ({"content": saved(b"x")[:300]}, CaptureOutcome.DAMAGED),
    ],
)
async def test_invalid_upload_is_rejected_with_a_detail(fields: dict[str, object], outcome: CaptureOutcome) -> None:
    with pytest.raises(DocumentRejected) as refused:
        await upload(**fields)
    assert refused.value.outcome is outcome
    assert refused.value.detail

"""Page uploads over HTTP: classified like captures, labelled, stored next to earlier captures, or rejected with a
reason."""

from __future__ import annotations

import io
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.integration.app.api.api_calls import assert_problem, submit, wait_for_job
from tests.integration.app.api.conftest import OpenApi
from tests.standin.documents import pdf_with_pages
from tests.unit.cache.sources.test_mhtml import saved

pytestmark = pytest.mark.postgres

URL = "https://example.org/france"
ANSWER = [{"name": "a", "text": f"It is Paris, see [France]({URL})."}]
HTML = (
    b"<!doctype html><title>France</title><script>1</script><h1>France</h1>"
    b"<p>Paris is the capital of France, as it has been for long."
)
TEXT = "Paris is the capital of France, and it has been for a long time."


def png(width: int = 40, height: int = 30) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "green").save(out, "PNG")
    return out.getvalue()


async def lost_page(api: httpx.AsyncClient) -> dict[str, Any]:
    """Judge an answer that cites a missing page, and return that page."""
    await wait_for_job(api, (await submit(api, answers=ANSWER))[0])
    [page] = (await api.get("/v1/pages", params={"problem": "true", "agent": "demo", "task_id": "capital"})).json()[
        "items"
    ]
    found: dict[str, Any] = page
    return found


async def put(api: httpx.AsyncClient, page: dict[str, Any], content: bytes, media_type: str) -> httpx.Response:
    return await api.put(f"/v1/pages/{page['id']}/content", content=content, headers={"Content-Type": media_type})


async def form(api: httpx.AsyncClient, page: dict[str, Any], **fields: Any) -> httpx.Response:
    return await api.put(f"/v1/pages/{page['id']}/content", files={name: value for name, value in fields.items()})


async def test_uploaded_page_is_used_by_the_next_judgement(open_api: OpenApi):
    async with open_api() as api:
        gone = await lost_page(api)
        response = await put(api, gone, HTML, "text/html")
        assert response.status_code == 201, response.text
        page = response.json()
        assert response.headers["location"] == f"/v1/pages/{page['id']}"
        assert page["id"] != gone["id"]
        assert (page["url"], page["outcome"], page["problem"]) == (URL, "ok", False)
        assert (page["source"], page["detail"], page["title"]) == ("upload", "not rendered", "France")
        assert page["provenance"]["by"] == "local"
        assert page["provenance"]["as"] == "html"
        assert page["provenance"]["at"] == page["captured_at"].replace("Z", "+00:00")
        assert (await api.get(f"/v1/pages/{gone['id']}")).json() == gone
        assert (await api.get(f"/v1/pages/{page['id']}")).json() == page

        job = await wait_for_job(api, (await submit(api, answers=ANSWER))[0])
        result = (await api.get(f"/v1/results/{job['result_id']}")).json()
        [seen] = result["pages"]
        assert (seen["page_id"], seen["source"], seen["provenance"]) == (page["id"], "upload", page["provenance"])
        assert result["score"]["value"] == 1.0


async def test_upload_kind_is_detected_from_bytes(open_api: OpenApi):
    async with open_api() as api:
        gone = await lost_page(api)
        for content, media_type, kind, words in (
            (saved(HTML), "application/octet-stream", "web", "Paris is the capital"),
            (png(), "application/octet-stream", "image", ""),
            (pdf_with_pages(2), "text/html", "pdf", "Page number 2 is visible"),
        ):
            page = (await put(api, gone, content, media_type)).json()
            assert (page["kind"], page["outcome"], page["source"]) == (kind, "ok", "upload")
            text = await api.get(f"/v1/pages/{page['id']}/text")
            assert words in text.text
            assert "invisiblewords" not in text.text
        document = await api.get(f"/v1/pages/{page['id']}/pdf")
        assert document.content == content
        assert document.headers["content-disposition"] == f'attachment; filename="{page["id"]}.pdf"'


async def test_invalid_upload_is_rejected_and_nothing_is_stored(open_api: OpenApi):
    async with open_api(max_body_bytes=2 * 1024 * 1024) as api:
        gone = await lost_page(api)
        before = (await api.get("/v1/pages")).json()
        assert_problem(await put(api, {"id": "page_unknown"}, HTML, "text/html"), 404)
        for content, media_type, status, code in (
            (b"", "text/html", 422, "INVALID"),
            (b"%PDF-1.7 and no more", "application/pdf", 422, "DOCUMENT_REJECTED"),
            (b"x" * (3 * 1024 * 1024), "text/plain", 413, "TOO_LARGE"),
            (b"no boundary", "multipart/form-data", 400, "BAD_REQUEST"),
            (b"--x--\r\n", "multipart/form-data; boundary=x", 422, "INVALID"),
        ):
            assert_problem(await put(api, gone, content, media_type), status, code)
        forms: tuple[tuple[str, dict[str, Any]], ...] = (
            ("text", {"text": (None, "   ")}),
            ("file", {"text": (None, TEXT), "file": ("a.html", HTML)}),
            ("file", {"image": ("a.png", b"png")}),
            ("content", {"content": ("a.html", HTML)}),
            ("", {"text": (None, TEXT), "image": ("a.png", b"no picture")}),
        )
        for path, fields in forms:
            problem = assert_problem(await form(api, gone, **fields), 422)
            assert [error["path"] for error in problem["errors"]] == [path]
        assert (await api.get("/v1/pages")).json() == before


async def test_stored_html_is_immutable_and_sandboxed(open_api: OpenApi):
    async with open_api() as api:
        page = (await put(api, await lost_page(api), HTML, "text/html")).json()
        html = await api.get(f"/v1/pages/{page['id']}/html")
        assert html.content == HTML
        assert html.headers["content-disposition"] == f'attachment; filename="{page["id"]}.html"'
        assert html.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in html.headers["content-security-policy"]
        assert "default-src 'none'" in html.headers["content-security-policy"]
        for part in ("html", "text"):
            whole = await api.get(f"/v1/pages/{page['id']}/{part}")
            assert whole.headers["cache-control"] == "private, max-age=31536000, immutable"
            assert whole.headers["etag"] == f'"{page["blobs"][part]["sha256"]}"'
            again = await api.get(f"/v1/pages/{page['id']}/{part}", headers={"If-None-Match": whole.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
            other = await api.get(f"/v1/pages/{page['id']}/{part}", headers={"If-None-Match": '"another"'})
            assert other.content == whole.content
        assert_problem(await api.get(f"/v1/pages/{page['id']}/pdf"), 404)

"""Browser extension: pairing with one-time codes, token scope, page uploads and allowed origins."""

from __future__ import annotations

import asyncio
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image, ImageDraw

from app.features.extension import pairing
from app.features.extension.storage import pairings
from app.storage.database import connect_database
from tests.integration.app.api.api_calls import assert_problem
from tests.integration.app.api.conftest import OpenApi
from tests.integration.app.api.test_page_uploads import png

pytestmark = pytest.mark.postgres

WALLED, FINE = "https://walled.example/", "https://fine.example/"
TEXT = "The tower of Vellmar is 41 metres high, was built in 1612, and stands to this day."
EXTENSION = "chrome-extension://abcdefghijklmnopabcdefghijklmnop"
KEY = "k" * 40
Json = dict[str, Any]


async def add_pages(api: httpx.AsyncClient) -> None:
    """Add a page that needs work and one that does not to a task."""
    for url in (WALLED, FINE):
        body = {"action": "add", "url": url, "task_id": "capital"}
        assert (await api.post("/v1/pages/changes", json=body)).status_code == 201


async def create_code(api: httpx.AsyncClient) -> str:
    made = await api.post("/v1/pairings")
    assert made.status_code == 201, made.text
    return str(made.json()["code"])


async def pair_browser(api: httpx.AsyncClient, name: str = "Ada's laptop") -> dict[str, str]:
    """Pair a browser and return its headers."""
    answer = await api.post("/v1/extension/pair", json={"code": await create_code(api), "name": name})
    assert answer.status_code == 201, answer.text
    return {"Authorization": f"Bearer {answer.json()['token']}"}


async def capture(api: httpx.AsyncClient, headers: dict[str, str], **fields: Any) -> httpx.Response:
    sent = {"url": (None, WALLED), "text": (None, TEXT), **fields}
    return await api.post("/v1/extension/captures", headers=headers, files=sent)


async def test_page_from_a_browser_is_stored_with_provenance(open_api: OpenApi):
    async with open_api(workers=0, pages={FINE: TEXT}) as api:
        await add_pages(api)
        browser = await pair_browser(api)
        [flagged] = (await api.get("/v1/extension/flagged", headers=browser)).json()["items"]
        assert flagged == {"url": WALLED, "opens": WALLED, "outcome": "http_error", "leaves": 0, "tasks": ["capital"]}
        html = ("page.html", b"<p>The tower", "text/html")
        answer = await capture(
            api,
            browser,
            tab_url=(None, f"{WALLED}?in=1"),
            title=(None, "Tower"),
            html=html,
            image=("a.png", png(), "image/png"),
        )
        assert answer.status_code == 201, answer.text
        page = answer.json()
        assert (page["url"], page["outcome"], page["source"], page["title"]) == (WALLED, "ok", "upload", "Tower")
        provenance = page["provenance"]
        assert (provenance["by"], provenance["browser"], provenance["as"]) == ("local", "Ada's laptop", "browser")
        assert (
            provenance["saved_url"] == f"{WALLED}?in=1"
            and provenance["pairing"].startswith("pair_")
            and provenance["at"]
        )
        assert {"text", "html", "screenshot-0"} <= page["blobs"].keys()
        assert answer.headers["location"] == f"/v1/pages/{page['id']}"
        assert (await api.get("/v1/extension/flagged", headers=browser)).json() == {"items": []}


async def test_text_boxes_are_uploaded_with_the_screenshot(open_api: OpenApi):
    boxes = {"width": 200, "height": 300, "pieces": [["The tower", 9, [[0, 10, 20, 120, 18]]]]}
    picture = Image.new("RGB", (200, 300), "white")
    ImageDraw.Draw(picture).text((12, 22), TEXT[:20], fill="black")
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    async with open_api(workers=0) as api:
        await add_pages(api)
        browser = await pair_browser(api)
        image = ("a.png", buffer.getvalue(), "image/png")
        for wrong in ("{", json.dumps(boxes | {"width": -1}), json.dumps(boxes | {"more": 1})):
            refused = assert_problem(await capture(api, browser, image=image, places=(None, wrong)), 422, "INVALID")
            assert [error["path"] for error in refused["errors"]] == ["places"]
        answer = await capture(api, browser, image=image, places=(None, json.dumps(boxes)))
        assert answer.status_code == 201, answer.text
        page = answer.json()["id"]
        [line] = (await api.get(f"/v1/pages/{page}/places")).json()["lines"]
        assert line[2:] == [0, 500, 667, 6000, 600] and line[1] - line[0] == 9
        elsewhere = await api.post("/v1/pages/changes", json={"action": "flag", "url": WALLED, "reason": "again"})
        assert elsewhere.status_code == 201
        other = await capture(api, browser, image=image, places=(None, json.dumps(boxes | {"height": 9000})))
        assert_problem(await api.get(f"/v1/pages/{other.json()['id']}/places"), 404, "NOT_FOUND")


async def test_usable_page_is_replaced_only_if_flagged(open_api: OpenApi):
    async with open_api(workers=0, pages={FINE: TEXT}) as api:
        await add_pages(api)
        browser = await pair_browser(api)
        for url in (FINE, "https://nobody.cites.example/"):
            assert_problem(await capture(api, browser, url=(None, url)), 409, "NOT_FLAGGED")
        await api.post("/v1/pages/changes", json={"action": "flag", "url": FINE})
        assert (await capture(api, browser, url=(None, FINE))).status_code == 201


async def test_corrected_url_opens_its_target(open_api: OpenApi):
    right = "https://fine.example/right"
    async with open_api(workers=0, pages={FINE: TEXT, right: TEXT}) as api:
        await add_pages(api)
        browser = await pair_browser(api)
        for change in ({"action": "edit", "to": right}, {"action": "flag"}):
            assert (await api.post("/v1/pages/changes", json={"url": WALLED, **change})).status_code == 201
        [flagged] = (await api.get("/v1/extension/flagged", headers=browser)).json()["items"]
        assert (flagged["url"], flagged["opens"]) == (WALLED, right)
        uploaded = (await capture(api, browser, text=(None, TEXT.replace("41", "47")))).json()
        [now] = (await api.get("/v1/pages/urls", params={"url": WALLED})).json()["items"]
        assert now["page_id"] == uploaded["id"]  # the page uploaded by a person is used from now on


async def test_wall_from_a_browser_is_not_evidence(open_api: OpenApi):
    async with open_api(workers=0, pages={FINE: TEXT}) as api:
        await add_pages(api)
        browser = await pair_browser(api)
        fields = {"text": (None, "Sign in"), "password_fields": (None, "1"), "inputs": (None, "2")}
        page = (await capture(api, browser, **fields)).json()
        assert (page["outcome"], page["problem"]) == ("login_wall", True)
        [flagged] = (await api.get("/v1/extension/flagged", headers=browser)).json()["items"]
        assert flagged["outcome"] == "login_wall"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"text": (None, "")}, "text"),
        ({"more": (None, "x")}, "more"),
        ({"inputs": (None, "-1")}, "inputs"),
        ({"inputs": (None, "٣٣")}, "inputs"),
        ({"image": (None, "no file")}, "image"),
        ({"title": ("t.txt", b"x", "text/plain")}, "title"),
        ({"title": (None, "x" * 1001)}, "title"),
    ],
)
async def test_invalid_capture_is_rejected_with_its_field(open_api: OpenApi, fields: Json, path: str):
    async with open_api(workers=0) as api:
        await add_pages(api)
        refused = await capture(api, await pair_browser(api), **fields)
        assert path in [error["path"] for error in assert_problem(refused, 422, "INVALID")["errors"]]


async def test_invalid_image_is_rejected(open_api: OpenApi):
    async with open_api(workers=0) as api:
        await add_pages(api)
        image = ("a.png", b"<script>alert(1)</script>", "image/png")
        assert_problem(await capture(api, await pair_browser(api), image=image), 422, "DOCUMENT_REJECTED")


async def test_code_works_once_in_any_spelling(open_api: OpenApi):
    async with open_api(workers=0) as api:
        code = await create_code(api)
        typed = {"code": f" {code.lower().replace('-', ' ').replace('0', 'o').replace('1', 'l')}", "name": "x"}
        assert (await api.post("/v1/extension/pair", json=typed)).status_code == 201
        await asyncio.sleep(2.1)
        assert_problem(await api.post("/v1/extension/pair", json={"code": code, "name": "y"}), 403, "WRONG_CODE")


async def test_concurrent_requests_use_a_code_once(open_api: OpenApi):
    async with open_api(workers=0) as api:
        body = {"code": await create_code(api), "name": "x"}
        answers = await asyncio.gather(*(api.post("/v1/extension/pair", json=body) for _ in range(4)))
        assert sorted(answer.status_code for answer in answers)[0] == 201
        assert [answer.status_code for answer in answers].count(201) == 1


async def test_expired_code_is_rejected(open_api: OpenApi, monkeypatch: pytest.MonkeyPatch):
    async with open_api(workers=0) as api:
        monkeypatch.setattr(pairing, "CODE_LIFETIME", timedelta(seconds=-1))
        assert_problem(
            await api.post("/v1/extension/pair", json={"code": await create_code(api), "name": "x"}), 403, "WRONG_CODE"
        )


async def test_code_guesses_are_rate_limited(open_api: OpenApi):
    async with open_api(workers=0) as api:
        guesses = [
            await api.post("/v1/extension/pair", json={"code": f"AAAA-AAA{nth}", "name": "x"}) for nth in range(8)
        ]
        assert [answer.status_code for answer in guesses].count(403) <= 2
        slowed = assert_problem(guesses[-1], 429)
        assert slowed["code"] == "TOO_MANY_REQUESTS" and int(guesses[-1].headers["retry-after"]) >= 1


async def test_only_hashes_of_codes_and_tokens_are_stored(open_api: OpenApi, database_url: str):
    async with open_api(workers=0) as api:
        code = await create_code(api)
        token = (await api.post("/v1/extension/pair", json={"code": code, "name": "x"})).json()["token"]
        async with connect_database(database_url) as database, database.begin() as connection:
            stored = str((await connection.execute(pairings.select())).mappings().all())
        for secret in (code, code.replace("-", ""), token, token.split("_", 2)[2]):  # assay_<name>_<secret>
            assert secret not in stored
        assert code not in (await api.get("/v1/pairings")).text


async def test_token_is_valid_only_for_extension_endpoints(open_api: OpenApi):
    async with open_api(workers=0, api_keys=[KEY]) as api:
        api.headers["Authorization"] = f"Bearer {KEY}"
        browser = await pair_browser(api)
        assert (await api.get("/v1/extension/flagged", headers=browser)).status_code == 200
        for method, path in [
            ("GET", "/v1/pages"), ("GET", "/v1/pages/urls"), ("GET", "/v1/leaderboard"), ("POST", "/v1/pairings"),
            ("GET", "/v1/pairings"), ("POST", "/v1/pages/changes"), ("POST", "/v1/submissions"), ("GET", "/metrics"),
        ]:  # fmt: skip
            assert (await api.request(method, path, headers=browser)).status_code == 401, path
        # other keys do not open them
        assert_problem(await api.get("/v1/extension/flagged"), 401, "NOT_PAIRED")
        assert_problem(await capture(api, {}), 401, "NOT_PAIRED")


async def test_token_is_required_even_without_configured_keys(open_api: OpenApi):
    async with open_api(workers=0) as api:
        assert_problem(await api.get("/v1/extension/flagged"), 401, "NOT_PAIRED")
        assert_problem(await capture(api, {"Authorization": "Bearer assay_0123456789_x"}), 401, "NOT_PAIRED")
        browser = await pair_browser(api)
        assert (await api.get("/v1/pages")).status_code == 200  # pairing does not make keys mandatory
        assert (await api.get("/v1/extension/flagged", headers=browser)).status_code == 200


async def test_pairing_can_be_revoked_from_both_sides(open_api: OpenApi):
    async with open_api(workers=0) as api:
        first = await pair_browser(api)
        [made] = (await api.get("/v1/pairings")).json()["items"]
        assert (made["state"], made["name"], made["owner"]) == ("paired", "Ada's laptop", "local")
        assert (await api.delete(f"/v1/pairings/{made['id']}")).json()["state"] == "revoked"
        assert_problem(await api.get("/v1/extension/flagged", headers=first), 401, "NOT_PAIRED")
        await asyncio.sleep(2.1)
        second = await pair_browser(api)
        assert (await api.delete("/v1/extension/pairing", headers=second)).json()["state"] == "revoked"
        assert_problem(await api.get("/v1/extension/flagged", headers=second), 401, "NOT_PAIRED")
        assert_problem(await api.delete("/v1/pairings/pair_nothing"), 404, "NOT_FOUND")
        revoked = await create_code(api)
        [waiting] = [item for item in (await api.get("/v1/pairings")).json()["items"] if item["state"] == "waiting"]
        await api.delete(f"/v1/pairings/{waiting['id']}")
        await asyncio.sleep(2.1)
        assert_problem(await api.post("/v1/extension/pair", json={"code": revoked, "name": "x"}), 403, "WRONG_CODE")


async def test_extension_origin_is_allowed_only_for_its_endpoints(open_api: OpenApi):
    async with open_api(workers=0) as api:
        asked = {"Origin": EXTENSION, "Access-Control-Request-Method": "POST"}
        preflight = await api.options("/v1/extension/captures", headers=asked)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == EXTENSION
        assert "access-control-allow-credentials" not in preflight.headers
        refused = await api.get("/v1/extension/flagged", headers={"Origin": EXTENSION})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, EXTENSION)
        assert_problem(await api.get("/v1/pages", headers={"Origin": EXTENSION}), 403, "FOREIGN_ORIGIN")
        assert_problem(
            await api.get("/v1/extension/flagged", headers={"Origin": "https://evil.example"}), 403, "FOREIGN_ORIGIN"
        )
        elsewhere = {"Origin": EXTENSION, "Host": "evil.example"}
        assert_problem(await api.get("/v1/extension/flagged", headers=elsewhere), 421, "WRONG_HOST")


async def test_unpaired_requests_have_a_small_body_limit(open_api: OpenApi):
    async with open_api(workers=0, api_keys=[KEY]) as api:
        json = {"Content-Type": "application/json"}
        assert_problem(await api.post("/v1/extension/pair", content=b" " * 5000, headers=json), 413, "TOO_LARGE")

        async def endless():
            yield b"{"

        assert_problem(await api.post("/v1/extension/pair", content=endless(), headers=json), 413, "TOO_LARGE")
        assert_problem(await api.post("/v1/extension/captures", content=b"x" * 100_000), 401, "NOT_PAIRED")
        assert_problem(await api.post("/v1/extension/pair", json={"code": "x", "name": ""}), 422, "INVALID")


async def test_pairing_can_upload_only_pages_of_its_owner(open_api: OpenApi, tmp_path: Path):
    """Two configured keys are two owners. Neither sees the list of the other."""
    async with open_api(workers=0, api_keys=[KEY, "m" * 40]) as api:
        mine, other = {"Authorization": f"Bearer {KEY}"}, {"Authorization": f"Bearer {'m' * 40}"}
        added = {"action": "add", "url": WALLED, "task_id": "capital"}
        assert (await api.post("/v1/pages/changes", json=added, headers=mine)).status_code == 201
        made = (await api.post("/v1/pairings", headers=other)).json()
        token = (await api.post("/v1/extension/pair", json={"code": made["code"], "name": "x"})).json()["token"]
        browser = {"Authorization": f"Bearer {token}"}
        assert (await api.get("/v1/extension/flagged", headers=browser)).json() == {"items": []}
        assert_problem(await capture(api, browser), 409, "NOT_FLAGGED")
        assert (await api.get("/v1/pairings", headers=mine)).json()["items"] == []
        assert_problem(await api.delete(f"/v1/pairings/{made['id']}", headers=mine), 404, "NOT_FOUND")

"""Browsers that hand pages in: paired by a code that is good once, with a token that opens nothing else, refused in
words, and heard only from an extension of a browser."""

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
from app.storage.database import connect_database
from app.storage.tables import pairings
from tests.integration.app.api.asking import problem
from tests.integration.app.api.conftest import Open
from tests.integration.app.api.test_page_uploads import png

pytestmark = pytest.mark.postgres

WALLED, FINE = "https://walled.example/", "https://fine.example/"
SAID = "The tower of Vellmar is 41 metres high, was built in 1612, and stands to this day."
EXTENSION = "chrome-extension://abcdefghijklmnopabcdefghijklmnop"
KEY = "k" * 40
Json = dict[str, Any]


async def listed(api: httpx.AsyncClient) -> None:
    """A page that needs work and one that does not, on a task's list."""
    for url in (WALLED, FINE):
        body = {"action": "add", "url": url, "task_id": "capital"}
        assert (await api.post("/v1/pages/changes", json=body)).status_code == 201


async def code_of(api: httpx.AsyncClient) -> str:
    made = await api.post("/v1/pairings")
    assert made.status_code == 201, made.text
    return str(made.json()["code"])


async def paired(api: httpx.AsyncClient, name: str = "Ada's laptop") -> dict[str, str]:
    """The headers of a browser that was paired just now."""
    answer = await api.post("/v1/extension/pair", json={"code": await code_of(api), "name": name})
    assert answer.status_code == 201, answer.text
    return {"Authorization": f"Bearer {answer.json()['token']}"}


async def capture(api: httpx.AsyncClient, headers: dict[str, str], **fields: Any) -> httpx.Response:
    sent = {"url": (None, WALLED), "text": (None, SAID), **fields}
    return await api.post("/v1/extension/captures", headers=headers, files=sent)


async def test_a_page_comes_in_from_a_persons_browser_and_says_so(open_api: Open):
    async with open_api(workers=0, pages={FINE: SAID}) as api:
        await listed(api)
        browser = await paired(api)
        [wanted] = (await api.get("/v1/extension/flagged", headers=browser)).json()["items"]
        assert wanted == {"url": WALLED, "opens": WALLED, "outcome": "http_error", "leaves": 0, "tasks": ["capital"]}
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
        told = page["provenance"]
        assert (told["by"], told["browser"], told["as"]) == ("local", "Ada's laptop", "browser")
        assert told["saved_url"] == f"{WALLED}?in=1" and told["pairing"].startswith("pair_") and told["at"]
        assert {"text", "html", "screenshot-0"} <= page["blobs"].keys()
        assert answer.headers["location"] == f"/v1/pages/{page['id']}"
        assert (await api.get("/v1/extension/flagged", headers=browser)).json() == {"items": []}


async def test_where_the_text_stands_comes_with_the_picture(open_api: Open):
    told = {"width": 200, "height": 300, "pieces": [["The tower", 9, [[0, 10, 20, 120, 18]]]]}
    picture = Image.new("RGB", (200, 300), "white")
    ImageDraw.Draw(picture).text((12, 22), SAID[:20], fill="black")
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    async with open_api(workers=0) as api:
        await listed(api)
        browser = await paired(api)
        image = ("a.png", buffer.getvalue(), "image/png")
        for wrong in ("{", json.dumps(told | {"width": -1}), json.dumps(told | {"more": 1})):
            refused = problem(await capture(api, browser, image=image, places=(None, wrong)), 422, "INVALID")
            assert [one["path"] for one in refused["errors"]] == ["places"]
        answer = await capture(api, browser, image=image, places=(None, json.dumps(told)))
        assert answer.status_code == 201, answer.text
        page = answer.json()["id"]
        [line] = (await api.get(f"/v1/pages/{page}/places")).json()["lines"]
        assert line[2:] == [0, 500, 667, 6000, 600] and line[1] - line[0] == 9
        elsewhere = await api.post("/v1/pages/changes", json={"action": "flag", "url": WALLED, "why": "again"})
        assert elsewhere.status_code == 201
        other = await capture(api, browser, image=image, places=(None, json.dumps(told | {"height": 9000})))
        problem(await api.get(f"/v1/pages/{other.json()['id']}/places"), 404, "NOT_FOUND")


async def test_good_evidence_is_not_replaced_from_a_browser(open_api: Open):
    async with open_api(workers=0, pages={FINE: SAID}) as api:
        await listed(api)
        browser = await paired(api)
        for url in (FINE, "https://nobody.cites.example/"):
            problem(await capture(api, browser, url=(None, url)), 409, "NOT_FLAGGED")
        await api.post("/v1/pages/changes", json={"action": "flag", "url": FINE})
        assert (await capture(api, browser, url=(None, FINE))).status_code == 201


async def test_a_corrected_url_is_opened_where_it_was_meant(open_api: Open):
    right = "https://fine.example/right"
    async with open_api(workers=0, pages={FINE: SAID, right: SAID}) as api:
        await listed(api)
        browser = await paired(api)
        for change in ({"action": "edit", "to": right}, {"action": "flag"}):
            assert (await api.post("/v1/pages/changes", json={"url": WALLED, **change})).status_code == 201
        [wanted] = (await api.get("/v1/extension/flagged", headers=browser)).json()["items"]
        assert (wanted["url"], wanted["opens"]) == (WALLED, right)
        kept = (await capture(api, browser, text=(None, SAID.replace("41", "47")))).json()
        [now] = (await api.get("/v1/pages/urls", params={"url": WALLED})).json()["items"]
        assert now["page_id"] == kept["id"]  # what a person saw counts from now on


async def test_a_wall_seen_in_a_browser_is_no_evidence(open_api: Open):
    async with open_api(workers=0, pages={FINE: SAID}) as api:
        await listed(api)
        browser = await paired(api)
        fields = {"text": (None, "Sign in"), "password_fields": (None, "1"), "inputs": (None, "2")}
        page = (await capture(api, browser, **fields)).json()
        assert (page["outcome"], page["problem"]) == ("login_wall", True)
        [wanted] = (await api.get("/v1/extension/flagged", headers=browser)).json()["items"]
        assert wanted["outcome"] == "login_wall"


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
async def test_what_a_browser_sends_wrong_is_named(open_api: Open, fields: Json, path: str):
    async with open_api(workers=0) as api:
        await listed(api)
        refused = await capture(api, await paired(api), **fields)
        assert path in [one["path"] for one in problem(refused, 422, "INVALID")["errors"]]


async def test_no_picture_that_is_none_is_taken(open_api: Open):
    async with open_api(workers=0) as api:
        await listed(api)
        image = ("a.png", b"<script>alert(1)</script>", "image/png")
        problem(await capture(api, await paired(api), image=image), 422, "DOCUMENT_REJECTED")


async def test_a_code_is_good_once_however_it_is_typed(open_api: Open):
    async with open_api(workers=0) as api:
        code = await code_of(api)
        typed = {"code": f" {code.lower().replace('-', ' ').replace('0', 'o').replace('1', 'l')}", "name": "x"}
        assert (await api.post("/v1/extension/pair", json=typed)).status_code == 201
        await asyncio.sleep(2.1)
        problem(await api.post("/v1/extension/pair", json={"code": code, "name": "y"}), 403, "WRONG_CODE")


async def test_two_at_once_do_not_use_one_code(open_api: Open):
    async with open_api(workers=0) as api:
        body = {"code": await code_of(api), "name": "x"}
        answers = await asyncio.gather(*(api.post("/v1/extension/pair", json=body) for _ in range(4)))
        assert sorted(answer.status_code for answer in answers)[0] == 201
        assert [answer.status_code for answer in answers].count(201) == 1


async def test_an_old_code_and_an_old_token_open_nothing(open_api: Open, monkeypatch: pytest.MonkeyPatch):
    async with open_api(workers=0) as api:
        monkeypatch.setattr(pairing, "CODE_LIFETIME", timedelta(seconds=-1))
        problem(await api.post("/v1/extension/pair", json={"code": await code_of(api), "name": "x"}), 403, "WRONG_CODE")


async def test_guessing_is_slow(open_api: Open):
    async with open_api(workers=0) as api:
        guesses = [
            await api.post("/v1/extension/pair", json={"code": f"AAAA-AAA{nth}", "name": "x"}) for nth in range(8)
        ]
        assert [answer.status_code for answer in guesses].count(403) <= 2
        slowed = problem(guesses[-1], 429)
        assert slowed["code"] == "TOO_MANY_REQUESTS" and int(guesses[-1].headers["retry-after"]) >= 1


async def test_only_hashes_of_codes_and_tokens_are_kept(open_api: Open, database_url: str):
    async with open_api(workers=0) as api:
        code = await code_of(api)
        token = (await api.post("/v1/extension/pair", json={"code": code, "name": "x"})).json()["token"]
        async with connect_database(database_url) as database, database.begin() as connection:
            stored = str((await connection.execute(pairings.select())).mappings().all())
        for secret in (code, code.replace("-", ""), token, token.rpartition("_")[2]):
            assert secret not in stored
        assert code not in (await api.get("/v1/pairings")).text


async def test_a_token_opens_the_extensions_calls_and_nothing_else(open_api: Open):
    async with open_api(workers=0, api_keys=[KEY]) as api:
        api.headers["Authorization"] = f"Bearer {KEY}"
        browser = await paired(api)
        assert (await api.get("/v1/extension/flagged", headers=browser)).status_code == 200
        for method, path in [
            ("GET", "/v1/pages"), ("GET", "/v1/pages/urls"), ("GET", "/v1/leaderboard"), ("POST", "/v1/pairings"),
            ("GET", "/v1/pairings"), ("POST", "/v1/pages/changes"), ("POST", "/v1/submissions"), ("GET", "/metrics"),
        ]:  # fmt: skip
            assert (await api.request(method, path, headers=browser)).status_code == 401, path
        # and nobody else's key opens them
        problem(await api.get("/v1/extension/flagged"), 401, "NOT_PAIRED")
        problem(await capture(api, {}), 401, "NOT_PAIRED")


async def test_a_token_is_asked_for_where_no_key_is(open_api: Open):
    async with open_api(workers=0) as api:
        problem(await api.get("/v1/extension/flagged"), 401, "NOT_PAIRED")
        problem(await capture(api, {"Authorization": "Bearer assay_0123456789_x"}), 401, "NOT_PAIRED")
        browser = await paired(api)
        assert (await api.get("/v1/pages")).status_code == 200  # and pairing makes no key necessary
        assert (await api.get("/v1/extension/flagged", headers=browser)).status_code == 200


async def test_a_pairing_ends_at_once_from_either_side(open_api: Open):
    async with open_api(workers=0) as api:
        first = await paired(api)
        [made] = (await api.get("/v1/pairings")).json()["items"]
        assert (made["state"], made["name"], made["owner"]) == ("paired", "Ada's laptop", "local")
        assert (await api.delete(f"/v1/pairings/{made['id']}")).json()["state"] == "revoked"
        problem(await api.get("/v1/extension/flagged", headers=first), 401, "NOT_PAIRED")
        await asyncio.sleep(2.1)
        second = await paired(api)
        assert (await api.delete("/v1/extension/pairing", headers=second)).json()["state"] == "revoked"
        problem(await api.get("/v1/extension/flagged", headers=second), 401, "NOT_PAIRED")
        problem(await api.delete("/v1/pairings/pair_nothing"), 404, "NOT_FOUND")
        revoked = await code_of(api)
        [waiting] = [one for one in (await api.get("/v1/pairings")).json()["items"] if one["state"] == "waiting"]
        await api.delete(f"/v1/pairings/{waiting['id']}")
        await asyncio.sleep(2.1)
        problem(await api.post("/v1/extension/pair", json={"code": revoked, "name": "x"}), 403, "WRONG_CODE")


async def test_an_extension_is_heard_at_its_own_calls_only(open_api: Open):
    async with open_api(workers=0) as api:
        asked = {"Origin": EXTENSION, "Access-Control-Request-Method": "POST"}
        preflight = await api.options("/v1/extension/captures", headers=asked)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == EXTENSION
        assert "access-control-allow-credentials" not in preflight.headers
        refused = await api.get("/v1/extension/flagged", headers={"Origin": EXTENSION})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, EXTENSION)
        problem(await api.get("/v1/pages", headers={"Origin": EXTENSION}), 403, "FOREIGN_ORIGIN")
        problem(
            await api.get("/v1/extension/flagged", headers={"Origin": "https://evil.example"}), 403, "FOREIGN_ORIGIN"
        )
        elsewhere = {"Origin": EXTENSION, "Host": "evil.example"}
        problem(await api.get("/v1/extension/flagged", headers=elsewhere), 421, "WRONG_HOST")


async def test_a_stranger_sends_little(open_api: Open):
    async with open_api(workers=0, api_keys=[KEY]) as api:
        json = {"Content-Type": "application/json"}
        problem(await api.post("/v1/extension/pair", content=b" " * 5000, headers=json), 413, "TOO_LARGE")

        async def endless():
            yield b"{"

        problem(await api.post("/v1/extension/pair", content=endless(), headers=json), 413, "TOO_LARGE")
        problem(await api.post("/v1/extension/captures", content=b"x" * 100_000), 401, "NOT_PAIRED")
        problem(await api.post("/v1/extension/pair", json={"code": "x", "name": ""}), 422, "INVALID")


async def test_an_owner_hands_in_for_what_they_see(open_api: Open, tmp_path: Path):
    """Two configured keys are two owners: neither sees the other's list."""
    async with open_api(workers=0, api_keys=[KEY, "m" * 40]) as api:
        mine, other = {"Authorization": f"Bearer {KEY}"}, {"Authorization": f"Bearer {'m' * 40}"}
        added = {"action": "add", "url": WALLED, "task_id": "capital"}
        assert (await api.post("/v1/pages/changes", json=added, headers=mine)).status_code == 201
        made = (await api.post("/v1/pairings", headers=other)).json()
        token = (await api.post("/v1/extension/pair", json={"code": made["code"], "name": "x"})).json()["token"]
        browser = {"Authorization": f"Bearer {token}"}
        assert (await api.get("/v1/extension/flagged", headers=browser)).json() == {"items": []}
        problem(await capture(api, browser), 409, "NOT_FLAGGED")
        assert (await api.get("/v1/pairings", headers=mine)).json()["items"] == []
        problem(await api.delete(f"/v1/pairings/{made['id']}", headers=mine), 404, "NOT_FOUND")

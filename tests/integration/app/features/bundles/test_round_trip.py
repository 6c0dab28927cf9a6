"""Export, verification and replay of bundles, on the real pipeline."""

from __future__ import annotations

import hashlib
import json
import random
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.features.bundles.archive import BundleRefused
from app.features.bundles.replay import replay
from app.features.bundles.verification import verify
from cache.blobs import BlobArea
from cache.sources.supplied import store_supplied, supplied_pages
from judges.forbidden_sources import ForbiddenSource
from judges.llm.client import LLMRequest
from rubrics.tree_json import leaves_of
from tests.fakes.bundled import (
    ANSWER,
    JUDGE,
    LAMPS,
    MUSEUM,
    PAGES,
    InMemoryJudging,
    PagesWithBodies,
    call_log,
    check_replay,
    payload,
    read_member,
    rebuilt,
)
from tests.fakes.llm import RuleLLM


def quotes(request: LLMRequest) -> list[str]:
    said = {"opens": "The museum opens at nine", "lamp": "Every lamp in this catalogue is green"}
    return [quote for word, quote in said.items() if word in request.parts["claim"] and "page" in request.parts]


def model() -> RuleLLM:
    return RuleLLM(lambda request: "closes" not in request.parts["claim"], quotes=quotes)


@pytest.fixture
async def world(tmp_path: Path) -> InMemoryJudging:
    world = InMemoryJudging(tmp_path, model())
    await world.judge()
    return world


async def test_bundle_contains_all_files_by_hash(world: InMemoryJudging):
    bundle, made = await world.bundle()
    files = payload(bundle)
    result = json.loads(world.results[0].body)
    assert files[f"results/{result['id']}.json"] == world.results[0].body
    assert files[f"answers/{result['answer_sha256']}.md"] == ANSWER.encode()
    assert files[f"scripts/{result['script']['sha256']}.py"] == JUDGE.encode()
    for page in result["pages"]:
        record = json.loads(files[f"captures/{page['page_id']}.json"])
        assert record["url"] == page["url"]
        for blob in record["blobs"].values():
            [found] = [name for name in files if name.startswith(f"evidence/{blob['sha256']}.")]
            assert hashlib.sha256(files[found]).hexdigest() == blob["sha256"]
    assert {name.rpartition(".")[2] for name in files if name.startswith("evidence/")} == {"txt", "html", "jpg", "json"}
    assert len(call_log(bundle).calls) == len(world.llm.requests) > 6  # type: ignore[attr-defined]
    assert made.absent == ()
    assert len(made.files) == len(files)


async def test_manifest_lists_size_and_hash_of_every_file(world: InMemoryJudging):
    bundle, _ = await world.bundle()
    manifest = json.loads(read_member(bundle, "manifest.json"))
    with zipfile.ZipFile(bundle) as archive:
        assert archive.testzip() is None
        others = {name: archive.read(name) for name in archive.namelist() if name != "manifest.json"}
    assert manifest["files"] == [
        {"path": path, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for path, data in sorted(others.items())
    ]


async def test_bundles_are_reproducible(world: InMemoryJudging):
    first, second = await world.bundle("one.zip"), await world.bundle("two.zip")
    assert first[0].read_bytes() == second[0].read_bytes()


async def test_random_bit_flips_are_detected(world: InMemoryJudging, tmp_path: Path):
    bundle, _ = await world.bundle()
    data, place, rng = bytearray(bundle.read_bytes()), tmp_path / "flipped.zip", random.Random(20261121)
    undetected = []
    for _ in range(1000):
        at, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
        data[at] ^= bit
        place.write_bytes(data)
        try:
            if verify(place).valid:
                undetected.append((at, bit))
        except BundleRefused:
            pass
        data[at] ^= bit
    assert undetected == []
    assert verify(bundle).valid


async def test_every_score_is_recomputed_and_reproduced(world: InMemoryJudging):
    await world.judge(JUDGE.replace("critical=True", "critical=False"), name="answer_2.md")
    bundle, _ = await world.bundle()
    scores = [json.loads(judged.body)["score"] for judged in world.results]
    assert [each.figures["score"] for each in verify(bundle).results] == scores
    await check_replay(bundle, world)


async def test_replay_uses_the_pages_that_only_the_owner_of_the_answer_uses(world: InMemoryJudging):
    world.owner = "otter"
    seen = await PagesWithBodies({MUSEUM: "The museum opens at nine, and it closes at ten."}).capture(MUSEUM)
    await world.pages.add(MUSEUM, seen, owner="otter")
    result = await world.judge()
    assert "otter" in [page["owner"] for page in result["pages"]]
    await check_replay((await world.bundle())[0], world)


async def test_replay_uses_supplied_pages_and_the_forbidden_sources_of_the_service(tmp_path: Path):
    world = InMemoryJudging(tmp_path, model(), capturer=PagesWithBodies({}))
    entry = ForbiddenSource(host="lamps.example", reason="the benchmark")
    world.settings = world.settings.model_copy(update={"forbidden_sources": (entry,)})
    records = [("0", {"url": MUSEUM, "text": PAGES[MUSEUM]}), ("1", {"url": LAMPS, "text": PAGES[LAMPS]})]
    world.supplied = await store_supplied(
        supplied_pages(records, supplier="supplied by the agent", now=datetime.now(UTC)).values(),
        world.pages,
        owner=None,
    )
    result = await world.judge()
    assert {page["source"] for page in result["pages"] if page["url"] == MUSEUM} == {"supplied"}
    assert result["evidence"]["supplied"] > 0
    reasons = {leaf["reason"] for leaf in leaves_of(result)}
    assert "source_forbidden" in reasons
    await check_replay((await world.bundle())[0], world)


async def test_copy_that_the_judge_was_not_shown_is_exported_and_verified(tmp_path: Path):
    world = InMemoryJudging(tmp_path, model(), capturer=PagesWithBodies({LAMPS: PAGES[LAMPS]}))
    records = [("0", {"url": MUSEUM, "text": PAGES[MUSEUM]}), ("1", {"url": LAMPS, "text": "The lamps are red."})]
    world.supplied = await store_supplied(
        supplied_pages(records, supplier="supplied by the agent", now=datetime.now(UTC)).values(),
        world.pages,
        owner=None,
    )
    result = await world.judge()
    copies = {page["url"]: page["other_copy"] for page in result["pages"] if "other_copy" in page}
    assert {url: (copy["source"], copy["outcome"]) for url, copy in copies.items()} == {
        MUSEUM: ("web", "http_error"),
        LAMPS: ("supplied", "ok"),
    }
    bundle, _ = await world.bundle()
    assert {f"captures/{copy['page_id']}.json" for copy in copies.values()} <= payload(bundle).keys()
    await check_replay(bundle, world)

    path = f"results/{world.results[0].id}.json"
    text = read_member(bundle, path).replace(copies[LAMPS]["sha256"].encode(), b"0" * 64)
    forged = verify(rebuilt(bundle, tmp_path / "other.zip", {path: text}))
    assert f"sha256 in captures/{copies[LAMPS]['page_id']}.json" in (forged.first_problem or "")


async def test_request_that_is_not_in_the_bundle_is_reported(world: InMemoryJudging, tmp_path: Path):
    bundle, _ = await world.bundle()
    other = JUDGE.replace("The lamp is green", "The lamp is red").encode()
    result = json.loads(world.results[0].body)
    before, after = result["script"]["sha256"], hashlib.sha256(other).hexdigest()
    path = f"results/{result['id']}.json"
    changes: dict[str, bytes | None] = {
        path: read_member(bundle, path).replace(before.encode(), after.encode()),
        f"scripts/{before}.py": None,
        f"scripts/{after}.py": other,
    }
    forged = rebuilt(bundle, tmp_path / "other.zip", changes)
    found = (await replay(forged, world.settings, timeout_s=0.05)).first_problem or ""
    assert "not in the bundle" in found
    assert "The lamp is red" in found


async def test_nothing_runs_if_the_verification_finds_a_problem(world: InMemoryJudging, tmp_path: Path):
    bundle, _ = await world.bundle()
    path = f"results/{world.results[0].id}.json"
    changed = json.loads(read_member(bundle, path)) | {"final_score": 1.0}
    forged = rebuilt(bundle, tmp_path / "other.zip", {path: json.dumps(changed).encode()})
    report = await replay(forged, world.settings)
    assert report == verify(forged)
    assert "final_score: the result says 1.0, recomputed" in (report.first_problem or "")


async def test_bundle_without_content_has_no_pages_and_is_verified_as_far_as_possible(world: InMemoryJudging):
    bundle, _ = await world.bundle(content=False)
    files = payload(bundle)
    assert not [name for name in files if name.startswith(("evidence/", "call-logs/"))]
    everything = b"".join(files.values()).decode()
    assert "rooms on the second floor" not in everything
    assert "Every lamp in this catalogue is green" in everything  # a quote
    assert hashlib.sha256(PAGES[MUSEUM].encode()).hexdigest() in everything
    report = verify(bundle)
    assert (report.valid, report.is_complete) == (True, False)
    [again] = (await replay(bundle, world.settings)).results
    assert "made without content" in (again.unchecked or "")


async def test_missing_files_are_listed(world: InMemoryJudging):
    result = json.loads(world.results[0].body)
    capture = await world.index.get(result["pages"][0]["page_id"])
    assert capture is not None
    await world.blobs.remove(capture.blobs["html"].sha256)
    await world.blobs.remove(capture.blobs["text"].sha256)
    await world.blobs.remove_from_area(BlobArea.CALLS, result["calls"]["sha256"])
    await world.blobs.remove_from_area(BlobArea.SCRIPTS, result["script"]["sha256"])
    bundle, made = await world.bundle()
    assert {each.path.partition("/")[0] for each in made.absent} == {"evidence", "call-logs", "scripts"}
    report = verify(bundle)
    assert (report.first_problem, report.is_complete) == (None, False)
    assert len(report.results[0].not_compared) == len(made.absent)
    [again] = (await replay(bundle, world.settings)).results
    assert "is not in the bundle" in (again.unchecked or "")


async def test_secrets_are_withheld_or_masked(tmp_path: Path):
    canary = "sk-canary-0123456789abcdef"
    pages = {**PAGES, LAMPS: f"Every lamp in this catalogue is green. {canary}"}
    world = InMemoryJudging(tmp_path, model(), capturer=PagesWithBodies(pages), secrets=(canary,))
    await world.judge(JUDGE + f"\n# {canary}\n", answer=f"{ANSWER} {canary}")
    bundle, made = await world.bundle()
    assert canary.encode() not in bundle.read_bytes()
    kinds = {each.path.partition("/")[0] for each in made.absent if "withheld" in each.reason}
    assert kinds == {"evidence", "scripts", "answers", "call-logs"}  # a call log is compressed, but was searched
    assert verify(bundle).first_problem is None


async def test_hash_of_a_body_is_no_path(world: InMemoryJudging, tmp_path: Path):
    bundle, _ = await world.bundle()
    path = next(name for name, data in payload(bundle).items() if name.startswith("captures/") and b'"text"' in data)
    record = json.loads(read_member(bundle, path))
    record["blobs"]["text"]["sha256"] = "../../../../evil"
    forged = rebuilt(bundle, tmp_path / "forged.zip", {path: json.dumps(record).encode()})
    report = await replay(forged, world.settings)
    assert "evidence/../../../../evil.txt" in str(report.results[0].differences)


def corrupt(value: Any, rng: random.Random) -> Any:
    """Return the JSON value with one part replaced."""
    replacements: tuple[Any, ...] = (None, 0, -1, 1e308, "", "../../x", [], {}, [[]], {"a": {}}, True, "\ud800", 2**70)
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(sorted(value))
        return value | {name: corrupt(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        return [*value[:at], corrupt(value[at], rng), *value[at + 1 :]]
    return rng.choice(replacements)


@pytest.mark.parametrize("kind", ["results/", "captures/", "manifest"])
async def test_corrupt_files_cause_a_difference_or_a_rejection(world: InMemoryJudging, tmp_path: Path, kind: str):
    bundle, _ = await world.bundle()
    manifest = json.loads(read_member(bundle, "manifest.json"))
    path = next((name for name in payload(bundle) if name.startswith(kind)), None)
    rng = random.Random(kind)
    for number in range(60):
        if path is None:
            other = corrupt(manifest, rng)
            forged = rebuilt(bundle, tmp_path / "forged.zip", {}, **(other if isinstance(other, dict) else {}))
        else:
            other = json.dumps(corrupt(json.loads(read_member(bundle, path)), rng)).encode()
            forged = rebuilt(bundle, tmp_path / "forged.zip", {path: other})
        try:
            verify(forged)
            if number < 12:
                await replay(forged, world.settings, timeout_s=0.0)
        except BundleRefused:
            pass
    assert {each.name for each in tmp_path.iterdir()} <= {  # noqa: ASYNC240
        "bundle.zip",
        "forged.zip",
        "museum.py",
        "result.json",
        "data",
    }

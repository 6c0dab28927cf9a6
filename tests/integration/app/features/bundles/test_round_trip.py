"""Export, verification and replay of bundles, on the real pipeline."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rocrate.rocrate import ROCrate

from app.features.bundles.errors import BundleRefused
from app.features.bundles.replaying import first_difference, replay
from app.features.bundles.rerunning import rerun
from app.features.bundles.verifying import verify
from cache.blobs import BlobArea
from judges.llm.client import LLMRequest
from tests.fakes.bundled import (
    ANSWER,
    JUDGE,
    LAMPS,
    MUSEUM,
    PAGES,
    InMemoryJudging,
    PagesWithBodies,
    copy_with_changes,
    read_member,
)
from tests.fakes.llm import RuleLLM

RED = "The lamp is red"


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


def unpacked(bundle: Path, to: Path) -> Path:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(to)
    return to / "assay-otter"


def payload(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        return {name.partition("/data/")[2]: archive.read(name) for name in archive.namelist() if "/data/" in name}


async def test_bundle_contains_all_files_by_hash(world: InMemoryJudging):
    bundle, made = await world.bundle()
    files = payload(bundle)
    result = json.loads(world.results[0].body)
    assert files[f"results/{result['id']}.json"] == world.results[0].body
    assert files[f"answers/{result['answer_sha256']}.md"] == ANSWER.encode()
    assert files[f"scripts/{result['script']['sha256']}.py"] == JUDGE.encode()
    assert json.loads(files[f"trees/{result['id']}.json"])[0]["id"] == "root"
    assert {f"prompts/{ref}.md" for ref in result["prompts"]} <= files.keys()
    for page in result["pages"]:
        record = json.loads(files[f"captures/{page['page_id']}.json"])
        assert record["url"] == page["url"]
        for blob in record["blobs"].values():
            [found] = [name for name in files if name.startswith(f"evidence/{blob['sha256']}.")]
            assert hashlib.sha256(files[found]).hexdigest() == blob["sha256"]
    roles = {name.rpartition(".")[2] for name in files if name.startswith("evidence/")}
    assert roles == {"txt", "html", "jpg", "json"}
    assert made.absent == ()


async def test_bundle_contains_every_request_and_reply(world: InMemoryJudging):
    bundle, _ = await world.bundle()
    files = payload(bundle)
    calls = [json.loads(line) for line in files[f"calls/{world.results[0].id}.jsonl"].splitlines()]
    asked = world.llm.requests  # type: ignore[attr-defined]
    assert len(calls) == len(asked) > 6

    def text(content: Any) -> str:
        if isinstance(content, str):
            return content
        if "pieces" in content:
            return "".join(
                p if isinstance(p, str) else files[f"texts/{p['sha256']}.txt"].decode() for p in content["pieces"]
            )
        raise AssertionError(content)

    def message_texts(message: Any) -> list[str]:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"text": content}]
        return [text(part["text"]) for part in parts if "text" in part and part.get("type") != "image_url"]

    sent = sorted(str([message_texts(message) for message in request.messages]) for request in asked)
    assert sorted(str([message_texts(message) for message in call["messages"]]) for call in calls) == sent
    pictures = re.findall(r'"picture": "([0-9a-f]{64})"', files[f"calls/{world.results[0].id}.jsonl"].decode())
    assert pictures
    assert {f"evidence/{sha256}.jpg" for sha256 in pictures} <= files.keys()


async def test_bundles_are_reproducible(world: InMemoryJudging):
    first, second = await world.bundle("one.zip"), await world.bundle("two.zip")
    assert first[1].root == second[1].root
    assert first[0].read_bytes() == second[0].read_bytes()
    archives = [await world.bundle(name, wacz=True) for name in ("three.zip", "four.zip")]
    assert archives[0][0].read_bytes() == archives[1][0].read_bytes()


async def output_of(*command: str, cwd: Path) -> str:
    """Run another program, check its exit status, and return its output."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await asyncio.wait_for(process.communicate(), 240)
    assert process.returncode == 0, said
    return said.decode()


async def test_bundle_is_valid_for_external_tools(world: InMemoryJudging, tmp_path: Path):
    bundle, made = await world.bundle(wacz=True)
    folder = unpacked(bundle, tmp_path / "unpacked")
    for manifest in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        assert "FAILED" not in await output_of("sha256sum", "-c", "--strict", manifest, cwd=folder)
    assert "is valid" in await output_of(sys.executable, "-m", "bagit", "--validate", str(folder), cwd=tmp_path)
    assert made.root == hashlib.sha256((folder / "tagmanifest-sha256.txt").read_bytes()).hexdigest()
    crate = ROCrate(str(folder / "data"))
    assert len(crate.root_dataset["hasPart"]) == made.files - 2  # without the description itself and its page
    action = next(each for each in crate.get_entities() if each.type == "CreateAction")
    assert {each.id.partition("/")[0] for each in action["result"]} == {"results", "trees", "calls"}


async def test_wacz_archive_is_valid(world: InMemoryJudging, tmp_path: Path):
    bundle, _ = await world.bundle(wacz=True)
    path = tmp_path / "captures.wacz"
    path.write_bytes(read_member(bundle, "evidence/captures.wacz"))
    program = Path(sys.executable).with_name("wacz")
    assert "is valid" in await output_of(str(program), "validate", "-f", str(path), cwd=tmp_path)


async def test_random_bit_flips_are_detected(world: InMemoryJudging, tmp_path: Path):
    bundle, made = await world.bundle()
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
    assert verify(bundle, expected_root=made.root).valid


async def test_replay_recomputes_every_score(world: InMemoryJudging):
    await world.judge(JUDGE.replace("critical=True", "critical=False"), name="answer_2.md")
    bundle, _ = await world.bundle()
    found = replay(bundle)
    assert first_difference(found) is None
    scores = [json.loads(judged.body)["score"] for judged in world.results]
    assert [each.figures["score"] for each in found] == scores
    assert all(each.equal for each in found)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda result: result | {"final_score": 1.0}, "final_score: the result says 1.0, recomputed"),
        (lambda result: result | {"score": {"value": 1, "low": 1, "high": 1}}, "score: the result says"),
        (lambda result: result | {"answer_sha256": "0" * 64}, "answer_sha256: the result says '0000"),
    ],
)
async def test_first_difference_is_reported(world: InMemoryJudging, tmp_path: Path, change: Any, says: str):
    bundle, _ = await world.bundle()
    path = f"results/{world.results[0].id}.json"
    other = copy_with_changes(
        bundle, tmp_path / "other.zip", {path: json.dumps(change(json.loads(read_member(bundle, path)))).encode()}
    )
    assert says in (first_difference(replay(other)) or "")


async def test_changed_page_text_fails_its_quotes(world: InMemoryJudging, tmp_path: Path):
    bundle, _ = await world.bundle()
    text = PAGES[LAMPS].encode()
    path = f"evidence/{hashlib.sha256(text).hexdigest()}.txt"
    other = copy_with_changes(bundle, tmp_path / "other.zip", {path: text.replace(b"green", b"brown")})
    with pytest.raises(BundleRefused, match="does not match its hash"):
        replay(other)
    capture = next(
        name for name in payload(bundle) if name.startswith("captures/") and LAMPS in read_member(bundle, name).decode()
    )
    record = json.loads(read_member(bundle, capture))
    brown = text.replace(b"green", b"brown")
    record["blobs"]["text"]["sha256"] = hashlib.sha256(brown).hexdigest()
    forged_files = {capture: json.dumps(record).encode(), path: None}
    other = copy_with_changes(bundle, tmp_path / "lies.zip", forged_files)
    with zipfile.ZipFile(other, "a") as archive:
        archive.writestr(f"assay-otter/data/evidence/{hashlib.sha256(brown).hexdigest()}.txt", brown)
    [replayed] = replay(other)
    assert any("quote of leaf lamp" in difference.where for difference in replayed.differences)


async def test_rerun_of_scripts_gives_the_same_results(world: InMemoryJudging):
    bundle, _ = await world.bundle()
    again = await rerun(bundle, replay(bundle), world.settings)
    assert first_difference(again) is None


async def test_rerun_uses_the_pages_that_only_the_owner_of_the_answer_uses(world: InMemoryJudging):
    world.owner = "otter"
    seen = await PagesWithBodies({MUSEUM: "The museum opens at nine, and it closes at ten."}).capture(MUSEUM)
    await world.pages.add(MUSEUM, seen, owner="otter")
    result = await world.judge()
    assert "otter" in [page["owner"] for page in result["pages"]]
    bundle, _ = await world.bundle()
    assert first_difference(await rerun(bundle, replay(bundle), world.settings)) is None


async def test_request_that_is_not_in_the_bundle_is_reported(world: InMemoryJudging, tmp_path: Path):
    bundle, _ = await world.bundle()
    other = JUDGE.replace("The lamp is green", RED).encode()
    script = next(name for name in payload(bundle) if name.startswith("scripts/"))
    index = json.loads(read_member(bundle, "bundle.json"))
    index["results"][0]["script"] = hashlib.sha256(other).hexdigest()
    forged = copy_with_changes(
        bundle, tmp_path / "other.zip", {"bundle.json": json.dumps(index).encode(), script: None}
    )
    with zipfile.ZipFile(forged, "a") as archive:
        archive.writestr(f"assay-otter/data/scripts/{hashlib.sha256(other).hexdigest()}.py", other)
    again = await rerun(forged, replay(bundle), world.settings, timeout_s=0.05)
    message_texts = first_difference(again) or ""
    assert "not in the bundle" in message_texts
    assert RED in message_texts


async def test_bundle_without_content_has_no_pages_and_replays(world: InMemoryJudging):
    bundle, made = await world.bundle(content=False)
    assert verify(bundle).valid
    files = payload(bundle)
    assert not any(name.startswith("evidence/") for name in files)
    everything = b"".join(files.values()).decode()
    assert "rooms on the second floor" not in everything
    assert "Every lamp in this catalogue is green" in everything  # a short quote
    assert MUSEUM in everything
    assert hashlib.sha256(PAGES[MUSEUM].encode()).hexdigest() in everything
    assert first_difference(replay(bundle)) is None
    assert (await world.bundle("again.zip", content=False))[1].root == made.root
    [again] = await rerun(bundle, replay(bundle), world.settings)
    assert "made without content" in (again.unchecked or "")


async def test_result_from_before_pages_had_a_kind_replays(world: InMemoryJudging):
    result = json.loads(world.results[0].body)
    for page in result["pages"]:
        del page["kind"]
    world.results[0] = replace(world.results[0], body=json.dumps(result).encode())
    bundle, _ = await world.bundle()
    assert first_difference(replay(bundle)) is None


async def test_missing_files_are_listed_and_bundle_replays(world: InMemoryJudging):
    result = json.loads(world.results[0].body)
    capture = await world.index.get(result["pages"][0]["page_id"])
    assert capture is not None
    await world.blobs.remove(capture.blobs["html"].sha256)
    await world.blobs.remove(capture.blobs["text"].sha256)
    await world.blobs.remove_from_area(BlobArea.CALLS, result["calls"]["sha256"])
    await world.blobs.remove_from_area(BlobArea.SCRIPTS, result["script"]["sha256"])
    bundle, made = await world.bundle()
    assert {each.path.partition("/")[0] for each in made.absent} == {"evidence", "calls", "scripts"}
    assert {each["path"] for each in json.loads(read_member(bundle, "bundle.json"))["absent"]} == {
        e.path for e in made.absent
    }
    assert verify(bundle).valid
    assert first_difference(replay(bundle)) is None
    [again] = await rerun(bundle, replay(bundle), world.settings)
    assert "is not in the bundle" in (again.unchecked or "")


async def test_secrets_are_withheld(tmp_path: Path):
    canary = "sk-canary-0123456789abcdef"
    pages = {**PAGES, LAMPS: f"Every lamp in this catalogue is green. {canary}"}
    world = InMemoryJudging(tmp_path, model(), capturer=PagesWithBodies(pages), secrets=(canary,))
    await world.judge(JUDGE + f"\n# {canary}\n", answer=f"{ANSWER} {canary}")
    bundle, made = await world.bundle(wacz=True)
    assert canary.encode() not in bundle.read_bytes()
    assert not any(path.startswith("call-logs/") for path in payload(bundle))  # compressed: it could hide the secret
    assert any(each.path.startswith("call-logs/") for each in made.absent)
    kinds = {each.path.partition("/")[0] for each in made.absent if "withheld" in each.reason}
    assert {"evidence", "scripts", "answers"} <= kinds
    assert verify(bundle).valid


async def test_path_traversal_in_a_hash_is_rejected(world: InMemoryJudging, tmp_path: Path):
    bundle, _ = await world.bundle()
    path = next(name for name in payload(bundle) if name.startswith("captures/"))
    record = json.loads(read_member(bundle, path))
    record["blobs"]["text"]["sha256"] = "../../../../evil"
    forged = copy_with_changes(bundle, tmp_path / "forged.zip", {path: json.dumps(record).encode()})
    with pytest.raises(BundleRefused, match="by an invalid hash"):
        await rerun(forged, [], world.settings)


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


@pytest.mark.parametrize("kind", ["results/", "trees/", "captures/", "calls/", "bundle.json"])
async def test_corrupt_files_cause_a_difference_or_a_rejection(world: InMemoryJudging, tmp_path: Path, kind: str):
    bundle, _ = await world.bundle()
    path = next(name for name in payload(bundle) if name.startswith(kind))
    first, _, rest = read_member(bundle, path).partition(b"\n" if kind == "calls/" else b"\0")
    rng = random.Random(kind)
    for number in range(60):
        other = json.dumps(corrupt(json.loads(first), rng)).encode()
        forged = copy_with_changes(bundle, tmp_path / "forged.zip", {path: other + b"\n" + rest})
        try:
            found = replay(forged)
            if number < 12:
                await rerun(forged, found, world.settings, timeout_s=0.0)
        except BundleRefused:
            pass
    left = {each.name for each in await asyncio.to_thread(lambda: list(tmp_path.iterdir()))}
    assert left <= {
        "bundle.zip",
        "forged.zip",
        "museum.py",
        "result.json",
        "data",
    }

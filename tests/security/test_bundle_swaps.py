"""An attacker who controls a bundle replaces files in it and rebuilds everything that can be rebuilt.

Manifests, zip headers, preview and RO-Crate are consistent in every attack, so ``verify`` alone accepts the file.
``replay`` has to name the changed file. What only the published root hash reveals is tested last.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from app.features.bundles.bundle_reader import open_bundle
from app.features.bundles.errors import BundleRefused
from app.features.bundles.replaying import first_difference, replay
from app.features.bundles.verifying import verify
from judges.analysis.replay.recomputation import score_differences
from judges.llm.call_recording import HEAD, MAGIC
from tests.fakes.bundled import LAMPS, MUSEUM, PAGES, InMemoryJudging, rebuilt
from tests.fakes.llm import RuleLLM

Files: TypeAlias = Mapping[str, bytes]
Changes: TypeAlias = dict[str, bytes | None]
RESULT = "results/res_00000000000000000000000000.json"
TREE = "trees/res_00000000000000000000000000.json"
CALLS = "calls/res_00000000000000000000000000.jsonl"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    async def judged() -> Path:
        world = InMemoryJudging(tmp_path_factory.mktemp("judged"), RuleLLM(lambda r: "closes" not in r.parts["claim"]))
        await world.judge()
        return (await world.bundle(wacz=True))[0]

    return asyncio.run(judged())


def payload(bundle: Path) -> dict[str, bytes]:
    with open_bundle(bundle) as reader:
        return {name[len("data/") :]: reader.read(name) for name in reader.names if name.startswith("data/")}


@pytest.fixture(scope="module")
def files(bundle: Path) -> dict[str, bytes]:
    return payload(bundle)


def verdict_on(forged: Path) -> str:
    """Return what ``replay`` says about a bundle that ``verify`` accepts."""
    assert verify(forged).valid
    try:
        return first_difference(replay(forged)) or "equal"
    except BundleRefused as error:
        return str(error)


def test_untouched_bundle_survives_the_attackers_tools(bundle: Path, tmp_path: Path):
    forged = rebuilt(bundle, tmp_path / "same.zip", {})
    assert verdict_on(forged) == "equal"
    assert verify(forged).root == verify(bundle).root


NAMED_BY_HASH = ("answers/", "scripts/", "texts/", "schemas/", "call-logs/", "evidence/")


def test_replaced_content_under_the_same_name_is_named(bundle: Path, files: Files, tmp_path: Path):
    named = [path for path in files if path.startswith((*NAMED_BY_HASH, "prompts/")) and not path.endswith(".wacz")]
    kinds = {(path.partition("/")[0], path.rpartition(".")[2]) for path in named}
    assert {kind for kind, _ in kinds} == {*(folder[:-1] for folder in NAMED_BY_HASH), "prompts"}
    assert {suffix for kind, suffix in kinds if kind == "evidence"} == {"txt", "html", "jpg", "json"}
    for path in named:
        other = json.dumps(json.loads(files[path]) | {"x": 1}) if path.startswith("schemas/") else "another content"
        forged = rebuilt(bundle, tmp_path / "forged.zip", {path: other.encode()})
        assert f"data/{path}" in verdict_on(forged), path


@pytest.mark.parametrize(
    "path", ["ro-crate-preview.html", "ro-crate-metadata.json", "evidence/captures.wacz", TREE, CALLS]
)
def test_replaced_description_or_copy_is_named(bundle: Path, files: Files, tmp_path: Path, path: str):
    changed = files[path].replace(b"museum", b"castle") if path != TREE else b"[]"
    assert changed != files[path]
    forged = rebuilt(bundle, tmp_path / "forged.zip", {path: changed})
    assert f"data/{path}" in verdict_on(forged)


def test_another_bag_info_is_named(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tests.fakes.bundled.bag_info", lambda agent, at: {"Source-Organization": "somebody"})
    forged = rebuilt(bundle, tmp_path / "forged.zip", {})
    monkeypatch.undo()
    assert "bag-info.txt" in verdict_on(forged)


def renamed(files: Files, before: str, data: bytes, *references: str) -> Changes:
    """Replace a file under its new hash, and the old hash in the files that refer to it."""
    old = before.partition("/")[2].partition(".")[0]
    new = hashlib.sha256(data).hexdigest()
    changes: Changes = {path: files[path].replace(old.encode(), new.encode()) for path in references}
    return changes | {before: None, before.replace(old, new): data}


def find(files: Files, folder: str, content: str) -> str:
    return next(path for path in files if path.startswith(folder) and content.encode() in files[path])


def test_another_page_text_with_its_own_hash_is_named(bundle: Path, files: Files, tmp_path: Path):
    capture = find(files, "captures/", f'"{LAMPS}"')
    text = next(path for path in files if path.endswith(".txt") and files[path] == PAGES[LAMPS].encode())
    changes = renamed(files, text, b"Every lamp is red.", capture)
    forged = rebuilt(bundle, tmp_path / "forged.zip", changes | {"evidence/captures.wacz": None})
    assert f"data/{capture}" in verdict_on(forged)
    # Also in the result: then the call log, whose hash is in the result, still names the page that the model saw.
    changes = renamed(files, text, b"Every lamp is red.", capture, RESULT, TREE)
    forged = rebuilt(bundle, tmp_path / "forged.zip", changes | {"evidence/captures.wacz": None})
    assert text.partition(".")[0].removeprefix("evidence/") in verdict_on(forged)


def test_another_screenshot_with_its_own_hash_is_named(bundle: Path, files: Files, tmp_path: Path):
    picture = next(path for path in files if path.endswith(".jpg") and MUSEUM.encode() in files[path])
    capture = find(files, "captures/", f'"{MUSEUM}"')
    changes = renamed(files, picture, b"\xff\xd8 another picture", capture)
    assert f"data/{capture}" in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", changes))
    # Also in the result: then the call log, whose hash is in the result, still has the picture that the model saw.
    changes = renamed(files, picture, b"\xff\xd8 another picture", capture, RESULT, TREE)
    verdict = verdict_on(rebuilt(bundle, tmp_path / "forged.zip", changes))
    assert picture.partition(".")[0].removeprefix("evidence/") in verdict
    # And in the lines of the calls: then they differ from the call log.
    changes = renamed(files, picture, b"\xff\xd8 another picture", capture, RESULT, TREE, CALLS)
    assert f"data/{CALLS}" in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", changes))


def test_another_judge_script_or_answer_is_named(bundle: Path, files: Files, tmp_path: Path):
    for folder, name in (("scripts/", "script.sha256"), ("answers/", "answer_sha256")):
        path = next(each for each in files if each.startswith(folder))
        forged = rebuilt(bundle, tmp_path / "forged.zip", renamed(files, path, b"# another", "bundle.json"))
        assert name in verdict_on(forged)


def test_another_call_log_is_named(bundle: Path, files: Files, tmp_path: Path):
    path = next(each for each in files if each.startswith("call-logs/"))
    log = files[path][:-1] + b"!"
    forged = rebuilt(bundle, tmp_path / "forged.zip", renamed(files, path, log))
    assert "calls.sha256" in verdict_on(forged)
    forged = rebuilt(bundle, tmp_path / "forged.zip", renamed(files, path, log, RESULT))
    assert "data/call-logs/" in verdict_on(forged)


def nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(each for child in node["children"] for each in nodes(child))]


def with_tree(files: Files, change: Callable[[dict[str, dict[str, Any]]], None]) -> Changes:
    """Change nodes of the result's tree, and set every figure to what the defender's own check expects."""
    result = json.loads(files[RESULT])
    by_id = {node["id"]: node for node in nodes(result["eval_breakdown"][0]["verification_tree"])}
    change(by_id)
    for difference in list(score_differences(result)):
        target = by_id.get(difference.where.removeprefix("node "), result)
        target.update(difference.recomputed if target is not result else {difference.where: difference.recomputed})
    return {
        RESULT: json.dumps(result, indent=2).encode() + b"\n",
        TREE: json.dumps([part["verification_tree"] for part in result["eval_breakdown"]]).encode(),
    }


def passed(leaf: dict[str, Any]) -> None:
    leaf.update(outcome="passed", reason=None, status="passed", score=1.0, grounded=True)
    for vote in leaf["votes"]:
        vote["result"] = True


def test_flipped_verdict_with_recomputed_scores_is_named(bundle: Path, files: Files, tmp_path: Path):
    changes = with_tree(files, lambda by_id: passed(by_id["hours/closes"]))
    assert json.loads(changes[RESULT] or b"")["final_score"] > json.loads(files[RESULT])["final_score"]
    assert "votes of leaf hours/closes" in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", changes))


def test_single_flipped_vote_is_named(bundle: Path, files: Files, tmp_path: Path):
    changes = with_tree(files, lambda by_id: by_id["hours/closes"]["votes"][0].update(result=True))
    assert "votes of leaf hours/closes" in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", changes))


def test_changed_score_is_named(bundle: Path, files: Files, tmp_path: Path):
    result = json.loads(files[RESULT]) | {"final_score": 1.0}
    assert "final_score" in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", {RESULT: json.dumps(result).encode()}))


def test_removed_tree_does_not_hide_other_differences(bundle: Path, files: Files, tmp_path: Path):
    result = json.loads(files[RESULT]) | {"eval_breakdown": [], "answer_sha256": "0" * 64, "final_score": 1.0}
    changes: Changes = {RESULT: json.dumps(result).encode(), TREE: b"[]"}
    assert "answer_sha256" in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", changes))


def with_index(files: Files, **changes: Any) -> Changes:
    index = json.loads(files["bundle.json"])
    index["results"][0] |= {name: value for name, value in changes.items() if name in index["results"][0]}
    return {"bundle.json": json.dumps(index | {k: v for k, v in changes.items() if k in index}).encode()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pages": []}, "pages in data/bundle.json"),
        ({"task_id": "castle"}, "task_id in data/bundle.json"),
        ({"answer_name": "other.md"}, "answer_name in data/bundle.json"),
        ({"calls": 1}, "calls in data/bundle.json"),
        ({"agent": "heron"}, "agent in data/bundle.json"),
        ({"results": []}, "does not belong to a result"),
    ],
)
def test_changed_index_is_named(bundle: Path, files: Files, tmp_path: Path, changes: Any, message: str):
    if changes.get("pages") == []:  # the captures have to go too, else they belong to no result
        others: Changes = {path: None for path in files if path.startswith("captures/") or path.endswith(".wacz")}
    else:
        others = {}
    assert message in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", with_index(files, **changes) | others))


def test_added_file_is_named(bundle: Path, tmp_path: Path):
    for path in ("captures/more.json", "evidence/readme.txt", "more/file"):
        assert f"data/{path}" in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", {path: b"{}"}))


def test_removed_evidence_is_a_difference_or_listed(bundle: Path, files: Files, tmp_path: Path):
    log = next(path for path in files if path.startswith("call-logs/"))
    picture = next(path for path in files if path.endswith(".jpg"))
    for path in (log, picture, CALLS):
        sha256 = path.partition("/")[2].partition(".")[0]
        removed = rebuilt(bundle, tmp_path / "removed.zip", {path: None, "evidence/captures.wacz": None})
        assert path in verdict_on(removed) or sha256 in verdict_on(removed)
        changes = with_index(files, absent=[{"path": path, "reason": "lost"}])
        listed = rebuilt(bundle, tmp_path / "listed.zip", {**changes, path: None})
        assert verdict_on(listed) == "equal"
        assert f"{path}: lost" in replay(listed)[0].not_compared


def test_only_the_root_hash_reveals_a_consistent_rewrite(bundle: Path, files: Files, tmp_path: Path):
    """These fields occur once in a bundle. docs/bundles.md names them."""
    capture = find(files, "captures/", f'"{LAMPS}"')
    rewritten = json.loads(files[capture])
    rewritten["headers"]["server"] = "another"
    changes = with_tree(files, lambda by_id: by_id["lamp"].update(reasoning="because", usage={}))
    forged = rebuilt(bundle, tmp_path / "forged.zip", changes | {capture: json.dumps(rewritten).encode()})
    forged = rebuilt(forged, tmp_path / "again.zip", {"evidence/captures.wacz": None})
    assert verdict_on(forged) == "equal"
    report = verify(forged, expected_root=verify(bundle).root)
    assert "the root hash is" in report.problems[0]


def test_every_file_is_covered_by_the_root_hash(bundle: Path, files: Files, tmp_path: Path):
    root = verify(bundle).root
    for path in files:
        changed = json.dumps(json.loads(files[path])).encode() if path == "bundle.json" else files[path] + b" "
        try:
            forged = rebuilt(bundle, tmp_path / "forged.zip", {path: changed})
        except (ValueError, LookupError):
            continue  # not even the attacker's tools can read the forged file
        report = verify(forged, expected_root=root)
        assert not report.valid, path


def test_hostile_call_log_is_refused(bundle: Path, files: Files, tmp_path: Path):
    path = next(each for each in files if each.startswith("call-logs/"))
    bomb = zlib.compress(b"[" + b"{}," * 6_000_000 + b"{}]")
    heads = [b"[]", b'{"calls": 1, "prompts": {}, "schemas": {}, "left_out": [], "pieces": {}}', bomb]
    heads.append(b'{"calls": [{"evidence": 5}], "prompts": {}, "schemas": {}, "left_out": [], "pieces": {"a": 5}}')
    for head in heads:
        packed = head if head is bomb else zlib.compress(head)
        log = MAGIC + HEAD.pack(len(packed)) + packed
        assert "is not a call log" in verdict_on(
            rebuilt(bundle, tmp_path / "forged.zip", renamed(files, path, log, RESULT))
        )

"""Forged bundles: an attacker changes files, and rebuilds everything that can be rebuilt.

Manifest and zip are consistent in every attack. ``verify`` has to name the change. What follows only from the judge
file is found by ``replay``.
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

from app.features.bundles.archive import BundleRefused
from app.features.bundles.replay import replay
from app.features.bundles.verification import verify
from judges.analysis.recomputation import score_differences
from judges.llm.call_recording import HEAD, MAGIC
from tests.fakes.bundled import JUDGE, LAMPS, PAGES, InMemoryJudging, payload, rebuilt
from tests.fakes.llm import RuleLLM
from tests.fakes.settings import settings_for_tests

Files: TypeAlias = Mapping[str, bytes]
Changes: TypeAlias = dict[str, bytes | None]
Nodes: TypeAlias = dict[str, dict[str, Any]]
RESULT = "results/res_00000000000000000000000000.json"
SOURCE = JUDGE.replace('    ctx.verify("said"', '    ctx.check("linked", True)\n    ctx.verify("said"')


def quotes(request: Any) -> list[str]:
    return ["Every lamp in this catalogue is green"] if "lamp" in request.parts["claim"] else []


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    async def judged() -> Path:
        llm = RuleLLM(lambda request: "closes" not in request.parts["claim"], quotes=quotes)
        world = InMemoryJudging(tmp_path_factory.mktemp("judged"), llm)
        await world.judge(SOURCE)
        return (await world.bundle())[0]

    return asyncio.run(judged())


@pytest.fixture(scope="module")
def files(bundle: Path) -> dict[str, bytes]:
    return payload(bundle)


def verdict_on(forged: Path) -> str:
    """Return the first problem that ``verify`` finds."""
    try:
        return verify(forged).first_problem or "valid"
    except BundleRefused as error:
        return str(error)


async def replay_of(forged: Path, tmp_path: Path) -> str:
    settings = settings_for_tests(data_dir=tmp_path / "data", model="openai/gpt-6-luna", openai_api_key="sk-of-tests")
    return (await replay(forged, settings, timeout_s=0.05)).first_problem or "valid"


async def test_untouched_bundle_survives_the_attackers_tools(bundle: Path, tmp_path: Path):
    forged = rebuilt(bundle, tmp_path / "same.zip", {})
    assert verdict_on(forged) == "valid"
    assert verify(forged).is_complete
    assert await replay_of(forged, tmp_path) == "valid"


def test_replaced_content_under_the_same_name_is_named(bundle: Path, files: Files, tmp_path: Path):
    folders = ("answers/", "scripts/", "call-logs/", "evidence/")
    named = [path for path in files if path.startswith(folders)]
    assert {path.rpartition(".")[2] for path in named} == {"md", "py", "log", "txt", "html", "jpg", "json"}
    for path in named:
        forged = rebuilt(bundle, tmp_path / "forged.zip", {path: b"another content"})
        assert verdict_on(forged) == f"{path} does not have the hash in its name"


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
    assert capture in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", changes))
    # Also in the result: then the call log still names the page that the model saw, and the quote is not in the page.
    changes = renamed(files, text, b"Every lamp is red.", capture, RESULT)
    forged = rebuilt(bundle, tmp_path / "forged.zip", changes)
    places = [difference.where for difference in verify(forged).results[0].differences]
    assert "a page in the call log" in places
    assert any(place.startswith("quote of leaf lamp") for place in places)


async def test_another_rubric_or_answer_is_found_when_it_is_replayed(bundle: Path, files: Files, tmp_path: Path):
    script = next(path for path in files if path.startswith("scripts/"))
    answer = next(path for path in files if path.startswith("answers/"))
    assert "does not belong to a result" in verdict_on(
        rebuilt(bundle, tmp_path / "forged.zip", renamed(files, script, b"# another"))
    )
    for change, says in (
        (renamed(files, script, files[script].replace(b"weight=2", b"weight=3"), RESULT), "judged again, node"),
        (renamed(files, answer, b"The museum opens at nine.", RESULT), "not in the bundle"),
    ):
        forged = rebuilt(bundle, tmp_path / "forged.zip", change)
        assert verdict_on(forged) == "valid"
        assert says in await replay_of(forged, tmp_path)


def nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(each for child in node["children"] for each in nodes(child))]


def with_tree(files: Files, change: Callable[[Nodes], object]) -> Changes:
    """Change nodes of the result's tree, and set every figure to what the defender's own check expects."""
    result = json.loads(files[RESULT])
    by_id = {node["id"]: node for node in nodes(result["eval_breakdown"][0]["verification_tree"])}
    change(by_id)
    for difference in list(score_differences(result)):
        target = by_id.get(difference.where.removeprefix("node "), result)
        target.update(difference.recomputed if target is not result else {difference.where: difference.recomputed})
    return {RESULT: json.dumps(result, indent=2).encode() + b"\n"}


def decided(leaf: dict[str, Any], outcome: str, *, votes: bool | None = True, **fields: Any) -> object:
    """Set outcome and score of a leaf, and the results of its votes."""
    score = 1.0 if outcome == "passed" else 0.0
    status = {"not_judged": "skipped"}.get(outcome, outcome)
    leaf.update({"outcome": outcome, "status": status, "score": score, "reason": None, "grounded": None} | fields)
    for vote in leaf["votes"]:
        vote["result"] = votes
    return leaf


TREE_FORGERIES: dict[str, tuple[Callable[[Nodes], object], str]] = {
    "a failed claim passes": (lambda n: decided(n["hours/closes"], "passed", grounded=False), "leaf hours/closes"),
    "a failed claim is not judged": (
        lambda n: decided(n["hours/closes"], "not_judged", votes=None, reason="llm_unavailable"),
        "votes of leaf hours/closes",
    ),
    "a quote that is not in the page": (
        lambda n: n["lamp"]["quotes"][0].update(text="Every lamp is red"),
        "quote of leaf lamp",
    ),
    "a claim without a quote is grounded": (
        lambda n: n["hours/opens"].update(grounded=True),
        "grounded of leaf hours/opens",
    ),
}


@pytest.mark.parametrize("forgery", TREE_FORGERIES)
def test_forged_tree_with_recomputed_scores_is_named(bundle: Path, files: Files, tmp_path: Path, forgery: str):
    change, says = TREE_FORGERIES[forgery]
    changes = with_tree(files, change)
    assert says in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", changes))


@pytest.mark.parametrize(
    "change", [lambda n: n["hours/opens"].update(critical=False), lambda n: n["root"]["children"].remove(n["linked"])]
)
async def test_forged_structure_is_found_when_it_is_replayed(
    bundle: Path, files: Files, tmp_path: Path, change: Callable[[Nodes], object]
):
    """Weights, critical nodes and checks by code follow only from the task file."""
    forged = rebuilt(bundle, tmp_path / "forged.zip", with_tree(files, change))
    assert "judged again, " in await replay_of(forged, tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"final_score": 1.0}, "final_score"),
        ({"status": "incomplete"}, "status"),
        ({"script": {"name": "museum", "kind": "native", "sha256": "0" * 64}}, "eval_script_sha256"),
        ({"task_id": "castle"}, "task_id in manifest.json"),
    ],
)
def test_changed_field_of_a_result_is_named(
    bundle: Path, files: Files, tmp_path: Path, change: dict[str, Any], says: str
):
    result = json.loads(files[RESULT]) | change
    forged = rebuilt(bundle, tmp_path / "forged.zip", {RESULT: json.dumps(result).encode()})
    report = verify(forged)
    differences = [str(difference) for each in report.results for difference in each.differences]
    assert any(says in text for text in (*report.problems, *differences))


def with_calls(files: Files, change: Callable[[list[dict[str, Any]]], object]) -> Changes:
    """Change the calls of the call log, and put its new hash and number of calls into the result."""
    path = next(each for each in files if each.startswith("call-logs/"))
    log, begin = files[path], len(MAGIC) + HEAD.size
    (length,) = HEAD.unpack_from(log, len(MAGIC))
    head = json.loads(zlib.decompress(log[begin : begin + length]))
    change(head["calls"])
    packed = zlib.compress(json.dumps(head).encode())
    changes = renamed(files, path, b"".join((MAGIC, HEAD.pack(len(packed)), packed, log[begin + length :])), RESULT)
    result = json.loads(changes[RESULT] or b"")
    result["calls"]["count"] = len(head["calls"])
    return changes | {RESULT: json.dumps(result).encode()}


def claims(calls: list[dict[str, Any]], words: str) -> list[dict[str, Any]]:
    return [call for call in calls if words in json.dumps(call["messages"]) and call["purpose"] == "verify"]


def flipped(call: dict[str, Any]) -> object:
    reply = json.loads(call["reply"])
    call["reply"] = json.dumps(reply | {"result": not reply["result"]})
    return call


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda calls: [flipped(call) for call in claims(calls, "closes at six")], "votes of leaf hours/closes"),
        (lambda calls: claims(calls, "lamp is green")[0].update(evidence=["0" * 64]), "a page in the call log"),
    ],
)
def test_reply_that_does_not_fit_is_named(
    bundle: Path, files: Files, tmp_path: Path, change: Callable[[Any], object], says: str
):
    assert says in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", with_calls(files, change)))


def test_added_file_is_named(bundle: Path, tmp_path: Path):
    sha256 = hashlib.sha256(b"{}").hexdigest()
    for path in ("captures/more.json", f"evidence/{sha256}.txt", "more/file", "results/more.json", "overrides/x.json"):
        assert verdict_on(rebuilt(bundle, tmp_path / "forged.zip", {path: b"{}"})).startswith(path)


def test_removed_file_is_a_difference_or_makes_the_report_incomplete(bundle: Path, files: Files, tmp_path: Path):
    for path in files.keys() - {RESULT}:
        removed = rebuilt(bundle, tmp_path / "removed.zip", {path: None})
        report = verify(removed)
        assert any(path in str(difference) for result in report.results for difference in result.differences)
        listed = rebuilt(bundle, tmp_path / "listed.zip", {path: None}, absent=[{"path": path, "reason": "lost"}])
        report = verify(listed)
        assert not report.is_complete
        assert f"{path}: lost" in report.results[0].not_compared


def test_manifest_that_contradicts_the_files_is_refused(bundle: Path, files: Files, tmp_path: Path):
    entry = {"result_id": Path(RESULT).stem, "task_id": "museum", "answer_name": "answer_1.md", "overrides": 0}
    for fields, says in (
        ({"results": []}, "does not belong to a result"),
        ({"results": [entry, entry]}, "twice"),
        ({"results": [entry | {"overrides": 1}]}, "overrides/"),
        ({"results": [entry | {"result_id": "../x"}]}, "invalid at results"),
        ({"absent": [{"path": RESULT, "reason": "lost"}]}, "as a file and as absent"),
        ({"content": False, "format": 2}, "format 2"),
    ):
        found = verdict_on(rebuilt(bundle, tmp_path / "forged.zip", {}, **fields))
        assert says in found, fields


def test_hostile_call_log_is_refused(bundle: Path, files: Files, tmp_path: Path):
    path = next(each for each in files if each.startswith("call-logs/"))
    packed = zlib.compress(b"[" * 1000 + b"]" * 1000)
    for data in (b"", b"no log", MAGIC, MAGIC + HEAD.pack(2**63), MAGIC + HEAD.pack(len(packed)) + packed):
        forged = rebuilt(bundle, tmp_path / "forged.zip", renamed(files, path, data, RESULT))
        assert "is not a call log" in verdict_on(forged)

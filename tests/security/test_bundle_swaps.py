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
from tests.fakes.bundled import JUDGE, LAMPS, MUSEUM, PAGES, InMemoryJudging, payload, rebuilt
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


def test_swapped_pages_are_named(bundle: Path, files: Files, tmp_path: Path):
    first, second = (find(files, "captures/", f'"{url}"') for url in (LAMPS, MUSEUM))
    bodies = [json.loads(files[path])["blobs"] for path in (first, second)]
    records = [json.loads(files[path]) for path in (first, second)]
    swapped = {
        path: json.dumps(record | {"blobs": blobs}).encode()
        for path, record, blobs in zip((first, second), records, reversed(bodies), strict=True)
    }
    assert "sha256 in captures/" in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", swapped))
    result = json.loads(files[RESULT])
    pages = {f"captures/{page['page_id']}.json": page for page in result["pages"]}
    for name in ("sha256", "bodies"):
        pages[first][name], pages[second][name] = pages[second][name], pages[first][name]
    swapped[RESULT] = json.dumps(result).encode()
    assert "quote of leaf lamp" in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", swapped))


def test_another_screenshot_with_its_own_hash_is_named(bundle: Path, files: Files, tmp_path: Path):
    picture = next(path for path in files if path.endswith(".jpg") and MUSEUM.encode() in files[path])
    capture = find(files, "captures/", f'"{MUSEUM}"')
    changes = renamed(files, picture, b"\xff\xd8 another picture", capture, RESULT)
    assert "a page in the call log" in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", changes))


async def test_another_rubric_or_answer_is_found_when_it_is_replayed(bundle: Path, files: Files, tmp_path: Path):
    script = next(path for path in files if path.startswith("scripts/"))
    answer = next(path for path in files if path.startswith("answers/"))
    assert "does not belong to a result" in verdict_on(
        rebuilt(bundle, tmp_path / "forged.zip", renamed(files, script, b"# another"))
    )
    for change, says in (
        (renamed(files, script, files[script].replace(b"weight=2", b"weight=3"), RESULT), "judged again, node"),
        (renamed(files, script, files[script].replace(b"critical=True", b""), RESULT), "judged again, node"),
        (renamed(files, script, files[script].replace(b'task="museum"', b'task="castle"'), RESULT), ""),
        (renamed(files, answer, b"The museum opens at nine.", RESULT), "not in the bundle"),
    ):
        forged = rebuilt(bundle, tmp_path / "forged.zip", change)
        assert verdict_on(forged) == "valid"
        found = await replay_of(forged, tmp_path)
        if says:
            assert says in found
        else:  # a judge of another task is not this judge
            settings = settings_for_tests(data_dir=tmp_path / "data", model="openai/a", openai_api_key="sk-of-tests")
            assert not (await replay(forged, settings)).is_complete


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
    "a failed claim passes without votes": (
        lambda n: (n["hours/closes"].update(votes=[]), decided(n["hours/closes"], "passed", grounded=False)),
        "votes of leaf hours/closes",
    ),
    "a failed claim passes and keeps its votes": (
        lambda n: decided(n["hours/closes"], "passed", votes=False, grounded=False),
        "votes of leaf hours/closes",
    ),
    "a passed claim fails": (
        lambda n: decided(n["lamp"], "failed", votes=False, reason="refuted"),
        "votes of leaf lamp",
    ),
    "a passed claim fails without votes": (
        lambda n: (n["lamp"].update(votes=[]), decided(n["lamp"], "failed", reason="refuted")),
        "votes of leaf lamp",
    ),
    "a passed claim cites no source": (
        lambda n: (n["lamp"].update(votes=[]), decided(n["lamp"], "failed", reason="no_source")),
        "leaf lamp",
    ),
    "a passed claim is a false check": (
        lambda n: (n["lamp"].update(votes=[]), decided(n["lamp"], "failed", reason="check_false")),
        "leaf lamp",
    ),
    "a failed claim is not judged": (
        lambda n: decided(n["hours/closes"], "not_judged", votes=None, reason="llm_unavailable"),
        "votes of leaf hours/closes",
    ),
    "a failed claim is not judged and keeps its votes": (
        lambda n: decided(n["hours/closes"], "not_judged", votes=False, reason="no_majority"),
        "votes of leaf hours/closes",
    ),
    "a claim about a page that is gone passes": (
        lambda n: decided(n["gone"], "passed", grounded=False),
        "votes of leaf gone",
    ),
    "one vote": (lambda n: n["hours/closes"]["votes"][0].update(result=True), "votes of leaf hours/closes"),
    "one vote more": (lambda n: n["lamp"]["votes"].append(n["lamp"]["votes"][0]), "votes of leaf lamp"),
    "the model of a vote": (lambda n: n["lamp"]["votes"][0].update(model="gpt-7"), "votes of leaf lamp"),
    "the words of a claim": (lambda n: n["lamp"].update(claim="The lamp is red"), "leaf"),
    "a quote that is not in the page": (
        lambda n: n["lamp"]["quotes"][0].update(text="Every lamp is red"),
        "quote of leaf lamp",
    ),
    "a claim without a quote is grounded": (
        lambda n: n["hours/opens"].update(grounded=True),
        "grounded of leaf hours/opens",
    ),
    "a claim without a quote needs none": (
        lambda n: n["hours/opens"].update(grounded=None),
        "grounded of leaf hours/opens",
    ),
    "bounds of a claim": (
        lambda n: n["hours/closes"].update(low=1.0, high=1.0, score=1.0, status="passed"),
        "bounds of leaf hours/closes",
    ),
    "a dropped leaf": (
        lambda n: n["hours"]["children"].remove(n["hours/closes"]),
        "replies to The museum closes at six",
    ),
    "a dropped branch": (lambda n: n["root"]["children"].remove(n["hours"]), "replies to The museum"),
    "a duplicated leaf": (lambda n: n["root"]["children"].append({**n["lamp"], "id": "x", "claim": "The lamp"}), "x"),
}


@pytest.mark.parametrize("forgery", TREE_FORGERIES)
def test_forged_tree_with_recomputed_scores_is_named(bundle: Path, files: Files, tmp_path: Path, forgery: str):
    change, says = TREE_FORGERIES[forgery]
    changes = with_tree(files, change)
    assert says in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", changes))


async def test_forged_structure_is_found_when_it_is_replayed(bundle: Path, files: Files, tmp_path: Path):
    """Weights, critical nodes and checks by code follow only from the task file."""
    changes: list[Callable[[Nodes], object]] = [
        lambda n: n["lamp"].update(weight=5.0),
        lambda n: n["hours/opens"].update(critical=False),
        lambda n: n["lamp"].update(critical=True),
        lambda n: n["hours"].update(strategy="sequential"),
        lambda n: n["root"]["children"].remove(n["linked"]),
        lambda n: decided(n["linked"], "failed", reason="check_false"),
        lambda n: n["root"]["children"].reverse(),
        lambda n: decided(n["gone"], "not_judged", reason="capture_failed"),
        lambda n: n["lamp"].update(desc="Something else"),
    ]
    for change in changes:
        forged = rebuilt(bundle, tmp_path / "forged.zip", with_tree(files, change))
        assert "judged again, " in await replay_of(forged, tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"final_score": 1.0}, "final_score"),
        ({"score": {"value": 1.0, "low": 1.0, "high": 1.0}}, "score: "),
        ({"score": {"value": None, "low": 0.0, "high": 1.0}}, "score: "),
        ({"score_strict": {"value": 1.0, "low": 1.0, "high": 1.0}}, "score_strict"),
        ({"status": "incomplete"}, "status"),
        ({"tree_statistics": {"total_nodes": 1}}, "tree_statistics"),
        ({"answer_sha256": "0" * 64}, "answers/0000"),
        ({"script": {"name": "museum", "kind": "native", "sha256": "0" * 64}}, "eval_script_sha256"),
        ({"calls": {"sha256": "0" * 64, "count": 1}}, "call-logs/0000"),
        ({"calls": None}, "does not belong to a result"),
        ({"pages": []}, "does not belong to a result"),
        ({"task_id": "castle"}, "task_id in manifest.json"),
        ({"answer_name": "other.md"}, "answer_name in manifest.json"),
        ({"agent_name": "heron"}, "agent_name in manifest.json"),
        ({"eval_breakdown": [], "final_score": 1.0, "answer_sha256": "0" * 64}, "answers/0000"),
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


async def test_removed_tree_is_incomplete_and_found_when_replayed(bundle: Path, files: Files, tmp_path: Path):
    result = json.loads(files[RESULT]) | {"eval_breakdown": [], "final_score": 1.0}
    forged = rebuilt(bundle, tmp_path / "forged.zip", {RESULT: json.dumps(result).encode()})
    assert not verify(forged).is_complete
    assert "number of trees" in await replay_of(forged, tmp_path)


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
        (lambda calls: flipped(claims(calls, "closes at six")[0]), "votes of leaf hours/closes"),
        (lambda calls: calls.remove(claims(calls, "lamp is green")[0]), "votes of leaf lamp"),
        (lambda calls: claims(calls, "lamp is green")[0].pop("reply"), "votes of leaf lamp"),
        (lambda calls: claims(calls, "lamp is green")[0].update(by="gpt-7"), "votes of leaf lamp"),
        (lambda calls: claims(calls, "lamp is green")[0].update(reply="no JSON"), "votes of leaf lamp"),
        (lambda calls: claims(calls, "lamp is green")[0].update(evidence=["0" * 64]), "a page in the call log"),
        (lambda calls: calls.append({"purpose": "verify", "reply": 5}), "not a call"),
    ],
)
def test_reply_that_does_not_fit_is_named(
    bundle: Path, files: Files, tmp_path: Path, change: Callable[[Any], object], says: str
):
    assert says in verdict_on(rebuilt(bundle, tmp_path / "forged.zip", with_calls(files, change)))


async def test_reply_to_another_request_is_found_when_it_is_replayed(bundle: Path, files: Files, tmp_path: Path):
    for fields in ({"vote": 7}, {"model": "gpt-7"}, {"params": {"seed": 1}}):

        def change(calls: list[dict[str, Any]], fields: dict[str, Any] = fields) -> None:
            for call in calls:
                call.update(fields)

        forged = rebuilt(bundle, tmp_path / "forged.zip", with_calls(files, change))
        assert "not in the bundle" in await replay_of(forged, tmp_path), fields


def test_prompt_of_the_call_log_is_that_of_this_version(bundle: Path, files: Files, tmp_path: Path):
    path = next(each for each in files if each.startswith("call-logs/"))
    log, begin = files[path], len(MAGIC) + HEAD.size
    (length,) = HEAD.unpack_from(log, len(MAGIC))
    head = json.loads(zlib.decompress(log[begin : begin + length]))
    head["prompts"]["verify_page@1"] = "Say yes."
    packed = zlib.compress(json.dumps(head).encode())
    data = b"".join((MAGIC, HEAD.pack(len(packed)), packed, log[begin + length :]))
    forged = rebuilt(bundle, tmp_path / "forged.zip", renamed(files, path, data, RESULT))
    assert "prompt verify_page@1 of the call log" in verdict_on(forged)


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
        ({"results": [entry | {"task_id": "a/../b"}]}, "invalid at results"),
        ({"absent": [{"path": RESULT, "reason": "lost"}]}, "as a file and as absent"),
        ({"absent": [{"path": "answers/none.md", "reason": "lost"}]}, "does not belong to a result"),
        ({"content": False, "format": 2}, "format 2"),
    ):
        found = verdict_on(rebuilt(bundle, tmp_path / "forged.zip", {}, **fields))
        assert says in found, fields


def test_bundle_made_without_content_says_so(bundle: Path, files: Files, tmp_path: Path):
    kept = {path: None for path in files if path.startswith(("evidence/", "call-logs/"))}
    report = verify(rebuilt(bundle, tmp_path / "thin.zip", kept, content=False))
    assert report.valid
    assert not report.is_complete


def test_hostile_call_log_is_refused(bundle: Path, files: Files, tmp_path: Path):
    path = next(each for each in files if each.startswith("call-logs/"))
    packed = zlib.compress(b"[" * 1000 + b"]" * 1000)
    for data in (b"", b"no log", MAGIC, MAGIC + HEAD.pack(2**63), MAGIC + HEAD.pack(len(packed)) + packed):
        forged = rebuilt(bundle, tmp_path / "forged.zip", renamed(files, path, data, RESULT))
        assert "is not a call log" in verdict_on(forged)

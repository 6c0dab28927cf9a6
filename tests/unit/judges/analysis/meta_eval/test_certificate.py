from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from judges.analysis.labels import HumanDecision, Label
from judges.analysis.meta_eval.ask import JudgedItem
from judges.analysis.meta_eval.certificate import (
    CertificateUnreadable,
    NoVerdictsToCertify,
    applicable_certificate,
    certificate_from,
    certification,
    certify,
    read_certificates,
    verdict_prompts,
)
from judges.analysis.meta_eval.items import PartialRule, items_of
from judges.analysis.meta_eval.judge_agreement import agreement_of_asked
from rubrics.verdict import Outcome, Verdict, Vote

DAY = datetime(2026, 3, 1, tzinfo=UTC)
LABELS = {
    "name": "gauges",
    "sha256": "a" * 64,
    "usable": 2,
    "reviewers": ["Ada"],
    "languages": {"en": 95, "de": 4},
    "page_kinds": {"web": 50, "pdf": 5},
}


def certificate(*, model="openai/x", prompts=("verify_answer@1", "verify_page@1"), at=DAY, sets=(LABELS,)):
    items = items_of(Label(human=HumanDecision.PASSED, claim=prompt) for prompt in prompts)
    asked = [
        JudgedItem(
            item=item, verdict=Verdict(outcome=Outcome.PASSED, votes=(Vote(result=True, model="x"),), prompt=prompt)
        )
        for item, prompt in zip(items, prompts, strict=True)
    ]
    measured = [(labels, agreement_of_asked(model, asked, votes=3)) for labels in sets]
    return certify(measured, rule=PartialRule.FAILED, at=at, tool_version="0.1.0")


def test_certificate_names_model_prompts_labels_figures_and_time() -> None:
    document = certificate().document
    assert document["model"] == "openai/x"
    assert document["prompts"] == ["verify_answer@1", "verify_page@1"]
    assert (document["labels"]["sha256"], document["n"], document["votes"]) == ("a" * 64, 2, 3)
    assert document["issued_at"] == "2026-03-01T00:00:00+00:00"
    assert document["figures"]["raw"]["value"] == 1.0
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_certificate_over_several_sets_names_each_and_pools_the_counts() -> None:
    document = certificate(
        sets=(LABELS, LABELS | {"name": "prices", "sha256": "b" * 64, "reviewers": ["Bob"]})
    ).document
    assert [(one["name"], one["sha256"][0], one["n"]) for one in document["sets"]] == [
        ("gauges", "a", 2),
        ("prices", "b", 2),
    ]
    assert (document["n"], document["labels"]["items"], document["labels"]["reviewers"]) == (4, 4, 2)
    assert document["labels"]["sha256"] not in ("a" * 64, "b" * 64)
    assert document["rule"] == "partial=failed"


def test_certificate_covers_only_languages_and_pages_with_enough_labels() -> None:
    document = certificate().document
    assert (document["languages"], document["page_kinds"]) == (["en"], ["pdf", "web"])


@pytest.mark.parametrize(
    ("language", "kinds", "status", "not_covered"),
    [
        ("en", ["web"], "covered", []),
        (None, ["web", "pdf"], "covered", []),
        ("de", ["web"], "partly_covered", ["language de"]),
        ("zh", ["image", "web"], "partly_covered", ["language zh", "image pages"]),
    ],
)
def test_result_says_what_the_certificate_does_not_cover(language, kinds, status, not_covered) -> None:
    issued = certificate()
    found = certification(issued.document, model="openai/x", language=language, page_kinds=kinds)
    assert (found["status"], found["not_covered"], found["certificate"]) == (status, not_covered, issued.id)
    assert all(missing in found["note"] for missing in not_covered)


def test_result_says_that_there_is_no_certificate() -> None:
    found = certification(None, model="openai/x", language="en", page_kinds=["web"])
    assert (found["status"], found["certificate"]) == ("none", None)
    assert "openai/x" in found["note"]


def test_certificate_of_an_older_version_covers_no_language() -> None:
    older = {name: value for name, value in certificate().document.items() if name not in ("languages", "page_kinds")}
    found = certification(older, model="openai/x", language="en", page_kinds=["web"])
    assert found["not_covered"] == ["language en", "web pages"]


def test_modified_certificate_is_rejected() -> None:
    document = json.loads(json.dumps(certificate().document))
    assert certificate_from(document).id == certificate().id
    document["figures"]["raw"]["value"] = 0.99
    with pytest.raises(CertificateUnreadable, match="changed"):
        certificate_from(document)
    with pytest.raises(CertificateUnreadable, match="not a certificate"):
        certificate_from({"id": "crt_1"})
    with pytest.raises(CertificateUnreadable):
        certificate_from([1])


def test_judge_without_verdicts_gets_no_certificate() -> None:
    with pytest.raises(NoVerdictsToCertify):
        certificate(prompts=())


def test_newest_certificate_of_the_model_that_covers_every_prompt_applies() -> None:
    old, new = certificate(at=DAY), certificate(at=DAY + timedelta(days=1))
    moved = certificate(prompts=("verify_page@2",), at=DAY + timedelta(days=2))
    other = certificate(model="openai/y", at=DAY + timedelta(days=3))
    every = [new, old, moved, other]

    assert applicable_certificate(every, model="openai/x", prompts=["verify_page@1"]) is new
    assert applicable_certificate(every, model="openai/x", prompts=["verify_page@2"]) is moved
    assert applicable_certificate(every, model="openai/x", prompts=["verify_page@1", "verify_page@2"]) is None
    assert applicable_certificate(every, model="openai/z", prompts=["verify_page@1"]) is None
    assert applicable_certificate(every, model="openai/x", prompts=[]) is None


def test_prompts_of_a_result_are_those_of_its_leaves() -> None:
    leaves = [{"id": "a", "prompt": "verify_page@1"}, {"id": "b", "prompt": None}]
    tree = {"id": "root", "children": [{"id": "g", "children": leaves}]}
    assert verdict_prompts({"eval_breakdown": [{"verification_tree": tree}], "prompts": ["extract_answer@1"]}) == (
        "verify_page@1",
    )
    assert verdict_prompts({}) == ()


def test_folder_of_certificates_is_read_and_invalid_files_are_reported(tmp_path) -> None:
    (tmp_path / "good.json").write_text(json.dumps(dict(certificate().document)))
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "note.txt").write_text("hello")
    found, problems = read_certificates(tmp_path)
    assert [one.id for one in found] == [certificate().id]
    assert len(problems) == 1 and "bad.json" in problems[0]
    assert read_certificates(tmp_path / "nowhere") == ([], [])

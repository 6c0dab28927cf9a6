from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers.errors import InvalidSubmission, ProblemCode
from answers.submission import (
    MAX_ANSWER_BYTES,
    MAX_METADATA_BYTES,
    MAX_UNIQUE_URLS,
    NAME_PATTERN,
    Answer,
    Submission,
    checked_submission,
    decode_text,
    with_suffix,
)


def make(**changes: Any) -> Submission:
    fields: dict[str, Any] = {"agent": "demo", "task_id": "lineage", "answers": [("answer_1", "Some text.")]}
    return checked_submission(**{**fields, **changes})


def problems_of(**changes: Any) -> list[tuple[str, ProblemCode]]:
    with pytest.raises(InvalidSubmission) as caught:
        make(**changes)
    assert all(problem.message for problem in caught.value.problems)
    return [(problem.path, problem.code) for problem in caught.value.problems]


def test_valid_submission_is_unchanged() -> None:
    made = make(model="openai/gpt-6-luna", run="2024-05", metadata={"seed": [1, None, {"é": 0.5}]})
    assert made == Submission(
        agent="demo",
        task_id="lineage",
        answers=(Answer(name="answer_1.md", text="Some text."),),
        model="openai/gpt-6-luna",
        run="2024-05",
        metadata={"seed": [1, None, {"é": 0.5}]},
    )


def test_answer_name_gets_the_suffix_md() -> None:
    assert make(answers=[("answer_1", "text")]).answers[0].name == "answer_1.md"
    assert with_suffix("answer_1.md") == "answer_1.md"


BAD_NAMES = ["", "A" * 101, ".a", "../a", "a/b", "a b", "a\0", "é"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_invalid_name_is_rejected_with_its_field(name: str) -> None:
    assert problems_of(agent=name) == [("agent", ProblemCode.BAD_NAME)]
    assert problems_of(task_id=name) == [("task_id", ProblemCode.BAD_NAME)]
    assert problems_of(run=name) == [("run", ProblemCode.BAD_NAME)]
    assert problems_of(answers=[("a", "text"), (name, "text")]) == [("answers.1.name", ProblemCode.BAD_NAME)]


@given(st.one_of(st.text(max_size=12), st.text(alphabet="./\\%2e\0aé", max_size=8)))
def test_accepted_name_is_one_safe_path_component(name: str) -> None:
    try:
        make(agent=name)
    except InvalidSubmission:
        assert not NAME_PATTERN.fullmatch(name) or ".." in name
    else:
        assert name.isascii()
        assert not set(name) & set("/\\\0%")
        assert ".." not in name


def test_duplicate_answer_name_is_rejected_with_or_without_suffix() -> None:
    assert problems_of(answers=[("a", "x"), ("b", "x"), ("a.md", "y")]) == [("answers.2.name", ProblemCode.DUPLICATE)]


def test_submission_without_answers_is_rejected() -> None:
    assert problems_of(answers=[]) == [("answers", ProblemCode.EMPTY)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (" \n\t", ProblemCode.EMPTY),
        ("a\0b", ProblemCode.NOT_TEXT),
        ("half \ud83d a pair", ProblemCode.NOT_TEXT),
        ("a" * (MAX_ANSWER_BYTES + 1), ProblemCode.TOO_LARGE),
        ("".join(f"https://a.example/{n} " for n in range(MAX_UNIQUE_URLS + 1)), ProblemCode.TOO_MANY),
    ],
    ids=["blank", "nul", "surrogate", "bytes", "urls"],
)
def test_invalid_text_is_rejected_with_its_field(text: str, code: ProblemCode) -> None:
    assert problems_of(answers=[("a", "text"), ("b", text)]) == [("answers.1.text", code)]


@pytest.mark.parametrize("model", [" ", "a\0", "m" * 201])
def test_invalid_model_label_is_rejected(model: str) -> None:
    assert problems_of(model=model) == [("model", ProblemCode.BAD_NAME)]


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({"a": float("nan")}, ProblemCode.NOT_JSON),
        (nested(100_000), ProblemCode.NOT_JSON),
        ({"a": ["\0"]}, ProblemCode.NOT_TEXT),
        ({"a": "\ud83d"}, ProblemCode.NOT_TEXT),
        ({"a": "x" * MAX_METADATA_BYTES}, ProblemCode.TOO_LARGE),
    ],
    ids=["nan", "depth", "nul", "surrogate", "bytes"],
)
def test_metadata_that_the_database_cannot_store_is_rejected(metadata: dict[str, Any], code: ProblemCode) -> None:
    assert problems_of(metadata=metadata) == [("metadata", code)]


def test_metadata_with_a_literal_escape_sequence_is_accepted() -> None:
    assert make(metadata={"a": "\\u0000"}).metadata == {"a": "\\u0000"}


def test_bytes_that_are_not_utf8_are_rejected_with_their_position() -> None:
    assert decode_text("é".encode(), "text") == "é"
    with pytest.raises(InvalidSubmission) as caught:
        decode_text(b"abc\xff", "demo/t/a.md")
    [problem] = caught.value.problems
    assert (problem.path, problem.code) == ("demo/t/a.md", ProblemCode.NOT_TEXT)
    assert "byte 3" in problem.message

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.yaml_tasks.document import InvalidTask, read_document


def problem(text: str | bytes) -> str:
    with pytest.raises(InvalidTask) as caught:
        read_document(text, "t.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x 1\nb: *x\n", "t.yaml:1:4: anchors (`&x`) are not allowed"),
        ("a: !!python/object/apply:os.system [id]\n", "t.yaml:1:4: tags (`tag:yaml.org,2002:python/object/apply:os."),
        ("a: {b: 1, <<: {c: 2}}\n", "t.yaml:1:11: merge keys"),
        ("a: 1\nb: 2\na: 3\n", "t.yaml:3:1: 'a' is already defined in line 1"),
        ("a: 1\n---\nb: 2\n", "t.yaml:2:1: only one document per file"),
        ("a: [1, 2\nb: 3\n", "t.yaml:2:2: not YAML"),
        ("a: \x00\n", "t.yaml:1:4: not YAML: the character U+0000 is not allowed; remove it"),
        ("? [a, b]\n: 1\n", "t.yaml:1:3: a key must be text"),
        ("", "t.yaml:1:1: the file is empty"),
        (b"a: 1\nb: \xff\n", "t.yaml:2:1: not UTF-8"),
        ("a: " + "[" * 60 + "]" * 60, "nested more than 40 levels deep"),
        pytest.param("- 1\n" * 100_001, "more than 100000 values", marks=pytest.mark.slow),
        ("#" * 1_000_001, "t.yaml:1:1: the file has 1000001 bytes (max 1000000)"),
    ],
)
def test_what_a_task_file_must_not_contain_is_an_error_with_its_place(text: str | bytes, message: str) -> None:
    assert message in problem(text)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("12:30", "12:30"),
        ("2025-08-16", "2025-08-16"),
        ("'1931'", "1931"),
        ("-1.5e3", -1500.0),
        ("~", None),
    ],
)
def test_scalars_follow_the_core_schema(written: str, value: object) -> None:
    assert read_document(f"a: {written}\n", "t.yaml").value == {"a": value}


@pytest.mark.parametrize(
    ("text", "offset", "place"),
    [
        ("a: xyz\n", 1, (1, 5)),
        ("a: 'xyz'\n", 1, (1, 6)),
        ('a: "x\\tyz"\n', 3, (1, 5)),
    ],
)
def test_problem_is_located_at_the_character_if_it_is_known(text: str, offset: int | None, place: tuple) -> None:
    read = read_document(text, "t.yaml")

    problem = read.problem(("a",), "wrong", offset=offset)

    assert (problem.line, problem.column) == place


def test_lines_of_a_block_end_before_the_next_key() -> None:
    read = read_document("a:\n  b: 1\n  c: |\n    x\n    y\nd: 2\n", "t.yaml")

    assert (read.lines(("a",)), read.lines(("a", "c")), read.lines(("d",))) == ((1, 5), (3, 5), (6, 6))


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_no_text_raises_another_error(text: str | bytes) -> None:
    try:
        read_document(text, "t.yaml")
    except InvalidTask as error:
        assert all(each.line >= 1 and each.column >= 1 for each in error.problems)

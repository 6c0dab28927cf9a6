"""Answers, metadata, task lists and the validation of a submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from mind2web2.submission import (
    AnswerFile,
    MetadataError,
    SubmissionIssue,
    TaskInfo,
    list_answer_files,
    load_metadata,
    load_task_list,
    validate_submission,
)

CITED = "The ferry leaves at 8:40, see https://ferry.example/times."


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    return tmp_path / "answers" / "me"


def write(path: Path, content: str | bytes = CITED) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def shown(issues: list[SubmissionIssue]) -> list[tuple[str, str]]:
    return [(issue.level, issue.path) for issue in issues]


def test_only_numbered_answers_are_listed_by_run(agent: Path):
    for name in ("answer_10.md", "answer_2.md", "answer_02.md", "answer_0.md", "answer_1.txt", "Answer_3.md",
                 "notes.md", "answer_4.MD", "answer_-1.md", "answer_٣.md", "answer_1.md.bak"):  # fmt: skip
        write(agent / "t" / name)
    (agent / "t" / "answer_5.md").mkdir()
    found = list_answer_files(agent / "t")
    assert [(answer.task_id, answer.run, answer.name) for answer in found] == [
        ("t", 2, "answer_2.md"), ("t", 10, "answer_10.md"),
    ]  # fmt: skip
    assert found[0].meta_path == agent / "t" / "answer_2.meta.json"
    assert list_answer_files(agent / "other") == []


def test_link_to_a_file_outside_the_agent_folder_is_not_an_answer(agent: Path, tmp_path: Path):
    secret = write(tmp_path / "secret.txt")
    write(agent / "t" / "answer_2.md")
    (agent / "t" / "answer_1.md").symlink_to(secret)
    (agent / "t" / "answer_3.md").symlink_to("answer_2.md")
    assert [answer.run for answer in list_answer_files(agent / "t")] == [2, 3]
    [issue] = validate_submission(agent, num_runs=3)[1:]
    assert (issue.path, "replace it with a copy" in issue.message) == ("t/answer_1.md", True)


@pytest.mark.parametrize(
    "content",
    ["", "[]", b"\xff{}", '{"time_seconds": -1}', '{"time_seconds": true}', '{"time_seconds": NaN}', "[" * 100_000],
)  # fmt: skip
def test_invalid_metadata_names_the_file_and_the_reason(content: str | bytes, agent: Path):
    answer = AnswerFile("t", 1, agent / "t" / "answer_1.md")
    write(answer.meta_path, content)
    with pytest.raises(MetadataError) as caught:
        load_metadata(answer)
    assert isinstance(caught.value, ValueError)
    assert caught.value.path == answer.meta_path
    assert caught.value.reason
    assert str(caught.value) == f"{answer.meta_path}: {caught.value.reason}"


def test_csv_task_list_has_domains_and_drops_repeats(tmp_path: Path):
    path = write(
        tmp_path / "tasks.csv",
        "\ufeffsubdomain,task_id,domain,note\r\nHotels, b ,Travel,x\r\n , a ,,\r\nOther,b,Other,y\n,,,\n\n,c\u2028\n"
        'x,"d","Life\nand work"',
    )
    assert load_task_list(path) == [
        TaskInfo("b", "Travel", "Hotels"), TaskInfo("a"), TaskInfo("c"), TaskInfo("d", "Life\nand work", "x"),
    ]  # fmt: skip


@pytest.mark.parametrize("content", ["id,domain\na,b\n", 'task_id\n"a\n', b"task_id\n\xff\n", "task_id\n../../etc\n"])
def test_broken_csv_names_the_file(content: str | bytes, tmp_path: Path):
    path = write(tmp_path / "tasks.csv", content)
    with pytest.raises(ValueError, match=r"tasks\.csv: "):
        load_task_list(path)


def test_all_errors_and_warnings_are_reported(agent: Path):
    write(agent / "a" / "answer_1.md", b"\xff https://a.com")
    write(agent / "a" / "answer_2.md", " \n")
    write(agent / "a" / "answer_2.meta.json", "[]")
    write(agent / "a" / "answer_3.md", "no source")
    write(agent / "a" / "answer_4.meta.json", "{}")
    write(agent / "a" / "draft.md")
    write(agent / "b" / "answer_1.md")
    write(agent / "c" / "answer_1.md", b"\xff")
    write(agent / "readme.txt")
    assert shown(validate_submission(agent, ["a", "b", "d"], 2)) == [
        ("warning", "readme.txt"),
        ("error", "a/answer_1.md"),
        ("warning", "a/answer_2.md"),
        ("error", "a/answer_2.meta.json"),
        ("warning", "a/answer_3.md"),  # no URL
        ("warning", "a/answer_3.md"),  # above the number of runs
        ("warning", "a/answer_4.meta.json"),
        ("warning", "a/draft.md"),
        ("warning", "b"),  # lacks run 2
        ("warning", "c"),  # not listed
        ("warning", "d"),  # no folder
    ]

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from answers.errors import AnswersNotFound, InvalidSubmission, ProblemCode
from answers.public_layout import ignored_files, read_archive, read_folder
from answers.submission import Submission


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def zipped(files: Mapping[str, str | bytes]) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made


def listing(submissions: tuple[Submission, ...]) -> list[tuple[str, str, list[str]]]:
    return [
        (submission.agent, submission.task_id, [answer.name for answer in submission.answers])
        for submission in submissions
    ]


LAYOUT: dict[str, str | bytes] = {
    "demo/t2/answer_1.md": "two",
    "demo/t1/answer_10.md": "ten",
    "demo/t1/answer_2.md": "zwei é",
    "other/t1/answer_1.md": "other",
}


def test_folder_gives_one_submission_per_task_in_natural_order(tmp_path: Path) -> None:
    found = read_folder(write(tmp_path, LAYOUT), "demo")
    assert listing(found) == [("demo", "t1", ["answer_2.md", "answer_10.md"]), ("demo", "t2", ["answer_1.md"])]
    assert found[0].answers[0].text == "zwei é"


def test_other_files_are_not_answers_and_are_listed_unless_they_are_hidden_or_metadata(tmp_path: Path) -> None:
    extra: dict[str, str | bytes] = {"demo/t1/notes.txt": "x", "demo/t1/.draft.md": "x", "demo/.git/answer_1.md": "x"}
    extra |= {"demo/t1/answer_01.md": "x", "demo/t1/final.md": "x", "demo/t1/answer_2.meta.json": "{}"}
    write(tmp_path, {**LAYOUT, **extra, "demo/readme.md": "x", "demo/answer_1.md": "x", "demo/t3/notes.txt": "x"})
    assert listing(read_folder(tmp_path, "demo")) == listing(read_folder(write(tmp_path / "plain", LAYOUT), "demo"))
    ignored = [path.relative_to(tmp_path).as_posix() for path in ignored_files(tmp_path, "demo")]
    assert ignored == [
        "demo/answer_1.md",
        "demo/t1/answer_01.md",
        "demo/t1/final.md",
        "demo/t1/notes.txt",
        "demo/t3/notes.txt",
    ]
    assert ignored_files(tmp_path, "demo", ["t2"]) == []


@pytest.mark.parametrize(
    ("agent", "tasks"),
    [("nobody", []), ("demo", ["t9"]), ("bare", [])],
)
def test_missing_answers_are_reported_by_name(tmp_path: Path, agent: str, tasks: list[str]) -> None:
    write(tmp_path, {**LAYOUT, "demo/empty/notes.txt": "x", "bare/t1/notes.txt": "x"})
    with pytest.raises(AnswersNotFound, match=tasks[-1] if tasks else agent):
        read_folder(tmp_path, agent, tasks)


def test_names_that_lead_out_of_the_folder_are_rejected(tmp_path: Path) -> None:
    root = write(tmp_path / "root", LAYOUT)
    write(tmp_path / "secret", {"t1/answer_1.md": "secret"})
    with pytest.raises(InvalidSubmission):
        read_folder(root, "../secret")
    with pytest.raises(InvalidSubmission):
        read_folder(root, "demo", ["../../secret/t1"])


def test_symlink_within_the_folder_is_followed_and_one_out_of_it_is_rejected(tmp_path: Path) -> None:
    root = write(tmp_path / "root", LAYOUT)
    (root / "demo/t2/answer_2.md").symlink_to(root / "other/t1/answer_1.md")
    assert read_folder(root, "demo", ["t2"])[0].answers[1].text == "other"
    (root / "demo/t1/answer_1.md").symlink_to(write(tmp_path, {"secret.txt": "secret"}) / "secret.txt")
    with pytest.raises(InvalidSubmission) as caught:
        read_folder(root, "demo")
    assert caught.value.problems[0].path == "demo/t1/answer_1.md"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\xff", ProblemCode.NOT_TEXT),
        (b" ", ProblemCode.EMPTY),
    ],
)
def test_every_invalid_file_is_reported_for_folder_and_archive(
    tmp_path: Path, content: bytes, code: ProblemCode
) -> None:
    files = {**LAYOUT, "demo/t1/answer_7.md": content, "demo/t4/answer_7.md": content}
    for read in (lambda: read_folder(write(tmp_path, files), "demo"), lambda: read_archive(zipped(files))):
        with pytest.raises(InvalidSubmission) as caught:
            read()
        expected = [("demo/t1/answer_7.md", code), ("demo/t4/answer_7.md", code)]
        assert [(problem.path, problem.code) for problem in caught.value.problems] == expected


def test_archive_gives_one_submission_per_agent_and_task() -> None:
    assert listing(read_archive(zipped(LAYOUT))) == [
        ("demo", "t1", ["answer_2.md", "answer_10.md"]),
        ("demo", "t2", ["answer_1.md"]),
        ("other", "t1", ["answer_1.md"]),
    ]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("answer_1.md", ProblemCode.BAD_ARCHIVE),
        ("answers/demo/t1/answer_1.md", ProblemCode.BAD_ARCHIVE),
        ("demo/t1/notes.md", ProblemCode.BAD_ARCHIVE),
        ("demo/T1/answer_2.md", ProblemCode.DUPLICATE),
    ],
)
def test_member_at_an_invalid_or_duplicate_path_is_rejected(name: str, code: ProblemCode) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        read_archive(zipped({**LAYOUT, name: "x"}))
    assert [(problem.path, problem.code) for problem in caught.value.problems] == [(name, code)]


@pytest.mark.parametrize("name", ["-demo/t1/answer_1.md", "é/t1/answer_1.md"])
def test_member_with_an_invalid_name_is_rejected(name: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        read_archive(zipped({name: "x"}))
    assert {problem.code for problem in caught.value.problems} == {ProblemCode.BAD_NAME}

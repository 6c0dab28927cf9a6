from __future__ import annotations

from pathlib import Path

import pytest

from app.features.suites.data_folders import DataFolders, PathNotAllowed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path in ("allowed/inner/rows.parquet", "also/more.jsonl", "outside/secret.jsonl"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    return tmp_path


@pytest.fixture
def folders(root: Path) -> DataFolders:
    return DataFolders((root / "allowed", root / "also"))


def test_path_is_absolute_or_relative_to_an_allowed_folder(folders: DataFolders, root: Path):
    found = root / "allowed/inner/rows.parquet"
    assert folders.resolve_allowed("inner/rows.parquet") == found
    assert folders.resolve_allowed(str(found)) == found
    assert folders.resolve_allowed("more.jsonl") == root / "also/more.jsonl"
    assert folders.resolve_allowed("inner") == root / "allowed/inner"
    assert folders.resolve_allowed("inner/../inner/rows.parquet") == found


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.jsonl",
        "inner/../../outside/secret.jsonl",
        "a\0b",
        "x" * 5000,
        "/etc",
    ],
)
def test_other_paths_are_rejected(path: str, folders: DataFolders):
    with pytest.raises(PathNotAllowed):
        folders.resolve_allowed(path)


def test_missing_path_and_outside_path_give_the_same_error(folders: DataFolders, root: Path):
    messages = []
    for path in (root / "outside/secret.jsonl", root / "outside/nothing.jsonl"):
        with pytest.raises(PathNotAllowed) as error:
            folders.resolve_allowed(str(path))
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_symlinks_are_resolved_before_the_check(folders: DataFolders, root: Path):
    (root / "allowed/out.jsonl").symlink_to(root / "outside/secret.jsonl")
    (root / "allowed/round").symlink_to(root / "allowed/round")
    (root / "allowed/in.jsonl").symlink_to(root / "also/more.jsonl")
    for path in ("out.jsonl", "round"):
        with pytest.raises(PathNotAllowed):
            folders.resolve_allowed(path)
    assert folders.resolve_allowed("in.jsonl") == root / "also/more.jsonl"


def test_folder_with_a_symlink_that_leads_out_is_rejected(folders: DataFolders, root: Path):
    (root / "allowed/inner/out.jsonl").symlink_to(root / "outside/secret.jsonl")
    for path in ("inner", ".", str(root / "allowed")):
        with pytest.raises(PathNotAllowed, match=r"out\.jsonl"):
            folders.resolve_allowed(path)


def test_nothing_is_allowed_without_folders(root: Path):
    with pytest.raises(PathNotAllowed, match="ASSAY_SUITE_DATA"):
        DataFolders(()).resolve_allowed(str(root / "allowed"))


def test_errors_hide_the_location_of_the_folders(folders: DataFolders, root: Path):
    text = f"{root}/allowed/inner/rows.parquet is damaged; {root}/also has nothing"
    assert folders.hide_folders(text) == "inner/rows.parquet is damaged; . has nothing"

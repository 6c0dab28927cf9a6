"""Attack: another user of the machine reads evidence, keys or memory of the service."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.storage.data_folder import open_for_group, prepare_data_folder
from app.storage.errors import DataFolderRefused
from tests.fakes.folders import service_folder


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_data_folder_is_private(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        prepare_data_folder(tmp_path / "new" / "data")
    finally:
        os.umask(previous)
    assert mode_of(tmp_path / "new" / "data") == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o750])
def test_open_data_folder_is_closed(tmp_path: Path, mode: int) -> None:
    for name in ("blobs", "notes.txt"):
        (tmp_path / name).touch()
    tmp_path.chmod(mode)
    prepare_data_folder(tmp_path)
    assert mode_of(tmp_path) & 0o077 == 0


def test_open_folder_with_other_files_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    tmp_path.chmod(0o1777)
    with pytest.raises(DataFolderRefused, match="contains other files: set ASSAY_DATA_DIR"):
        prepare_data_folder(tmp_path)
    assert mode_of(tmp_path) == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_open_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o755)
    os.chown(folder, 12345, 12345)
    with pytest.raises(DataFolderRefused, match="belongs to another user"):
        prepare_data_folder(folder)


def test_group_of_the_database_may_enter_but_not_list(tmp_path: Path) -> None:
    gid = os.getegid()
    open_for_group(tmp_path, gid)
    assert mode_of(tmp_path) == 0o710


@pytest.fixture
def folder() -> Iterator[Path]:
    path = service_folder("assay-privacy-")
    yield path
    shutil.rmtree(path, ignore_errors=True)

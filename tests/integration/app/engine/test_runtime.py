from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from app.engine.runtime import open_runtime
from app.errors import InvalidSettings
from tests.fakes.settings import settings_for_tests


def temporary_secrets(folder: Path) -> list[Path]:
    return list(folder.glob(".secret*"))


async def test_installation_secret_is_created_once_and_private(tmp_path: Path):
    async def open_and_read_secret() -> bytes:
        async with open_runtime(settings_for_tests(data_dir=tmp_path)):
            return (tmp_path / "secret").read_bytes()

    secrets = await asyncio.gather(*(open_and_read_secret() for _ in range(3)))
    assert len(set(secrets)) == 1
    assert len(secrets[0]) == 32
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0
    assert not temporary_secrets(tmp_path)


@pytest.mark.parametrize("blobs", ["ftp://host/folder", "file:///proc/nothing/here"])
async def test_unusable_blob_store_is_rejected_with_setting_name(tmp_path: Path, blobs: str):
    with pytest.raises(InvalidSettings, match="ASSAY_BLOBS"):
        async with open_runtime(settings_for_tests(data_dir=tmp_path, blobs=blobs)):
            pass

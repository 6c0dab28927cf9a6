"""Import and export of page caches, with the real runtime and without a network."""

from __future__ import annotations

import io
import json
import shutil
import stat
import tarfile
import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PIL import Image

from answers.errors import InvalidSubmission
from app.engine.runtime import Runtime, open_runtime
from app.features.interop.cli_page_caches import (
    TransferRefused,
    export_task,
    import_saved_page,
    import_task,
    saved_pages,
    task_caches,
    unpacked_source,
)
from cache.capture import CaptureSource, PageKind
from cache.urls import canonical_key
from mind2web2.utils.cache_filesys import CacheFileSys, CacheIndexError
from tests.fakes.settings import settings_for_tests
from tests.standin.documents import pdf_with_pages
from tests.unit.cache.sources.test_mhtml import HTML, saved

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
WEB, ESCAPED, PDF = "https://a.com/page", "https://www.a.com/P%20q/?x=1#f", "https://a.com/paper"
TEXT = "The page says \u00e9 and this.\r\nAnd that."


def jpeg(width: int = 60, height: int = 40) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((width, height), 40).convert("RGB").save(out, "JPEG", quality=71)
    return out.getvalue()


def public_cache(root: Path, *, metadata: bool = True) -> dict[str, bytes]:
    """Write a cache of one task in the layout of the public toolkit, and return its files by name."""
    task = root / "otter" / "bridge"
    cache = CacheFileSys(task)
    cache.put_web(WEB, TEXT, jpeg(60, 7000))
    cache.put_web(ESCAPED, "Wide. " + TEXT, jpeg(2200, 3000))
    cache.put_web("https://a.com/plain", TEXT, None)
    cache.put_pdf(PDF, pdf_with_pages(1))
    overview = {"all_unique_urls": [WEB, ESCAPED, "https://a.com/plain", PDF]}
    (root / "otter" / "bridge.json").write_text(json.dumps(overview))
    if not metadata:
        (task / "index.metadata.jsonl").unlink()
    return pages_in(root)


def pages_in(root: Path) -> dict[str, bytes]:
    found = sorted((root / "otter" / "bridge").iterdir())
    return {path.name: path.read_bytes() for path in found if path.name != "index.metadata.jsonl"}


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with open_runtime(settings_for_tests(data_dir=tmp_path / "data")) as runtime:
        yield runtime


@pytest.mark.parametrize("metadata", [True, False], ids=["ours", "of the public toolkit"])
async def test_imported_cache_is_exported_byte_for_byte(runtime: Runtime, tmp_path: Path, metadata: bool) -> None:
    files = public_cache(tmp_path / "theirs", metadata=metadata)
    [cache] = task_caches(tmp_path / "theirs", None, ())
    brought = await import_task(runtime, cache)
    assert (brought.new, brought.same, brought.damaged) == (4, 0, 0)
    again = await import_task(runtime, cache)
    assert (again.new, again.same) == (0, 4)

    cited = {url: ["answer_1.md"] for url in (WEB, ESCAPED, "https://a.com/plain", PDF)}
    assert await export_task(runtime, tmp_path / "ours", "otter", "bridge", cited) == []
    assert pages_in(tmp_path / "ours") == files
    read = CacheFileSys(tmp_path / "ours" / "otter" / "bridge")
    assert read.get_web(WEB) == CacheFileSys(tmp_path / "theirs" / "otter" / "bridge").get_web(WEB)
    assert read.get_pdf(PDF) == pdf_with_pages(1) or read.get_pdf(PDF).startswith(b"%PDF")


async def test_imported_pages_are_labelled_evidence_and_only_huge_pictures_are_decoded(
    runtime: Runtime, tmp_path: Path
) -> None:
    public_cache(tmp_path, metadata=False)
    [cache] = task_caches(tmp_path, "otter", ["bridge"])
    await import_task(runtime, cache)
    stored = CacheFileSys(tmp_path / "otter" / "bridge")
    tall, wide = await runtime.index.find(canonical_key(WEB)), await runtime.index.find(canonical_key(ESCAPED))
    assert tall is not None and wide is not None
    assert (tall.source, tall.kind) == (CaptureSource.IMPORT, PageKind.WEB)
    shown = (await runtime.pages.evidence(tall)).screenshots
    assert [Image.open(io.BytesIO(part)).size for part in shown] == [(60, 2000)] * 3 + [(60, 1300)]
    assert await runtime.blobs.get(tall.blobs["screenshot-0"].sha256) == stored.get_web(WEB)[1]
    assert "original" not in tall.blobs
    [shot] = (await runtime.pages.evidence(wide)).screenshots
    assert Image.open(io.BytesIO(shot)).size == (1100, 1500)
    assert wide.blobs["original"].size > 0
    paper = await runtime.index.find(canonical_key(PDF))
    assert paper is not None
    assert "Page number 1 is visible" in (await runtime.pages.evidence(paper)).text


async def test_changed_page_is_a_new_capture_and_torn_index_is_an_error(runtime: Runtime, tmp_path: Path) -> None:
    public_cache(tmp_path)
    [cache] = task_caches(tmp_path, None, ())
    await import_task(runtime, cache)
    before = await runtime.index.find(canonical_key(WEB))
    stored = CacheFileSys(tmp_path / "otter" / "bridge")
    stored.put_web(WEB, TEXT, jpeg(61, 41))
    assert (await import_task(runtime, cache)).new == 1
    after = await runtime.index.find(canonical_key(WEB))
    assert before is not None and after is not None and before.id != after.id
    assert await runtime.index.get(before.id) == before
    (tmp_path / "otter" / "bridge" / "index.json").write_text("{ torn")
    with pytest.raises(CacheIndexError, match=r"index\.json"):
        await import_task(runtime, cache)


@pytest.mark.parametrize("depth", ["whole", "agent", "task", "inside a folder"])
def test_cache_is_found_from_root_agent_task_or_parent_folder(tmp_path: Path, depth: str) -> None:
    public_cache(tmp_path / "cache")
    start = {"whole": "cache", "agent": "cache/otter", "task": "cache/otter/bridge", "inside a folder": "."}[depth]
    [found] = task_caches(tmp_path / start, None, ())
    assert (found.root.name, found.agent, found.task_id) == ("cache", "otter", "bridge")
    assert task_caches(tmp_path / start, None, ["another"]) == []


def test_symbolic_link_in_a_cache_is_rejected(tmp_path: Path) -> None:
    public_cache(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    next((tmp_path / "otter" / "bridge").glob("*.txt")).unlink()
    ((tmp_path / "otter" / "bridge") / ("0" * 32 + ".txt")).symlink_to(secret)
    with pytest.raises(TransferRefused, match="is a symbolic link"):
        task_caches(tmp_path, None, ())


async def test_archive_is_equivalent_to_its_folder(runtime: Runtime, tmp_path: Path) -> None:
    files = public_cache(tmp_path / "theirs")
    archive = shutil.make_archive(str(tmp_path / "theirs"), "zip", tmp_path / "theirs")
    with unpacked_source(Path(archive)) as folder:
        [cache] = task_caches(folder, None, ())
        assert pages_in(folder) == files
        assert (await import_task(runtime, cache)).new == 4
        left = folder
    assert not left.exists()


def zipped(path: Path, members: dict[str, bytes], **options: int) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = options.get("mode", stat.S_IFREG | 0o644) << 16
            archive.writestr(info, data)
    return path


def tarred(path: Path, **fields: object) -> Path:
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("otter/bridge/index.json")
        for name, value in fields.items():
            setattr(info, name, value)
        archive.addfile(info)
    return path


@pytest.mark.parametrize(
    "hostile",
    [
        lambda path: zipped(path, {"../index.json": b"{}"}),
        lambda path: zipped(path, {"/etc/index.json": b"{}"}),
        lambda path: zipped(path, {"otter/../../index.json": b"{}"}),
        lambda path: zipped(path, {"otter\\..\\index.json": b"{}"}),
        lambda path: zipped(path, {"otter/bridge/index.json": b"/etc/passwd"}, mode=stat.S_IFLNK | 0o777),
        lambda path: zipped(path, {"otter/bridge/index.json": b" " * (80 * 1024 * 1024)}),
        lambda path: zipped(path, {f"otter/bridge/{n:032x}.txt": b"" for n in range(5001)}),
        lambda path: tarred(path, type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        lambda path: tarred(path, type=tarfile.LNKTYPE, linkname="otter/x"),
        lambda path: tarred(path, type=tarfile.FIFOTYPE),
        lambda path: tarred(path, name="/tmp/index.json"),
    ],
)
def test_untrusted_archive_is_rejected_and_leaves_no_files(tmp_path: Path, hostile) -> None:
    archive = hostile(tmp_path / "archive")
    with pytest.raises(InvalidSubmission), unpacked_source(archive) as folder:
        raise AssertionError(f"it was unpacked into {folder}")
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


async def test_saved_page_is_imported_under_its_original_url(runtime: Runtime, tmp_path: Path) -> None:
    html = HTML.replace("Two of them.", "Two of them stand by the gate, one of them is green and new.")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "benches.mhtml").write_bytes(saved(html.encode()))
    [file] = saved_pages(tmp_path)
    page = await import_saved_page(runtime, file, url=None, now=NOW)
    assert (page.url, page.source) == ("https://towns.example/benches", CaptureSource.IMPORT)
    assert page.provenance["by"] == "benches.mhtml"
    assert page.provenance["saved_at"] == "2026-11-20T12:00:00+00:00"
    assert (await runtime.pages.get("https://towns.example/benches")).id == page.id

    paper = tmp_path / "paper"
    paper.write_bytes(pdf_with_pages(1))
    with pytest.raises(TransferRefused, match="--url"):
        await import_saved_page(runtime, paper, url=None, now=NOW)
    assert (await import_saved_page(runtime, paper, url=PDF, now=NOW)).kind is PageKind.PDF
    with pytest.raises(TransferRefused, match="only http"):
        await import_saved_page(runtime, paper, url="file:///etc/passwd", now=NOW)

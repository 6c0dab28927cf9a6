"""Concurrent writers of one public page cache: no process loses the pages of another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mind2web2 import CacheFileSys
from tests.architecture.sources import ROOT

WRITERS, PAGES = 4, 5
WRITE = """
import sys
from mind2web2 import CacheFileSys

folder, writer, pages = sys.argv[1], sys.argv[2], int(sys.argv[3])
cache = CacheFileSys(folder)
sys.stdin.readline()
for number in range(pages):
    url = f"https://site.example/{writer}/{number}"
    cache.put_web(url, f"page {writer}/{number}", None, f"{url}/final")
    cache.record_failure(f"{url}/down", "timeout")
"""


def test_pages_of_four_processes_are_all_kept(tmp_path: Path) -> None:
    search_path = f"{ROOT}:{ROOT / 'judges' / 'compat'}"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path), str(writer), str(PAGES)],
            stdin=subprocess.PIPE,
            env={"PYTHONPATH": search_path},
        )
        for writer in range(WRITERS)
    ]
    for process in writers:  # all have read the empty index before the first one writes
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
    assert [process.wait(timeout=240) for process in writers] == [0] * WRITERS

    stored = CacheFileSys(tmp_path)
    assert stored.summary() == {"total_urls": 20, "web_pages": 20, "pdf_pages": 0, "failed_urls": 20}
    assert len(stored.redirects()) == WRITERS * PAGES
    for writer in range(WRITERS):
        for number in range(PAGES):
            text, _ = stored.get_web(f"https://site.example/{writer}/{number}")
            assert text == f"page {writer}/{number}"
            metadata = stored.metadata(f"https://site.example/{writer}/{number}")
            assert metadata is not None

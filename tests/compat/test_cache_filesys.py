"""Page cache in the public file layout: exact bytes, tolerant lookup, no key collisions."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cache.capture import CaptureOutcome, Observation
from mind2web2 import CacheFileSys
from mind2web2.page_keys import lenient_key, storage_key
from mind2web2.utils.cache_filesys import CacheIndexError
from mind2web2.utils.url_tools import normalize_url_keep_case

PDF = b"%PDF-1.4 not much of one"


def png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 3), "red").save(out, "PNG")
    return out.getvalue()


def capture(**fields: Any) -> Observation:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return Observation(url="u", outcome=CaptureOutcome.OK, captured_at=at, duration_s=0.1, backend="test", **fields)


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def test_files_match_the_example_of_the_contract(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://www.a.com/P%20q/?x=1#f", "text", b"no image")
    assert json.loads((tmp_path / "index.json").read_text("utf-8")) == {"https://www.a.com/P q/?x=1": "web"}
    assert (tmp_path / "742f864e02c7f4eb96614bc8738877c2.txt").read_bytes() == b"text"
    assert (tmp_path / "742f864e02c7f4eb96614bc8738877c2.jpg").read_bytes() == b"no image"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://a.com/", "https://a.com"),
        ("https://a.com/x/#top", "https://a.com/x"),
        ("https://a.com/%2520", "https://a.com/%20"),
        ("https://a.com/c%23", "https://a.com/c#"),
        ("https://a.com/?q=%C3%BC", "https://a.com/?q=ü"),
    ],
)
def test_key_follows_the_three_public_steps(url: str, key: str, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web(url, "t", None)
    assert cache.get_all_urls() == [key] == [storage_key(url)]
    assert (tmp_path / f"{md5(key)}.txt").exists()


def test_folder_written_by_the_public_toolkit_is_read(tmp_path: Path):
    pages = {
        "https://a.com/P q": "web",
        "https://b.com/doc.pdf": "pdf",
        "https://gone.com": "web",
        "https://x.com": "?",
    }
    (tmp_path / "index.json").write_text(json.dumps(pages), "utf-8")
    (tmp_path / f"{md5('https://a.com/P q')}.txt").write_text("text ü", "utf-8")
    (tmp_path / f"{md5('https://a.com/P q')}.jpg").write_bytes(b"jpeg")
    (tmp_path / f"{md5('https://b.com/doc.pdf')}.pdf").write_bytes(PDF)
    cache = CacheFileSys(tmp_path)
    assert cache.get_all_urls() == ["https://a.com/P q", "https://b.com/doc.pdf"]
    assert cache.get_web("https://a.com/P%20q") == ("text ü", b"jpeg")
    assert cache.get_pdf("http://b.com/doc.pdf#page=2") == PDF
    assert cache.metadata("https://a.com/P q") is None


def test_page_under_the_public_toolkits_read_name_is_found(tmp_path: Path):
    key = storage_key("https://a.com/%2520")
    (tmp_path / "index.json").write_text(json.dumps({key: "web"}), "utf-8")
    (tmp_path / f"{md5(storage_key(key))}.txt").write_text("second name", "utf-8")
    assert CacheFileSys(tmp_path).get_web("https://a.com/%2520")[0] == "second name"


@pytest.mark.parametrize("name", ["index.json", "failures.json", "redirects.json"])
@pytest.mark.parametrize("content", ["", "[]", "[" * 100_000], ids=lambda content: repr(content[:9]))
def test_unreadable_json_is_an_error_that_names_the_file(name: str, content: str, tmp_path: Path):
    path = tmp_path / name
    path.write_text(content, "utf-8")
    with pytest.raises(CacheIndexError, match=re.escape(str(path))):
        CacheFileSys(tmp_path)
    assert path.read_text("utf-8") == content


def test_index_that_became_unreadable_is_not_overwritten(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com/1", "one", None)
    (tmp_path / "index.json").write_text("{", "utf-8")
    with pytest.raises(CacheIndexError):
        cache.put_web("https://a.com/2", "two", None)
    assert (tmp_path / "index.json").read_text("utf-8") == "{"
    assert cache.get_web("https://a.com/1")[0] == "one"


def test_changes_of_other_processes_are_kept_and_seen(tmp_path: Path):
    one, other = CacheFileSys(tmp_path), CacheFileSys(tmp_path)
    one.put_web("https://a.com/1", "one", None, "https://a.com/final", capture=capture(http_status=200))
    one.record_failure("https://a.com/down", "timeout")
    other.put_web("https://a.com/2", "two", None)
    assert other.get_web("https://a.com/final")[0] == "one"
    metadata = other.metadata("https://a.com/1")
    assert metadata is not None and metadata.status == 200
    assert other.failure("https://a.com/down") is not None
    one.remove("https://a.com/1")
    other.clear_failure("https://a.com/nothing")
    assert other.get_all_urls() == ["https://a.com/2"]
    assert CacheFileSys(tmp_path).get_all_urls() == ["https://a.com/2"]


@pytest.mark.parametrize(
    "encode",
    [bytes, lambda b: base64.b64encode(b).decode(), lambda b: "data:image/png;base64," + base64.b64encode(b).decode()],
)
def test_screenshot_as_bytes_base64_or_data_uri_is_stored_as_jpeg(encode, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "t", encode(png()))
    stored = cache.get_web("https://a.com")[1]
    assert stored is not None
    image = Image.open(io.BytesIO(stored))
    assert (image.format, image.size, image.mode) == ("JPEG", (4, 3), "RGB")


def test_has_reports_the_kind_of_stored_page(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "t", None)
    cache.put_pdf("https://b.com", PDF)
    assert [cache.has(f"https://{name}.com") for name in "abc"] == ["web", "pdf", None]
    assert (cache.has_web("https://a.com"), cache.has_pdf("https://a.com")) == (True, False)
    assert (cache.has_web("https://b.com"), cache.has_pdf("https://b.com")) == (False, True)
    cache.record_failure("https://c.com", "HTTP 503")
    assert cache.summary() == {"total_urls": 2, "web_pages": 1, "pdf_pages": 1, "failed_urls": 1}


def test_removed_page_leaves_no_file_and_no_redirect(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com/1", "one", png(), "https://a.com/final")
    cache.put_web("https://a.com/2", "two", None)
    assert cache.remove("http://www.a.com/1/") is True
    assert cache.remove("https://a.com/A") is False
    for read in (cache, CacheFileSys(tmp_path)):
        assert (read.get_all_urls(), read.redirects()) == (["https://a.com/2"], {})
        assert (read.has("https://a.com/1"), read.metadata("https://a.com/1")) == (None, None)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".json", ".jsonl", ".txt"]


LOOKUPS = ["https://www.a.com/Page", "http://a.com/Page/?utm_source=x", "https://a.com/page", "https://a.com/Other"]


@pytest.mark.parametrize(
    ("stored", "url", "found"),
    [
        (LOOKUPS, "https://www.a.com/Page#top", "https://www.a.com/Page"),
        (LOOKUPS, "https://a.com/Page", "https://www.a.com/Page"),
        (LOOKUPS, "https://a.com/page?utm_id=1", "https://a.com/page"),
        (LOOKUPS, "https://a.com/OTHER", "https://a.com/Other"),
        (["https://a.com/x?b=2&a=1", "https://a.com/x?a=1&b=2"], "http://a.com/x?a=1&b=2", "https://a.com/x?a=1&b=2"),
        (["https://a.com/x?b=2&a=1"], "http://a.com/x?a=1&b=2", "https://a.com/x?b=2&a=1"),
    ],
)
def test_lookup_returns_the_most_certain_match(stored: list[str], url: str, found: str, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    for each in stored:
        cache.put_web(each, "t", None)
    assert cache.lookup(url) == CacheFileSys(tmp_path).lookup(url) == found


def test_final_url_finds_the_page_unless_it_has_its_own(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com/old", "old", None, final_url="https://a.com/New?utm_x=1")
    cache.put_web("https://b.com", "b", None, final_url="https://www.b.com/")
    assert cache.redirects() == {"https://a.com/New?utm_x=1": "https://a.com/old"}
    assert json.loads((tmp_path / "redirects.json").read_text("utf-8")) == cache.redirects()
    for read in (cache, CacheFileSys(tmp_path)):
        assert read.lookup("http://www.a.com/New/") == "https://a.com/old"
        assert read.lookup("http://www.a.com/New/", follow_redirects=False) is None
    cache.put_web("https://a.com/new", "another case", None)
    assert cache.get_web("https://a.com/New")[0] == "old"
    cache.put_web("https://a.com/New", "own", None)
    assert cache.get_web("https://a.com/New")[0] == "own"
    cache.put_web("https://a.com/old", "no longer redirected", None)
    assert cache.redirects() == {}


SPECIAL = "https://a.com/s?q=C%23"


@pytest.mark.parametrize(
    "other",
    [
        "https://a.com/s?q=C#",
        "https://a.com/s?q=c%23",
        "https://a.com/s?q=C%23&utm_x=1",
    ],
)
def test_key_that_decoding_would_change_is_found_by_its_own_spelling_only(other: str, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web(SPECIAL, "own", None)
    assert (cache.lookup(other), cache.get_web(f"{SPECIAL}#top")[0]) == (None, "own")
    cache.clear()
    cache.put_web(other, "other", None)
    assert cache.lookup(SPECIAL) is None


def test_failures_are_counted_until_the_page_is_stored(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.record_failure("https://a.com/Down/", "timeout")
    cache.record_failure("http://www.a.com/Down", "HTTP 403", blocked=True)
    record = json.loads((tmp_path / "failures.json").read_text("utf-8"))["https://a.com/Down"]
    assert record == cache.failure("https://a.com/Down?utm_x=1") == CacheFileSys(tmp_path).failure("https://a.com/Down")
    assert datetime.fromisoformat(record.pop("time")).tzinfo is not None
    assert record == {"reason": "HTTP 403", "blocked": True, "attempts": 2}
    assert cache.failure_url("http://a.com/Down") == "https://a.com/Down"
    assert cache.failure("https://a.com/down") is None
    cache.put_web("https://a.com/Down", "up again", None)
    assert (cache.failures(), json.loads((tmp_path / "failures.json").read_text("utf-8"))) == ({}, {})


URL_PARTS = st.text(alphabet="aB/%2350?&=#utm_.+ ü:[]@\ud800\\", max_size=30)


@given(st.one_of(st.text(max_size=40), URL_PARTS.map("https://a.com/".__add__), URL_PARTS.map("http://".__add__)))
def test_any_url_can_fail_be_stored_and_be_removed(tmp_path_factory: pytest.TempPathFactory, url: str):
    folder = tmp_path_factory.mktemp("any")
    cache = CacheFileSys(folder)
    assert (cache.lookup(url), cache.failure(url)) == (None, None)
    cache.record_failure(url, "timeout")
    assert [record["attempts"] for record in CacheFileSys(folder).failures().values()] == [1]
    key = cache.put_web(url, "text", None, final_url=url)
    for read in (cache, CacheFileSys(folder)):
        assert (read.failures(), read.redirects(), read.get_all_urls()) == ({}, {}, [key])
        assert read.lookup(url, ignore_case=False, follow_redirects=False) == read.lookup(key) == key
        assert read.get_web(url)[0] == read.get_web(key)[0] == "text"
    assert cache.remove(url)
    assert cache.get_all_urls() == CacheFileSys(folder).get_all_urls() == []


STORED = "https://www.example.com/Path/a b?q=x y&k=1"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/Path/a b?q=x y&k=1",
        "HTTPS://WWW.EXAMPLE.COM/PATH/A B?Q=X Y&K=1",
        "https://www.example.com/Path/a b?q=x y&k=1&utm_source=s&utm_medium=m",
        "http://example.com/path/A%20B/?utm_x=1&k=1&q=x%20y#f",
    ],
)
def test_equivalent_urls_find_the_stored_page(url: str, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web(STORED, "found", None)
    assert cache.has(url) == "web"
    assert cache.get_web(url)[0] == "found"
    (tmp_path / "index.metadata.jsonl").unlink()
    assert CacheFileSys(tmp_path).get_web(url)[0] == "found"


URLS = [
    "http://a.com/", "https://www.a.com", "https://a.com/p?q=a%20b&utm_x=1", "https://a.com/p?q=a+b",
    "https://a.com/p?a=1&b=2&a=3", "https://a.com/p?a=1&a=3&b=2", "https://a.com/x?y", "https://A.com/x?y=#z",
    "https://a.com/x/", "https://a.com/X", "https://a.com/%C3%BC", "https://a.com/ü", "a.com/b", "http://www.www.com",
    "https://a.com/go?to=/home/", "https://a.com/go?to=/home/&utm_source=s",
]  # fmt: skip


def test_urls_equal_by_the_public_rule_have_equal_lookup_keys():
    for one in URLS:
        for other in URLS:
            if normalize_url_keep_case(one) == normalize_url_keep_case(other):
                assert lenient_key(storage_key(one)) == lenient_key(storage_key(other)), (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.com/?q=a%26b", "https://a.com/?q=a&b"),
        ("https://a.com/#/r1", "https://a.com/#/r2"),
        ("https://a.com/x?q=1/", "https://a.com/x?q=1"),
    ],
)
def test_pages_that_collide_in_the_public_toolkit_stay_separate(one: str, other: str, tmp_path: Path):
    for first, second in ((one, other), (other, one)):
        cache = CacheFileSys(tmp_path / md5(first))
        cache.put_web(first, "first", None)
        cache.put_web(second, "second", None)
        for read in (cache, CacheFileSys(tmp_path / md5(first))):
            assert read.get_web(first)[0] == "first"
            assert read.get_web(second)[0] == "second"
            assert read.summary()["total_urls"] == 2


def test_time_status_headers_and_hash_are_stored_beside_the_index(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    seen = capture(http_status=200, final_url="https://a.com/home", headers={"server": "s"})
    cache.put_web("https://a.com", "t", b"x", capture=seen)
    metadata = CacheFileSys(tmp_path).metadata("http://www.a.com/")
    assert metadata is not None
    assert (metadata.status, metadata.final_url, metadata.headers) == (200, "https://a.com/home", {"server": "s"})
    assert metadata.captured_at.endswith("+00:00")
    assert metadata.sha256 == {
        suffix: hashlib.sha256(data).hexdigest() for suffix, data in (("txt", b"t"), ("jpg", b"x"))
    }
    assert set(json.loads((tmp_path / "index.json").read_text())) == {"https://a.com"}


@pytest.mark.parametrize("content", ["[]", '{"key": "https://a.com", "pa'])
def test_damaged_metadata_file_loses_no_page(content: str, tmp_path: Path):
    CacheFileSys(tmp_path).put_web("https://a.com", "t", None)
    (tmp_path / "index.metadata.jsonl").write_text(content, "utf-8")
    read = CacheFileSys(tmp_path)
    assert (read.get_web("https://a.com")[0], read.metadata("https://a.com")) == ("t", None)
    read.put_web("https://b.com", "b", None, capture=capture(http_status=200))
    metadata = CacheFileSys(tmp_path).metadata("https://b.com")
    assert metadata is not None and metadata.status == 200


def test_text_that_is_not_valid_utf_8_is_stored(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com/\ud800", "lone \ud800 surrogate\r\n", None)
    assert cache.get_web("https://a.com/\ud800")[0] == "lone ? surrogate\r\n"

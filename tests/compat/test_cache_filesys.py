"""Page cache in the public file layout: exact bytes, tolerant lookup, no key collisions."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import time
from pathlib import Path

import pytest
from PIL import Image

from mind2web2 import CacheFileSys
from mind2web2.page_keys import layout_key, lenient_key
from mind2web2.utils.url_tools import normalize_url_simple

PDF = b"%PDF-1.4 not much of one"


def png(mode: str = "RGB", colour: str | tuple[float, ...] = "red") -> bytes:
    out = io.BytesIO()
    Image.new(mode, (4, 3), colour).save(out, "PNG")
    return out.getvalue()


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def test_files_match_the_example_of_the_contract(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://www.a.com/P%20q/?x=1#f", "text", b"no image")
    cache.save()
    assert json.loads((tmp_path / "index.json").read_text("utf-8")) == {"https://www.a.com/P q/?x=1": "web"}
    assert (tmp_path / "742f864e02c7f4eb96614bc8738877c2.txt").read_bytes() == b"text"
    assert (tmp_path / "742f864e02c7f4eb96614bc8738877c2.jpg").read_bytes() == b"no image"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://a.com/", "https://a.com"),
        ("https://a.com//", "https://a.com/"),
        ("https://a.com/x/#top", "https://a.com/x"),
        ("https://a.com/x%2F", "https://a.com/x"),
        ("https://a.com/%2520", "https://a.com/%20"),
        ("https://a.com/c%23", "https://a.com/c#"),
        ("https://a.com/?q=%C3%BC", "https://a.com/?q=ü"),
        ("HTTPS://A.com", "HTTPS://A.com"),
    ],
)
def test_key_follows_the_three_public_steps(url: str, key: str, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web(url, "t", None)
    assert cache.get_all_urls() == [key] == [layout_key(url)]
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
    key = layout_key("https://a.com/%2520")
    (tmp_path / "index.json").write_text(json.dumps({key: "web"}), "utf-8")
    (tmp_path / f"{md5(layout_key(key))}.txt").write_text("second name", "utf-8")
    assert CacheFileSys(tmp_path).get_web("https://a.com/%2520")[0] == "second name"


@pytest.mark.parametrize("url", ["https://a.com/%2520", "https://a.com/c%23", "https://a.com/x//"])
def test_pages_that_the_public_toolkit_loses_can_be_read(url: str, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web(url, "kept", None)
    cache.save()
    assert CacheFileSys(tmp_path).get_web(url) == ("kept", None)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '"x"', "\x00", "[" * 100_000, '{"https://a.com": ["web"]}', '{"https://a.com": {}}'],
    ids=lambda content: repr(content[:20]),
)
def test_broken_index_counts_as_empty(content: str, tmp_path: Path):
    (tmp_path / "index.json").write_text(content, "utf-8")
    assert CacheFileSys(tmp_path).get_all_urls() == []


def test_only_save_writes_the_index(tmp_path: Path):
    cache = CacheFileSys(tmp_path / "new" / "folder")
    cache.put_web("https://a.com", "t", None)
    assert not (tmp_path / "new" / "folder" / "index.json").exists()
    assert CacheFileSys(tmp_path / "new" / "folder").get_all_urls() == []
    cache.save()
    assert CacheFileSys(tmp_path / "new" / "folder").get_all_urls() == ["https://a.com"]


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


def test_transparent_pixels_become_white(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "t", png("RGBA", (0, 0, 0, 0)))
    stored = cache.get_web("https://a.com")[1]
    assert stored is not None
    assert Image.open(io.BytesIO(stored)).getpixel((1, 1)) == (255, 255, 255)


def test_screenshot_can_be_skipped_or_absent(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "t", png())
    assert cache.get_web("https://a.com", get_screenshot=False) == ("t", None)
    cache.put_web("https://a.com", "t2", None)
    assert cache.get_web("https://a.com") == ("t2", None)


def test_has_reports_the_kind_of_stored_page(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "t", None)
    cache.put_pdf("https://b.com", PDF)
    assert [cache.has(f"https://{name}.com") for name in "abc"] == ["web", "pdf", None]
    assert (cache.has_web("https://a.com"), cache.has_pdf("https://a.com")) == (True, False)
    assert (cache.has_web("https://b.com"), cache.has_pdf("https://b.com")) == (False, True)
    assert cache.summary() == {"total_urls": 2, "web_pages": 1, "pdf_pages": 1}


@pytest.mark.parametrize("call", ["get_pdf", "get_web"])
def test_missing_page_raises_key_error(call: str, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://web.com", "t", None)
    cache.put_pdf("https://pdf.com", PDF)
    with pytest.raises(KeyError):
        getattr(cache, call)("https://web.com" if call == "get_pdf" else "https://pdf.com")
    with pytest.raises(KeyError):
        getattr(cache, call)("https://nothing.com")


def test_clear_removes_all_pages_and_files(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "t", png())
    cache.put_pdf("https://b.com", PDF)
    cache.save()
    cache.clear()
    assert (cache.get_all_urls(), cache.has("https://a.com"), list(tmp_path.iterdir())) == ([], None, [])


STORED = "https://www.example.com/Path/a b?q=x y&k=1"


@pytest.mark.parametrize(
    "url",
    [
        "https://www.example.com/Path/a%20b?q=x%20y&k=1",
        "http://www.example.com/Path/a b?q=x y&k=1",
        "https://example.com/Path/a b?q=x y&k=1",
        "https://www.example.com/Path/a b?q=x y&k=1#part",
        "https://www.example.com/Path/a b?q=x y&k=1/",
        "HTTPS://WWW.EXAMPLE.COM/PATH/A B?Q=X Y&K=1",
        "https://www.example.com/Path/a b?q=x+y&k=1",
        "https://www.example.com/Path/a b?q=x y&k=1&utm_source=s&utm_medium=m",
        "https://www.example.com/Path/a b?utm_id=1&q=x y&k=1",
        "http://example.com/path/A%20B/?utm_x=1&k=1&q=x%20y#f",
    ],
)
def test_equivalent_urls_find_the_stored_page(url: str, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web(STORED, "found", None)
    assert cache.has(url) == "web"
    assert cache.get_web(url)[0] == "found"
    cache.save()
    (tmp_path / "index.metadata.json").unlink()
    assert CacheFileSys(tmp_path).get_web(url)[0] == "found"


@pytest.mark.parametrize(
    "url",
    [
        "https://www.example.com/Path",
        "https://other.com/Path/a b?q=x y&k=1",
        "",
        "nonsense",
        "https://www.example.com/Path/a b?q=x y&k=2",
    ],
)
def test_different_urls_do_not_find_the_stored_page(url: str, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web(STORED, "found", None)
    assert cache.has(url) is None


URLS = [
    "http://a.com/", "https://www.a.com", "https://a.com/p?q=a%20b&utm_x=1", "https://a.com/p?q=a+b",
    "https://a.com/p?a=1&b=2&a=3", "https://a.com/p?a=1&a=3&b=2", "https://a.com/x?y", "https://A.com/x?y=#z",
    "https://a.com/x/", "https://a.com/X", "https://a.com/%C3%BC", "https://a.com/ü", "a.com/b", "http://www.www.com",
]  # fmt: skip


def test_urls_equal_by_the_public_rule_have_equal_lookup_keys():
    for one in URLS:
        for other in URLS:
            if normalize_url_simple(one) == normalize_url_simple(other):
                assert lenient_key(one) == lenient_key(other), (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.com/?q=a%26b", "https://a.com/?q=a&b"),
        ("https://a.com/a%2Fb", "https://a.com/a/b"),
        ("https://a.com/#/r1", "https://a.com/#/r2"),
        ("https://a.com/c%23", "https://a.com/c"),
        ("https://a.com/x?q=1/", "https://a.com/x?q=1"),
    ],
)
def test_pages_that_collide_in_the_public_toolkit_stay_separate(one: str, other: str, tmp_path: Path):
    for first, second in ((one, other), (other, one)):
        cache = CacheFileSys(tmp_path / md5(first))
        cache.put_web(first, "first", None)
        cache.put_web(second, "second", None)
        cache.save()
        for read in (cache, CacheFileSys(tmp_path / md5(first))):
            assert read.get_web(first)[0] == "first"
            assert read.get_web(second)[0] == "second"
            assert read.summary()["total_urls"] == 2


def test_equivalent_url_overwrites_the_stored_page(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com/P%20q", "old", None)
    cache.put_web("https://a.com/P q#part", "new", None)
    assert (cache.get_all_urls(), cache.get_web("https://a.com/P%20q")[0]) == (["https://a.com/P q"], "new")


def test_a_page_can_become_a_pdf(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "t", None)
    cache.put_pdf("https://a.com", PDF)
    assert (cache.has("https://a.com"), cache.summary()["total_urls"]) == ("pdf", 1)


def test_exact_match_wins_over_an_equivalent_url(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    for url in ("https://a.com/X", "https://a.com/x", "http://a.com/x", "https://a.com/x?utm_a=1"):
        cache.put_web(url, url, None)
    for url in ("https://a.com/X", "https://a.com/x", "http://a.com/x", "https://a.com/x?utm_a=1"):
        assert cache.get_web(url)[0] == url


def test_time_status_headers_and_hash_are_stored_beside_the_index(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "t", b"x", status=200, final_url="https://a.com/home", headers={"server": "s"})
    cache.save()
    metadata = CacheFileSys(tmp_path).metadata("http://www.a.com/")
    assert metadata is not None
    assert (metadata.status, metadata.final_url, metadata.headers) == (200, "https://a.com/home", {"server": "s"})
    assert metadata.captured_at.endswith("+00:00")
    assert metadata.sha256 == {
        suffix: hashlib.sha256(data).hexdigest() for suffix, data in (("txt", b"t"), ("jpg", b"x"))
    }
    assert set(json.loads((tmp_path / "index.json").read_text())) == {"https://a.com"}


@pytest.mark.parametrize("content", ["", "[]", '{"pages": 3}', '{"pages": {"https://a.com": {}}}'])
def test_damaged_metadata_file_loses_no_page(content: str, tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "t", None)
    cache.save()
    (tmp_path / "index.metadata.json").write_text(content, "utf-8")
    read = CacheFileSys(tmp_path)
    assert (read.get_web("https://a.com")[0], read.metadata("https://a.com")) == ("t", None)


def test_text_that_is_not_valid_utf_8_is_stored(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com/\ud800", "lone \ud800 surrogate\r\n", None)
    assert cache.get_web("https://a.com/\ud800")[0] == "lone ? surrogate\r\n"


def test_screenshot_that_is_not_base64_is_rejected(tmp_path: Path):
    with pytest.raises(ValueError, match="base64"):
        CacheFileSys(tmp_path).put_web("https://a.com", "t", "a")


def _lookup_s(cache: CacheFileSys, urls: list[str], expected: str | None) -> float:
    """Return the CPU time of one lookup, in seconds."""
    started = time.process_time()
    found = [cache.has(url) for url in urls]
    assert set(found) == {expected}
    return (time.process_time() - started) / len(urls)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("https://www.site{host}.com/path/{n}?q=a%20b&id={n}", "web"),
        ("http://site{host}.com/Path/{n}/?id={n}&utm_x=1&q=a+b#f", "web"),
        ("https://nowhere{n}.com/path?q={n}&utm_x=1", None),
    ],
    ids=["exact", "variant", "miss"],
)
def test_lookup_time_does_not_grow_with_the_cache(tmp_path: Path, form: str, expected: str | None):
    small, large = CacheFileSys(tmp_path / "small"), CacheFileSys(tmp_path / "large")
    for cache, size in ((small, 100), (large, 10_000)):
        for n in range(size):
            cache._enter(f"https://www.site{n % 50}.com/path/{n}?q=a b&id={n}", "web", None)
    few = [form.format(host=n % 50, n=n) for n in range(100)] * 20
    many = [form.format(host=n % 50, n=n) for n in range(0, 10_000, 5)]
    assert _lookup_s(large, many, expected) < 10 * _lookup_s(small, few, expected)  # a scan takes 100 times as long

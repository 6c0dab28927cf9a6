"""WACZ archive of captures: format and reproducible bytes."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from datetime import UTC, datetime
from typing import Any

from app.features.bundles import wacz
from app.features.bundles.wacz import CapturesArchive
from cache.capture import Capture, CaptureOutcome

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def capture(number: int, url: str, **more: Any) -> Capture:
    fields = {
        "id": f"page_{number}",
        "url": url,
        "key": url,
        "outcome": CaptureOutcome.OK,
        "captured_at": AT,
        "duration_s": 1.0,
        "backend": "x",
        "http_status": 200,
        "title": f"Page {number}",
        "headers": {"Content-Encoding": "gzip", "Content-Type": "x/y", "Server": "s\r\nX-Evil: 1", "Set-Cookie": "a=b"},
    }
    return Capture(**{**fields, **more})


def archive_bytes() -> bytes:
    archive = CapturesArchive()
    archive.add(capture(1, "https://www.example.org/A?b=C"), {"html": b"<p>one</p>", "text": b"one"})
    archive.add(
        capture(2, "http://example.org:8080/old", final_url="http://example.org:8080/new"),
        {"pdf": b"%PDF", "text": b""},
    )
    archive.add(capture(3, "https://gone.example/", http_status=404), {})
    archive.add(capture(4, "ftp://files.example/"), {"text": b"x"})
    with archive.build() as file:
        return file.read()


def test_same_captures_give_the_same_bytes():
    assert archive_bytes() == archive_bytes()


def test_every_file_is_listed_with_its_hash():
    with zipfile.ZipFile(io.BytesIO(archive_bytes())) as archive:
        package = json.loads(archive.read("datapackage.json"))
        assert package["profile"] == "data-package"
        assert package["wacz_version"] == "1.1.1"
        for resource in package["resources"]:
            data = archive.read(resource["path"])
            assert resource["hash"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
            assert resource["bytes"] == len(data)
        digest = json.loads(archive.read("datapackage-digest.json"))
        assert digest["hash"] == f"sha256:{hashlib.sha256(archive.read('datapackage.json')).hexdigest()}"
        listed = {resource["path"] for resource in package["resources"]}
        assert set(archive.namelist()) - listed == {"datapackage.json", "datapackage-digest.json"}
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}


def test_each_line_of_the_index_points_to_its_record():
    with zipfile.ZipFile(io.BytesIO(archive_bytes())) as archive:
        lines = archive.read("indexes/index.cdx").decode().splitlines()
        warc = archive.read("archive/data.warc")
    assert lines == sorted(lines)
    records = {}
    for line in lines:
        key, at, fields = line.split(" ", 2)
        entry = json.loads(fields)
        begin = int(entry["offset"])
        record = warc[begin : begin + int(entry["length"])].decode()
        assert f"WARC-Target-URI: {entry['url']}\r\n" in record
        assert entry["digest"] in record
        assert at == "20260304050607"
        records[key] = record
    assert set(records) == {"org,example)/a?b=c", "org,example:8080)/new", "org,example:8080)/old"}
    assert records["org,example)/a?b=c"].endswith("<p>one</p>\r\n\r\n")
    assert "HTTP/1.1 302 Found" in records["org,example:8080)/old"]
    assert "Location: http://example.org:8080/new" in records["org,example:8080)/old"]


def test_headers_cannot_inject_headers_and_cookies_are_omitted():
    with zipfile.ZipFile(io.BytesIO(archive_bytes())) as archive:
        text = archive.read("archive/data.warc").decode()
    assert "\nX-Evil" not in text
    assert "Set-Cookie" not in text
    assert "Content-Encoding" not in text


def test_pages_are_listed_with_their_text():
    with zipfile.ZipFile(io.BytesIO(archive_bytes())) as archive:
        head, *pages = map(json.loads, archive.read("pages/pages.jsonl").decode().splitlines())
    assert head["format"] == "json-pages-1.0"
    assert [(page["url"], page["ts"], page["text"]) for page in pages] == [
        ("https://www.example.org/A?b=C", "2026-03-04T05:06:07Z", "one"),
        ("http://example.org:8080/old", "2026-03-04T05:06:07Z", ""),
    ]


def test_sort_keys_of_ip_addresses_and_ports():
    assert wacz.sort_key("http://127.0.0.1:8080/x") == "127.0.0.1:8080)/x"
    assert wacz.sort_key("http://[::1]/") == "::1)/"
    assert wacz.sort_key("http://x.example:99999/") == "example,x)/"

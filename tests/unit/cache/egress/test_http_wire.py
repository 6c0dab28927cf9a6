"""Host and port of proxy requests."""

from __future__ import annotations

import pytest

from cache.egress.proxy_port import BadMessage, Head, parse_request


@pytest.mark.parametrize(
    ("first", "host_header", "place"),
    [
        (b"GET http://[::1]:81/x HTTP/1.1", b"[::1]:81", ("::1", 81)),
        (b"GET http://::1/x HTTP/1.1", b"[::1]", ("::1", 80)),
        (b"GET http://::1:81/x HTTP/1.1", b"[::1]:81", ("::1", 81)),
        (b"CONNECT ::1:443 HTTP/1.1", b"::1:443", ("::1", 443)),
    ],
)
def test_ipv6_address_may_have_no_brackets(first: bytes, host_header: bytes, place: tuple[str, int]) -> None:
    request = parse_request(Head(start_line=first, headers=((b"Host", host_header),)))
    assert (request.host, request.port) == place


@pytest.mark.parametrize("first", [b"GET http://::1/x HTTP/1.1", b"CONNECT ::1:x HTTP/1.1", b"CONNECT a:b:1 HTTP/1.1"])
def test_invalid_address_is_rejected(first: bytes) -> None:
    with pytest.raises(BadMessage):
        parse_request(Head(start_line=first, headers=()))

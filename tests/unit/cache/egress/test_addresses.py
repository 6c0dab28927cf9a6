"""Addresses that the egress proxy denies."""

from __future__ import annotations

import pytest

from cache.egress.proxy import denial_reason

_DENIED_TEXT = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254
168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1
192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1
239.255.255.250 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1
::ffff:169.254.169.254 ::ffff:7f00:1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b::a9fe:a9fe
64:ff9b:1::1 100::1 2001::1 2001:0:7f00:1:: 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:a00:1::1
3ffe::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd12:3456::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ff0e::1
"""
DENIED = _DENIED_TEXT.split()

_ALLOWED_TEXT = """
1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 168.63.129.15
172.15.255.255 172.32.0.1 192.0.1.1 192.167.255.255 198.17.255.255 198.20.0.1 223.255.255.255
2606:4700:4700::1111 2a00:1450:4001::1 2001:4860:4860::8888 64:ff9b::808:808 ::ffff:8.8.8.8
"""
ALLOWED = _ALLOWED_TEXT.split()


@pytest.mark.parametrize("address", DENIED)
def test_address_that_is_not_public_is_denied(address: str) -> None:
    assert denial_reason(address)


@pytest.mark.parametrize("address", ALLOWED)
def test_public_address_is_allowed(address: str) -> None:
    assert denial_reason(address) is None


def test_text_that_is_not_an_address_raises() -> None:
    with pytest.raises(ValueError, match="not appear to be"):
        denial_reason("localhost")

"""Resolver for tests that serve several hosts from one local server."""

from __future__ import annotations

from collections.abc import Sequence

from cache.errors import HostUnknown


class LocalHostsResolver:
    """Resolver that maps the given hosts to this machine and knows no others."""

    def __init__(self, hosts: frozenset[str]) -> None:
        self._hosts = hosts

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        if host not in self._hosts:
            raise HostUnknown(host)
        return ["127.0.0.1"]

    def close(self) -> None:
        """Do nothing, because nothing is open."""

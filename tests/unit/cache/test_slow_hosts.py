"""Hosts that time out: order and time limit of their pages."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from cache.capture import CaptureOutcome, Observation
from cache.pacing import SlowHosts, time_limit
from tests.unit.cache.scripted import NOON


def seen(url: str, outcome: CaptureOutcome = CaptureOutcome.TIMEOUT, final_url: str | None = None) -> Observation:
    return Observation(
        url=url, outcome=outcome, captured_at=NOON, duration_s=0.0, backend="scripted", final_url=final_url
    )


async def run(hosts: SlowHosts, urls: list[str], *, hanging: str = "slow", limits: dict[str, float] | None = None):
    """Visit URLs, of which those whose host begins with ``hanging`` time out. Return them in the order of visits."""
    visited: list[str] = []

    async def visit(url: str) -> None:
        with hosts.limited(url):
            visited.append(url)
            if limits is not None:
                limits[url] = time_limit(60.0)[0]
            await asyncio.sleep(0)
            timed_out = url.startswith(f"https://{hanging}")
            hosts.record(seen(url, CaptureOutcome.TIMEOUT if timed_out else CaptureOutcome.OK))

    await hosts.run_by_host(urls, visit)
    return visited


async def test_pages_of_hanging_hosts_come_last_and_each_page_is_visited_once():
    hosts, limits = SlowHosts(pages_per_host=2), dict[str, float]()
    urls = [f"https://{'slow' if nth % 4 else 'fast'}{nth % 40}.com/{nth}" for nth in range(200)]
    visited = await run(hosts, urls, limits=limits)
    assert Counter(visited) == Counter(urls)
    slow = [url for url in visited if "slow" in url]
    assert visited[60 + 50 :] == slow[60:]  # two pages of each of 30 hanging hosts, and all 50 others, come first
    assert {url: limit for url, limit in limits.items() if limit != 60.0} == dict.fromkeys(slow[60:], 15.0)


@pytest.mark.parametrize("outcome", [CaptureOutcome.OK, CaptureOutcome.CONNECT_ERROR])
def test_only_a_timeout_makes_a_host_slow(outcome: CaptureOutcome):
    hosts = SlowHosts()
    hosts.record(seen("https://a.com/", outcome))
    assert "https://a.com/" not in hosts
    hosts.record(seen("https://a.com/"))
    assert "https://a.com/other" in hosts
    hosts.record(seen("https://a.com/", outcome))
    assert "https://a.com/other" not in hosts

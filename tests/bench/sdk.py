"""Cost of one call with only the openai SDK, to compare this machine with the reference machine."""

from __future__ import annotations

import asyncio
import time

from openai import AsyncOpenAI

from tests.bench.model import running_model

CONCURRENT_CALLS = 6
ROUNDS = 50


def cpu_ms_per_call() -> float:
    """Return the CPU milliseconds per call with a short prompt and no code of assay."""
    with running_model(delay_s=0.05) as model:
        return asyncio.run(_measure(model.base_url))


async def _measure(base_url: str) -> float:
    client = AsyncOpenAI(api_key="bench", base_url=base_url, max_retries=0)

    async def call() -> None:
        await client.chat.completions.create(model="gpt-4.1", messages=[{"role": "user", "content": "Is it so?"}])

    await call()
    began = time.process_time()
    for _ in range(ROUNDS):
        await asyncio.gather(*(call() for _ in range(CONCURRENT_CALLS)))
    used = time.process_time() - began
    await client.close()
    return 1000 * used / (ROUNDS * CONCURRENT_CALLS)

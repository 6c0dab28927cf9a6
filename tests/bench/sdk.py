"""Cost of one call with only the openai SDK, to compare this machine with the reference machine."""

from __future__ import annotations

import asyncio
import time

from openai import AsyncOpenAI

from tests.bench.model import running_model

CALLS_AT_ONCE = 6
ROUNDS = 50


def cpu_ms_per_call() -> float:
    """Return milliseconds of processor time per call with a few words, as in a minimal program."""
    with running_model(delay_s=0.05) as model:
        return asyncio.run(_measure(model.base_url))


async def _measure(base_url: str) -> float:
    client = AsyncOpenAI(api_key="bench", base_url=base_url, max_retries=0)

    async def call() -> None:
        await client.chat.completions.create(model="gpt-4.1", messages=[{"role": "user", "content": "Is it so?"}])

    await call()
    began = time.process_time()
    for _ in range(ROUNDS):
        await asyncio.gather(*(call() for _ in range(CALLS_AT_ONCE)))
    used = time.process_time() - began
    await client.close()
    return 1000 * used / (ROUNDS * CALLS_AT_ONCE)

"""Image processing in a few threads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
async def test_memory_of_finished_jobs_is_returned_and_only_a_few_pictures_are_in_memory() -> None:
    """Runs in a new process: the memory of this one depends on earlier tests."""
    program = """
import asyncio, io
from PIL import Image
from cache import image_jobs
from cache.image_jobs import max_image_jobs, run_image_job
from cache.page_text.screenshot_parts import screenshot_parts

image_jobs.IDLE_S = 0.0
status = open("/proc/self/status")

def mib(name):
    status.seek(0)
    return int(next(line for line in status if line.startswith(name)).split()[1]) // 1024

async def main():
    def picture(height):
        out = io.BytesIO()
        Image.new("RGB", (1100, height), "red").save(out, "JPEG")
        return out.getvalue()

    tall = picture(9000)
    await run_image_job(screenshot_parts, [picture(2100)])
    before = mib("VmRSS")
    open("/proc/self/clear_refs", "w").write("5")
    await asyncio.gather(*(run_image_job(screenshot_parts, [tall]) for _ in range(12)))
    print(mib("VmHWM") - before, max_image_jobs(), flush=True)
    while mib("VmRSS") - before > 20:
        await asyncio.sleep(0.01)

asyncio.run(main())
"""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=50,
    )
    peak, jobs = map(int, done.stdout.split())
    picture = 1100 * 9000 * 4 // 2**20
    assert peak < (picture + 30) * jobs + 10

"""Secrets of the service are out of reach for the process of a task file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from judges.isolation.fork_server_pool import clean_environment
from tests.fakes.judge_processes import script

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")

CANARY = "sk-canary-5f3a9d0c7e21"
SEARCH = """
import json
found = []
# In two halves, so that looking for it does not put it into memory.
head, tail = b"sk-canary-5f3a", b"9d0c7e21"
def look(place, data):
    at = data.find(tail)
    while at >= 0:
        if data[max(0, at - len(head)) : at] == head:
            found.append(place)
        at = data.find(tail, at + 1)
for name in ("environ", "cmdline"):
    look(f"{name} of self", open(f"/proc/self/{name}", "rb").read())
try:
    look("cmdline of parent", open(f"/proc/{os.getppid()}/cmdline", "rb").read())
except PermissionError:  # Landlock
    pass
memory = open("/proc/self/mem", "rb", buffering=0)
regions = [line.split() for line in open("/proc/self/maps")]
for region in regions:
    if region[1].startswith("r") and not region[-1].startswith("[v"):
        start, end = (int(part, 16) for part in region[0].split("-"))
        memory.seek(start)
        look(" ".join(region), memory.read(end - start))
opened = []
for fd in os.listdir("/proc/self/fd"):
    if os.path.exists(f"/proc/self/fd/{fd}") or os.path.islink(f"/proc/self/fd/{fd}"):
        opened.append(os.readlink(f"/proc/self/fd/{fd}"))
looked = {"opened": opened, "found": found, "environment": sorted(os.environ), "regions": len(regions)}
evaluator.add_custom_info(looked, info_name="looked")
"""
PROGRAM = """
import asyncio, json, os, sys
from pathlib import Path
from tests.fakes.judge_processes import open_process_pool, run_public_script
held_open = open(sys.argv[2])  # a file of the service's
async def main():
    async with open_process_pool() as process_pool:
        result = await run_public_script(Path(sys.argv[1]), process_pool)
    infos = result["eval_breakdown"][0]["info"]
    print(json.dumps(next(info["looked"] for info in infos if "looked" in info)))
asyncio.run(main())
"""


def test_judge_script_cannot_read_any_key(tmp_path: Path):
    path = script(tmp_path, SEARCH)
    open_file = tmp_path / "kept"
    open_file.write_text("a file that the service has open")
    environment = {
        "PATH": os.defpath,
        "PYTHONPATH": str(Path(__file__).parents[4]),
        "OPENAI_API_KEY": CANARY,
        "GOOGLE_MAPS_API_KEY": CANARY,
        "ASSAY_DATABASE_URL": f"postgresql://assay:{CANARY}@db.example/assay",
        "AWS_SECRET_ACCESS_KEY": CANARY,
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(path), str(open_file)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["regions"] > 100  # it searched its whole memory
    assert seen["found"] == []
    # The standard streams, the two RPC sockets, the descriptors of the event loop, and those of the search
    # itself.
    kinds = {name.partition(":")[0] for name in seen["opened"] if not name.startswith("/proc/")}
    assert kinds <= {"/dev/null", "pipe", "socket", "anon_inode"}
    assert seen["environment"] == sorted({*clean_environment(), "HOME"})

"""Start-up of each program: it imports a large library only where the library is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

LARGE = {
    "aiohttp",
    "boto3",
    "fastapi",
    "lxml",
    "numpy",
    "openai",
    "patchright.async_api",
    "pyarrow",
    "pymupdf",
    "scipy",
}
PROGRAMS = {
    "evaluate": """
from app.console import event_loop
import app.console.progress, app.engine.evaluation, app.engine.public_cache, app.engine.runtime
async def nothing(): pass
event_loop.run(nothing())
""",
    "worker": """
import app.server.processes
from app.server.job_runners import JOB_RUNNERS
assert "suite" in JOB_RUNNERS
""",
    "fork server": """
import importlib
from mind2web2.host import PRELOADED
for module in ("judges.isolation.fork_server", *PRELOADED):
    importlib.import_module(module)
""",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_starts_without_large_libraries(program: str) -> None:
    code = f"{PROGRAMS[program]}\nimport sys\nprint(sorted({LARGE!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)

    assert done.stdout.strip() == "[]"

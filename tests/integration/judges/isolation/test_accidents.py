"""Faulty task scripts: each run ends with a reason and in time, without effect on other runs."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from judges.errors import JudgeBug, ScriptStopped
from judges.isolation.fork_server_pool import ForkServerPool
from tests.fakes.folders import service_folder
from tests.fakes.judge_processes import open_process_pool, run_public_script, script
from tests.fakes.processes import descendants, is_running

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
]
DEADLINE_S = 2.0
LIMITS = {"cpu_s": 240, "memory_bytes": 768 * 1024**2, "file_bytes": 1024**2}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process_pool() -> AsyncIterator[ForkServerPool]:
    async with open_process_pool(**LIMITS) as opened:
        yield opened


ACCIDENTS = {
    # name: (script body, exceeded limit, part of the error message)
    "loops": ("while True: pass", "time", "did not return within 2 s and was killed"),
    "eats": ("hold = [0] * 1_000_000_000", "memory", "MemoryError"),
    "prints": ("for _ in range(1024): print('x' * 1_048_576)", "output", "printed more than"),
    "writes": (
        "import tempfile\nfile = open(tempfile.mkdtemp() + '/big', 'wb')\n"
        "for _ in range(9): file.write(bytes(1_000_000)); file.flush()",
        "file size",
        "File too large",
    ),
    "opens": ("files = [open('/dev/null') for _ in range(5000)]", "open files", "Too many open files"),
    "exits_with": ("os._exit(7)", None, "exited (status 7) without a result"),
    "awaits_a_cancelled_task": (
        "import asyncio\ntask = asyncio.ensure_future(asyncio.sleep(0))\ntask.cancel()\nawait task",
        None,
        "CancelledError",
    ),
    "kills_itself": ("import signal\nos.kill(os.getpid(), signal.SIGSEGV)", None, "was killed by SIGSEGV"),
    "is_killed_by_kernel": (
        "import signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "machine",
        "was killed, probably because the machine ran out of memory",
    ),
    "raises": ("1 / 0", None, "ZeroDivisionError"),
    "starts_a_program": ("import subprocess\nsubprocess.Popen(['sleep', '4242'])", None, "PermissionError"),
    "returns_nan": ("return {'final_score': float('nan')}", None, "final_score"),
    "returns_a_circle": ("loop = {}\nloop['self'] = loop\nreturn loop", None, "written as JSON"),
    "returns_much": ("return {'final_score': 1.0, 'x': 'y' * 40_000_000}", "result", "larger than"),
    "closes_everything": ("os.closerange(0, 256)\ntime.sleep(60)", None, ""),
    "stops_itself": ("import signal\nos.kill(os.getpid(), signal.SIGSTOP)", "time", "was killed"),
}


async def test_faulty_scripts_end_with_reasons_and_do_not_affect_each_other(
    process_pool: ForkServerPool, tmp_path: Path
):
    async def fault_of(name: str) -> JudgeBug:
        body, limit, _ = ACCIDENTS[name]
        with pytest.raises(JudgeBug) as raised:
            deadline_s = DEADLINE_S if limit == "time" else 300
            await run_public_script(script(tmp_path, body, name=name), process_pool, deadline_s=deadline_s)
        return raised.value

    well = asyncio.create_task(run_public_script(script(tmp_path, name="well"), process_pool, deadline_s=300))
    faults = dict(zip(ACCIDENTS, await asyncio.gather(*map(fault_of, ACCIDENTS)), strict=True))
    for name, (_, limit, message) in ACCIDENTS.items():
        assert message in str(faults[name]), name
        assert getattr(faults[name], "limit", None) == limit, name
    assert f"{tmp_path / 'raises.py'}" in faults["raises"].traceback and "1 / 0" in faults["raises"].traceback
    assert (await well)["final_score"] == 1.0
    assert await remaining_processes(process_pool) == []


async def test_faults_while_loading_a_file_are_reported(process_pool: ForkServerPool, tmp_path: Path):
    with pytest.raises(ScriptStopped) as raised:
        await run_public_script(script(tmp_path, above="while True: pass"), process_pool, deadline_s=DEADLINE_S)
    assert raised.value.limit == "time"
    with pytest.raises(JudgeBug, match="loading the task script of 't' failed: ZeroDivisionError") as broken:
        await run_public_script(script(tmp_path, above="1 / 0"), process_pool)
    assert "t.py" in broken.value.traceback


async def test_cpu_time_is_limited_independently_of_deadline(tmp_path: Path):
    async with open_process_pool(cpu_s=1) as opened:
        with pytest.raises(ScriptStopped, match="more than 1 s of CPU time") as raised:
            await run_public_script(script(tmp_path, "while True: pass"), opened, deadline_s=300)
    assert raised.value.limit == "cpu"


async def test_grandchild_in_separate_session_is_killed(tmp_path: Path):
    body = """
        import subprocess
        hidden = subprocess.Popen(["sleep", "4243"], start_new_session=True)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "4243"])
            os._exit(0)
        time.sleep(600)
    """
    async with open_process_pool(processes=8) as opened:
        with pytest.raises(ScriptStopped) as raised:
            await run_public_script(script(tmp_path, body), opened, deadline_s=DEADLINE_S)
        assert raised.value.limit == "time"
        assert await remaining_processes(opened) == []
    assert not [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == ["sleep", "4243"]]


async def test_fork_bomb_is_stopped_when_processes_are_allowed(tmp_path: Path):
    async with open_process_pool(processes=4) as opened:
        with pytest.raises(ScriptStopped, match="more than 4 processes") as raised:
            await run_public_script(script(tmp_path, "while True: os.fork()"), opened, deadline_s=300)
        assert raised.value.limit == "processes"
        assert await remaining_processes(opened) == []


async def test_cancelled_run_is_killed(process_pool: ForkServerPool, tmp_path: Path):
    running = asyncio.create_task(run_public_script(script(tmp_path, "while True: pass"), process_pool, deadline_s=300))
    while not descendants(process_pool.server_pid or 0):  # noqa: ASYNC110 - the process has no event to wait for
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await remaining_processes(process_pool) == []


async def test_killed_fork_server_is_replaced(tmp_path: Path):
    async with open_process_pool() as opened:
        await run_public_script(script(tmp_path), opened)
        before = opened.server_pid
        assert before is not None
        server = psutil.Process(before)
        server.kill()
        while is_running(server):  # noqa: ASYNC110 - the process has no event to wait for
            await asyncio.sleep(0.01)
        assert (await run_public_script(script(tmp_path), opened))["final_score"] == 1.0
        assert opened.server_pid != before


async def remaining_processes(process_pool: ForkServerPool) -> list[psutil.Process]:
    """Return the processes below the fork server that are alive after a grace period."""
    assert process_pool.server_pid is not None
    for _ in range(2400):
        left = [each for each in descendants(process_pool.server_pid) if is_running(each)]
        if not left:
            return []
        await asyncio.sleep(0.05)
    return left


SERVICE = """
import asyncio, sys
from pathlib import Path
from tests.fakes.folders import service_folder
from tests.fakes.judge_processes import open_process_pool, run_public_script
async def main():
    async with open_process_pool() as process_pool:
        print(process_pool.server_pid, flush=True)
        await run_public_script(Path(sys.argv[1]), process_pool)
asyncio.run(main())
"""


async def test_killed_service_leaves_no_process_and_no_files(tmp_path: Path):
    temporary = service_folder("assay-killed-")
    path = script(tmp_path, "import tempfile\nmark = tempfile.mkstemp(prefix='runs')\nwhile True: time.sleep(1)")
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-c", SERVICE, str(path)),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[4],
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert service.stdout is not None
    server = psutil.Process(int(await service.stdout.readline()))
    async with asyncio.timeout(240):
        while not list(temporary.glob("assay-judge-*/*/runs*")):  # noqa: ASYNC110 - written by another process
            await asyncio.sleep(0.05)
    ours = [server, *server.children(recursive=True)]
    assert len(ours) == 2
    assert list(temporary.glob("assay-judge-*/*"))
    service.kill()
    await service.wait()
    _, alive = await asyncio.to_thread(psutil.wait_procs, ours, timeout=240)
    assert [each for each in alive if is_running(each)] == []
    assert not list(temporary.glob("assay-judge-*"))
    temporary.rmdir()

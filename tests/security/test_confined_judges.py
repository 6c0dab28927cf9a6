"""Attack: a task file that tries to leave its process, to reach data of the service, or to exhaust the machine.

No attempt does any harm if it succeeds: signals are 0, files are opened but not written, and mounted file systems do
not exist.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from cache.confinement.landlock import landlock_version
from cache.confinement.privileges import DEFAULT_UID
from judges.errors import ScriptStopped
from judges.isolation.fork_server_pool import ForkServerPool
from judges.isolation.process_limits import program_is_open_to
from tests.fakes.judge_processes import open_process_pool, run_public_script, script

pytestmark = [
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
    pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no seccomp filter for this machine"),
]
in_module_loop = pytest.mark.asyncio(loop_scope="module")
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can change to another user")
needs_separation = pytest.mark.skipif(
    not IS_ROOT and not landlock_version(), reason="neither another user nor Landlock protects files here"
)

CAP_DAC_READ_SEARCH = 1 << 2
ATTEMPTS = """
import ctypes, signal, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def connect(family, address):
    socket.socket(family).connect(address)
def reconnect():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.connect(DATABASE)
def read(path):
    open(path, "rb").read(1)
def write(path):
    os.close(os.open(path, os.O_WRONLY))
def create_in(folder):
    __import__('tempfile').NamedTemporaryFile(dir=folder).close()
def import_beside(name):
    sys.path.insert(0, os.path.dirname(BESIDE))
    __import__(name)
OWN = __import__("tempfile").mkstemp()[1]
def fork():
    if os.fork() == 0:
        os._exit(0)
def attempt(action):
    try:
        action()
    except Exception as error:
        return type(error).__name__
    return "done"
"""
CALLS = {
    "x86_64": {"ptrace": 101, "process_vm_readv": 310, "unshare": 272, "mount": 165, "bpf": 321, "keyctl": 250},
    "aarch64": {"ptrace": 117, "process_vm_readv": 270, "unshare": 97, "mount": 40, "bpf": 280, "keyctl": 219},
}.get(platform.machine(), {})
NEW_NAMESPACES = {"user namespace": 0x10000000, "network namespace": 0x40000000}
SYSTEM_CALLS = {
    "opens a TCP socket": "connect(socket.AF_INET, ADDRESS)",
    "opens a UDP socket": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "opens a netlink socket": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "connects to the database socket": "connect(socket.AF_UNIX, DATABASE)",
    "connects a pair to the database socket": "reconnect()",
    "resolves a name": "socket.getaddrinfo('localhost', 80)",
    "kills the service": "os.kill(SERVICE, 0)",
    "kills everything": "os.kill(-1, 0)",
    "signals with a pidfd": "signal.pidfd_send_signal(os.pidfd_open(SERVICE), 0)",
    "traces the service": f"call({CALLS.get('ptrace')}, 0x4206, SERVICE, None, None)",
    "reads memory by a call": f"call({CALLS.get('process_vm_readv')}, SERVICE, None, 0, None, 0, 0)",
    "mounts": f"call({CALLS.get('mount')}, b'x', b'/mnt', b'assay', 0, None)",
    "reads kernel keys": f"call({CALLS.get('keyctl')}, 0, -3, 0)",
    "uses io_uring": "call(425, 8, ctypes.create_string_buffer(120))",
    "opens its own files to others": "os.chmod(OWN, 0o777)",
    "limits the service": "__import__('resource').prlimit(SERVICE, 7)",
    "starts a process": "fork()",
    **{f"enters a {name}": f"call({CALLS.get('unshare')}, {flag})" for name, flag in NEW_NAMESPACES.items()},
}
FILES = {
    "reads evidence": "read(EVIDENCE)",
    "reads the environment of the service": "read(f'/proc/{SERVICE}/environ')",
    "reads memory of the service": "read(f'/proc/{SERVICE}/mem')",
    "reads open files of the service": "read(f'/proc/{SERVICE}/fd/{OPEN_FILE}')",
    "reads the environment of its parent": "read(f'/proc/{os.getppid()}/environ')",
    "lists processes": "os.listdir('/proc')",
    "overwrites evidence": "write(EVIDENCE)",
    "overwrites the program": f"write({ctypes.__file__!r})",
}
ONLY_LANDLOCK = {
    "reads .env of the working directory": "read(DOT_ENV)",
    "reads /etc/hosts": "read('/etc/hosts')",
    "reads a folder beside the task file": "read(BELOW)",
    "fills /tmp": "create_in('/tmp')",
}
ALLOWED = {
    "reads data beside the task file": "read(BESIDE)",
    "writes temporary files": "__import__('tempfile').TemporaryFile().write(b'x')",
    "starts a thread": "threading.Thread(target=print).start()",
    "imports a module": "__import__('wave')",
    "imports a module beside the task file": "import_beside('sibling')",
    "finds its own processes": "os.listdir('/proc/self/task')",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process_pool() -> AsyncIterator[ForkServerPool]:
    async with open_process_pool(disk_bytes=100 * 1024**2, threads=100) as opened:
        yield opened


def status_of(text: str) -> dict[str, str]:
    """Return the fields of ``/proc/self/status``."""
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


@pytest.fixture(scope="module", params=["open", "closed"])
def is_open(request: pytest.FixtureRequest) -> bool:
    """Whether every user can read the task files and enter the folder of the evidence."""
    return bool(request.param == "open")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outcomes(
    process_pool: ForkServerPool, tmp_path_factory: pytest.TempPathFactory, judge_folder: Path, is_open: bool
) -> AsyncIterator[dict[str, Any]]:
    """What each attempt of a hostile task file led to: the class of an exception, or "done"."""
    private = tmp_path_factory.mktemp("data")
    evidence, database = private / "evidence", private / "database"
    evidence.write_text("what a page said")
    (judge_folder / "beside.json").write_text("{}")
    (judge_folder / "sibling.py").write_text("here = True")
    (judge_folder / ".env").write_text("OPENAI_API_KEY=sk-x")
    (judge_folder / "below").mkdir()
    (judge_folder / "below" / "answer.md").write_text("x")
    if is_open:
        for folder in (private, *private.parents[:-2]):
            folder.chmod(0o711)  # so that only the permissions of the files count
    evidence.chmod(0o600)
    with socket.socket(socket.AF_UNIX) as local, socket.create_server(("127.0.0.1", 0)) as remote, evidence.open():
        local.bind(str(database))
        local.listen()
        database.chmod(0o777)
        names = {
            "SERVICE": os.getpid(),
            "EVIDENCE": str(evidence),
            "OPEN_FILE": remote.fileno(),
            "DATABASE": str(database),
            "ADDRESS": remote.getsockname(),
            "DOT_ENV": str(judge_folder / ".env"),
            "BESIDE": str(judge_folder / "beside.json"),
            "BELOW": str(judge_folder / "below" / "answer.md"),
        }
        constants = "\n".join(f"{name} = {value!r}" for name, value in names.items())
        attempts = {**SYSTEM_CALLS, **FILES, **ONLY_LANDLOCK, **ALLOWED}
        tried = ", ".join(f"{name!r}: attempt(lambda: {code})" for name, code in attempts.items())
        body = f"""
            status = open('/proc/self/status').read()
            outcomes = {{{tried}}}
            evaluator.add_custom_info({{'outcomes': outcomes, 'status': status}}, info_name='seen')
        """
        path = script(judge_folder, body, above=constants + ATTEMPTS)
        result = await run_public_script(path, process_pool)
    infos = result["eval_breakdown"][0]["info"]
    yield next(info["seen"] for info in infos if "seen" in info)


@pytest.fixture(scope="module")
def judge_folder(tmp_path_factory: pytest.TempPathFactory, is_open: bool) -> Path:
    """Folder of task files."""
    folder = tmp_path_factory.mktemp("judges")
    for each in (folder, *folder.parents[:-2]):
        each.chmod(0o755 if is_open else 0o700)
    return folder


@pytest.mark.parametrize("attack", SYSTEM_CALLS)
def test_system_call_is_refused(outcomes: dict[str, Any], attack: str) -> None:
    assert outcomes["outcomes"][attack] in ("PermissionError", "gaierror")


@needs_separation
@pytest.mark.parametrize("attack", FILES)
def test_file_is_refused(outcomes: dict[str, Any], attack: str) -> None:
    assert outcomes["outcomes"][attack] == "PermissionError"


@pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")
@pytest.mark.parametrize("attack", ONLY_LANDLOCK)
def test_file_outside_of_the_list_is_refused_whoever_owns_it(outcomes: dict[str, Any], attack: str) -> None:
    assert outcomes["outcomes"][attack] == "PermissionError"


@pytest.mark.parametrize("action", ALLOWED)
def test_what_judge_files_need_works(outcomes: dict[str, Any], action: str) -> None:
    assert outcomes["outcomes"][action] == "done"


@needs_root
def test_process_has_no_privileges(outcomes: dict[str, Any], is_open: bool) -> None:
    status = status_of(outcomes["status"])
    assert status["Uid"].split() == status["Gid"].split() == [str(DEFAULT_UID)] * 4
    assert status["Groups"].split() == []
    assert status["NoNewPrivs"] == "1"
    sets = {name: int(status[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb", "CapBnd")}
    reading = 0 if is_open and program_is_open_to(DEFAULT_UID) else CAP_DAC_READ_SEARCH
    assert sets == dict.fromkeys(("CapPrm", "CapEff", "CapInh", "CapAmb"), reading) | {"CapBnd": 0}


EXHAUSTION = {
    # name: (script body, exceeded limit)
    "threads": (
        "import threading\nthreading.stack_size(32768)\n"
        "for n in range(10_000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\ntime.sleep(60)",
        "threads",
    ),
    "deleted_files": (
        "import tempfile\nfiles = []\nwhile True:\n"
        "    files.append(tempfile.TemporaryFile())\n    files[-1].write(bytes(8_000_000))\n    time.sleep(0.02)",
        "disk",
    ),
    "many_files": (
        "import tempfile\nfolder = tempfile.mkdtemp()\nfor n in range(1_000_000): open(f'{folder}/{n}', 'w').close()",
        "disk",
    ),
}


@in_module_loop
@pytest.mark.parametrize("attack", EXHAUSTION)
async def test_exhaustion_is_stopped_with_its_limit(process_pool: ForkServerPool, tmp_path: Path, attack: str) -> None:
    if attack == "deleted_files" and not IS_ROOT and not landlock_version():
        pytest.skip("the fork server may not see them")
    body, limit = EXHAUSTION[attack]
    honest = asyncio.create_task(run_public_script(script(tmp_path, name="honest"), process_pool))
    with pytest.raises(ScriptStopped) as raised:
        await run_public_script(script(tmp_path, body), process_pool, deadline_s=20)
    assert raised.value.limit == limit, raised.value
    assert (await honest)["final_score"] == 1.0


@in_module_loop
@needs_separation
async def test_siblings_cannot_reach_each_other(process_pool: ForkServerPool, tmp_path: Path) -> None:
    victim = asyncio.create_task(run_public_script(script(tmp_path, "time.sleep(3)", name="victim"), process_pool))
    server = psutil.Process(process_pool.server_pid)
    while not (siblings := [child.pid for child in server.children()]):  # noqa: ASYNC110 - seen from outside
        await asyncio.sleep(0.02)
    body = f"""
        found = [attempt(lambda: read('/proc/{siblings[0]}/mem')), attempt(lambda: read('/proc/{siblings[0]}/environ')),
                 attempt(lambda: os.kill({siblings[0]}, 0))]
        evaluator.add_custom_info({{'found': found}}, info_name='seen')
    """
    result = await run_public_script(script(tmp_path, body, above=ATTEMPTS), process_pool)
    found = next(info["seen"]["found"] for info in result["eval_breakdown"][0]["info"] if "seen" in info)
    assert found == ["PermissionError"] * 3
    assert (await victim)["final_score"] == 1.0

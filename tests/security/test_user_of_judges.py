"""User and permissions of judge processes, however the service was started. No permission of a file is changed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cache.confinement.landlock import landlock_version
from cache.confinement.privileges import DEFAULT_UID
from tests.fakes.judge_processes import script

pytestmark = [
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can change to another user"),
]
CAP_DAC_READ_SEARCH = 1 << 2
PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from tests.fakes.judge_processes import open_process_pool, run_public_script
async def main():
    async with open_process_pool(processes=int(sys.argv[2])) as process_pool:
        result = await run_public_script(Path(sys.argv[1]), process_pool)
    infos = result["eval_breakdown"][0]["info"]
    print(json.dumps(next(info["seen"] for info in infos if "seen" in info)))
asyncio.run(main())
"""
STATUS = """
seen = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
try:
    open("/etc/hosts")
except PermissionError:
    seen["confined"] = True
import sys
try:
    os.chmod(sys._getframe().f_code.co_filename, 0o600)
    seen["opened its file"] = True
except PermissionError:
    pass
evaluator.add_custom_info(seen, info_name="seen")
"""
USER_NAMESPACE = ("unshare", "--user", "--map-root-user", "--net")


def run(
    path: Path, prefix: tuple[str, ...] = (), *, processes: int = 0, import_from: Path | None = None
) -> dict[str, Any]:
    """Return what a task file saw. The service is started by ``prefix``."""
    if prefix and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{prefix[0]} is missing or not permitted")
    paths = [str(each) for each in (import_from, Path.cwd(), *sys.path) if each]
    done = subprocess.run(
        [*prefix, sys.executable, "-W", "ignore", "-c", PROGRAM, str(path), str(processes)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=path.parent,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen | {"stderr": done.stderr, "stdout": done.stdout}


def modes(*folders: Path) -> dict[str, int]:
    """Return the permissions of folders, everything in them, and their parents."""
    paths = {each for folder in folders for each in (folder, *folder.rglob("*"), *folder.parents)}
    return {str(path): stat.S_IMODE(path.stat().st_mode) for path in paths}


def test_user_that_the_namespace_does_not_have_is_not_needed(tmp_path: Path) -> None:
    seen = run(script(tmp_path, STATUS), USER_NAMESPACE)
    assert seen["Uid"].split() == ["0"] * 4
    assert f"this user namespace has no user {DEFAULT_UID}" in seen["stdout"]
    assert_unprivileged(seen)


def assert_unprivileged(seen: dict[str, Any]) -> None:
    assert {int(seen[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {0}
    assert seen["NoNewPrivs"] == "1"
    assert "opened its file" not in seen
    assert seen.get("confined", False) is bool(landlock_version())


@pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")
def test_closed_program_and_judge_files_are_read_without_opening_them(tmp_path: Path) -> None:
    """As with a virtual environment and task files below ``/root``, installed with umask 077."""
    (packages := tmp_path / "packages").mkdir()
    (packages / "late").mkdir()
    (packages / "late" / "__init__.py").write_text("from pathlib import Path\nTEXT = Path(__file__).parent / 'text'\n")
    (packages / "late" / "text").write_text("data of a package")
    (judges := tmp_path / "judges").mkdir()
    (judges / "sibling.py").write_text("def double(connection): connection.send(connection.recv() * 2)")
    (judges / "data.json").write_text('"data beside"')
    shutil.make_archive(str(judges / "bundle"), "zip", packages)
    body = (
        STATUS.partition("evaluator")[0]
        + """
sys.path.insert(0, FOLDER)
import json, late, multiprocessing, sibling
seen["package"], seen["beside"] = late.TEXT.read_text(), json.load(open(FOLDER + "/data.json"))
seen["written"] = os.access(FOLDER + "/data.json", os.W_OK)
for method in ("fork", "spawn"):
    context = multiprocessing.get_context(method)
    near, far = context.Pipe()
    process = context.Process(target=sibling.double, args=(far,))
    process.start()
    far.close()
    near.send(21)
    seen[method] = near.recv()
    process.join()
evaluator.add_custom_info(seen, info_name="seen")
"""
    )
    path = script(judges, body, above=f"FOLDER = {str(judges)!r}")
    for each in (tmp_path, *tmp_path.rglob("*")):
        each.chmod(0o700 if each.is_dir() else 0o600)
    before = modes(tmp_path, Path(sys.prefix) / "bin", Path(sys.base_prefix) / "bin")
    seen = run(path, processes=8, import_from=packages)
    assert modes(tmp_path, Path(sys.prefix) / "bin", Path(sys.base_prefix) / "bin") == before
    assert (seen["package"], seen["beside"], seen["written"]) == ("data of a package", "data beside", False)
    assert [seen.get(method) for method in ("fork", "spawn")] == [42, 42]
    assert seen["Uid"].split() == [str(DEFAULT_UID)] * 4
    assert int(seen["CapEff"], 16) == int(seen["CapPrm"], 16) == CAP_DAC_READ_SEARCH
    assert int(seen["CapBnd"], 16) == 0

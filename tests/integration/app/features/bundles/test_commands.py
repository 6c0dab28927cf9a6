"""The ``assay bundle`` commands, with and without a network."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.console.errors import Exit
from tests.fakes.bundled import copy_with_changes, read_member
from tests.fakes.program import environment_for, run_command
from tests.integration.app.judged_folder import SCRIPT_OF_TWO, AnswerFolder

TOWN = "The old bridge of Vellmar was built in 1764."


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a native judge and a public script, judged by ``assay evaluate``, and a bundle of the results."""
    home = tmp_path_factory.mktemp("home")
    folder = AnswerFolder(home)
    folder.write_judge("script", SCRIPT_OF_TWO)
    folder.write_answer("script", 1)
    for task in ("bridge", "script"):
        folder.cache_page("https://towns.example/vellmar", TOWN, task)
        folder.cache_page("https://towns.example/arches", "The old bridge of Vellmar has seven arches.", task)
    given = ["--agent", "otter", "--judges", "judges", "--cache", "cache", "--out", "results"]
    judged = run_command(home, environment_for(home), "evaluate", *given)
    assert judged.returncode == Exit.DONE, judged.stderr
    made = run_command(home, environment_for(home), *EXPORT, "--out", "bundle.zip", "--json")
    assert made.returncode == Exit.DONE, made.stderr
    (home / "made.json").write_text(made.stdout)
    return home


EXPORT = ("bundle", "export", "--agent", "otter", "--results", "results", "--cache", "cache")


def root(home: Path) -> str:
    return str(json.loads((home / "made.json").read_text())["root"])


def test_verify_prints_the_root_and_checks_a_given_root(home: Path):
    verified = run_command(home, environment_for(home), "bundle", "verify", "bundle.zip", "--root", root(home))
    assert verified.returncode == Exit.DONE, verified.stderr
    assert verified.stdout.strip() == f"root {root(home)}"
    assert "author not checked" not in verified.stderr
    other = run_command(home, environment_for(home), "bundle", "verify", "bundle.zip", "--root", "0" * 64, "--json")
    assert other.returncode == Exit.FAILED
    assert json.loads(other.stdout)["sound"] is False
    replayed = run_command(home, environment_for(home), "bundle", "replay", "bundle.zip", "--root", "0" * 64)
    assert replayed.returncode == Exit.FAILED
    assert "the root hash is" in replayed.stderr


def test_root_is_recorded_in_results_without_changing_next_bundle(home: Path):
    files = sorted((home / "results").glob("otter/*/*/results/*.json"))
    assert len(files) == 2
    before = [file.read_bytes() for file in files]
    noted = [json.loads(data)["bundles"] for data in before]
    assert [[(each["root_sha256"], each["content"]) for each in roots] for roots in noted] == [[(root(home), True)]] * 2
    again = run_command(home, environment_for(home), *EXPORT, "--out", "again.zip", "--json")
    assert json.loads(again.stdout)["root"] == root(home)
    assert (home / "again.zip").read_bytes() == (home / "bundle.zip").read_bytes()
    assert [file.read_bytes() for file in files] == before
    thin = run_command(home, environment_for(home), *EXPORT, "--out", "thin.zip", "--no-content", "--json")
    assert [json.loads(file.read_bytes())["bundles"][1] for file in files] == [
        {
            **json.loads(file.read_bytes())["bundles"][1],
            "root_sha256": json.loads(thin.stdout)["root"],
            "content": False,
        }
        for file in files
    ]
    assert b"bundles" not in read_member(home / "again.zip", f"results/{json.loads(again.stdout)['results'][0]}.json")


def test_signature_is_verified(home: Path):
    environment = environment_for(home)
    assert run_command(home, environment, "bundle", "key", "me.pem").returncode == Exit.DONE
    assert run_command(home, environment, "bundle", "sign", "bundle.zip", "--key", "me.pem").returncode == Exit.DONE
    given = ("--signature", "bundle.zip.sig", "--public-key", "me.pem.pub")
    verified = run_command(home, environment, "bundle", "verify", "bundle.zip", *given)
    assert verified.returncode == Exit.DONE, verified.stderr
    assert "signed by the key" in verified.stderr
    assert run_command(home, environment, "bundle", "verify", "bundle.zip", *given[:2]).returncode == Exit.USAGE


def offline(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command without network and settings."""
    unshare = shutil.which("unshare")
    command = [str(unshare), "-n", "--map-root-user"]
    if unshare is None or subprocess.run([*command, "true"], capture_output=True, timeout=240, check=False).returncode:
        command = command[:2]
        if (
            unshare is None
            or subprocess.run([*command, "true"], capture_output=True, timeout=240, check=False).returncode
        ):
            pytest.skip("this account may not make a network namespace of its own")
    bare = {name: value for name, value in environment_for(home).items() if "ASSAY" not in name}
    return subprocess.run(
        [*command, sys.executable, "-m", "app.cli", *arguments],
        cwd=home,
        env=bare,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_replay_needs_no_network_key_or_service_data(home: Path):
    replayed = offline(home, "bundle", "replay", "bundle.zip", "--json", "--root", root(home))
    assert replayed.returncode == Exit.DONE, replayed.stderr
    report = json.loads(replayed.stdout)
    assert (report["root_checked"], report["signed_by"]) == (True, None)
    assert report["equal"] is True
    assert report["root"] == root(home)
    assert [result["equal"] for result in report["results"]] == [True, True]
    assert not (home / "data" / "postgres").exists()


def test_scripts_are_rerun_without_a_network(home: Path):
    replayed = offline(home, "bundle", "replay", "bundle.zip", "--run-scripts")
    assert replayed.returncode == Exit.DONE, replayed.stderr
    assert "equal: 2 results" in replayed.stderr
    assert "author not checked" in replayed.stderr
    assert "code of its author" in replayed.stderr


def test_changed_score_is_reported(home: Path):
    path = next(f"results/{each}.json" for each in json.loads((home / "made.json").read_text())["results"])
    result = json.loads(read_member(home / "bundle.zip", path))
    copy_with_changes(
        home / "bundle.zip", home / "other.zip", {path: json.dumps(result | {"final_score": 0.123}).encode()}
    )
    replayed = run_command(home, environment_for(home), "bundle", "replay", "other.zip")
    assert replayed.returncode == Exit.FAILED
    assert f"data/{path} has changed" in replayed.stderr


def test_export_options_for_content_and_archive(home: Path):
    environment = environment_for(home)
    both = run_command(home, environment, *EXPORT, "--out", "x.zip", "--no-content", "--wacz")
    assert both.returncode == Exit.USAGE
    made = run_command(home, environment, *EXPORT, "--out", "thin.zip", "--no-content")
    assert made.returncode == Exit.DONE, made.stderr
    replayed = run_command(home, environment, "bundle", "replay", "thin.zip")
    assert replayed.returncode == Exit.DONE
    assert "made without content" in replayed.stderr
    without_pages = run_command(home, environment, "bundle", "replay", "thin.zip", "--run-scripts")
    assert without_pages.returncode == Exit.INCOMPLETE
    assert "made without content" in without_pages.stderr
    with_archive = run_command(home, environment, *EXPORT, "--out", "thick.zip", "--wacz", "--task", "bridge")
    assert with_archive.returncode == Exit.DONE, with_archive.stderr
    assert read_member(home / "thick.zip", "evidence/captures.wacz").startswith(b"PK")


def test_agent_without_results_fails(home: Path):
    made = run_command(home, environment_for(home), *EXPORT[:3], "nobody", *EXPORT[4:], "--out", "x.zip")
    assert made.returncode == Exit.FAILED
    assert "agent nobody has no results" in made.stderr
    assert not (home / "x.zip").exists()


def test_file_that_is_not_a_bundle_fails(home: Path):
    (home / "no.zip").write_bytes(b"nothing")
    for command in ("verify", "replay"):
        ended = run_command(home, environment_for(home), "bundle", command, "no.zip")
        assert ended.returncode == Exit.FAILED
        assert "the file is not a zip" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_next_export_removes_files_of_a_killed_export(home: Path, tmp_path: Path):
    command = [sys.executable, "-m", "app.cli", *EXPORT, "--out", str(tmp_path / "killed.zip")]
    deadline = time.monotonic() + 240
    while not (left := list(tmp_path.glob(".*"))) and time.monotonic() < deadline:
        process = subprocess.Popen(command, cwd=home, env=environment_for(home), stderr=subprocess.DEVNULL)
        while process.poll() is None and not list(tmp_path.glob(".*")):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        (tmp_path / "killed.zip").unlink(missing_ok=True)
    assert left, "no export was caught at its work"
    made = run_command(home, environment_for(home), *EXPORT, "--out", str(tmp_path / "next.zip"))
    assert made.returncode == Exit.DONE, made.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["next.zip"]

"""The ``assay bundle`` commands, with and without a network."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from app.console.errors import Exit
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
        folder.cache_page("https://towns.example/vellmar", TOWN, task, screenshot())
        folder.cache_page("https://towns.example/arches", "The old bridge of Vellmar has seven arches.", task)
    given = ["--agent", "otter", "--judges", "judges", "--cache", "cache", "--out", "results"]
    judged = run_command(home, environment_for(home), "evaluate", *given)
    assert judged.returncode == Exit.DONE, judged.stderr
    made = run_command(home, environment_for(home), *EXPORT, "--out", "bundle.zip", "--json")
    assert made.returncode == Exit.DONE, made.stderr
    (home / "made.json").write_text(made.stdout)
    return home


def screenshot() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 60)).save(file, "PNG")
    return file.getvalue()


EXPORT = ("bundle", "export", "--agent", "otter", "--results", "results", "--cache", "cache")


def test_verify_reports_every_result_and_that_the_author_is_unknown(home: Path):
    verified = run_command(home, environment_for(home), "bundle", "verify", "bundle.zip")
    assert verified.returncode == Exit.DONE, verified.stderr
    assert [line.split()[0] for line in verified.stdout.splitlines()] == ["equal", "equal"]
    assert "valid: 2 results" in verified.stderr
    assert "author not checked" in verified.stderr
    report = run_command(home, environment_for(home), "bundle", "verify", "bundle.zip", "--json")
    assert {name: json.loads(report.stdout)[name] for name in ("valid", "complete", "problems")} == {
        "valid": True,
        "complete": True,
        "problems": [],
    }


def test_view_shows_the_results_with_the_pages_of_the_bundle(home: Path):
    environment = {**environment_for(home), "BROWSER": "true", "ASSAY_DATA_DIR": str(home / "elsewhere")}
    shown = run_command(home, environment, "view", "bundle.zip")
    assert shown.returncode == Exit.DONE, shown.stderr
    page = Path(shown.stdout.strip().removeprefix("file://"))
    text = page.read_text()
    shutil.rmtree(page.parents[1])
    assert "https://towns.example/vellmar" in text
    assert "data:image/" in text
    changed = (home / "bundle.zip").read_bytes().replace(b"1764", b"1765")
    (home / "changed.zip").write_bytes(changed)
    refused = run_command(home, environment, "view", "changed.zip")
    assert (refused.returncode, refused.stdout) == (Exit.FAILED, "")
    assert "changed.zip is not valid" in refused.stderr


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
    replayed = offline(home, "bundle", "replay", "bundle.zip", "--json")
    assert replayed.returncode == Exit.DONE, replayed.stderr
    report = json.loads(replayed.stdout)
    assert (report["valid"], report["complete"]) == (True, True)
    assert [result["equal"] for result in report["results"]] == [True, True]
    assert not (home / "data" / "postgres").exists()

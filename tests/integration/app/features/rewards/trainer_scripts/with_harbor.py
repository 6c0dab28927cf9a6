"""Verification of a task by the verifier of Harbor. Prints the rewards of each answer, or the error.

The environment is this machine instead of a container: it maps the paths of a container to a folder.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.models.task.task import Task
from harbor.models.trial.paths import TrialPaths
from harbor.verifier.verifier import Verifier

import examples.trainers.harbor as adapter

given = json.loads(sys.argv[1])
TEST = """#!/bin/sh
python3 -I /tests/harbor.py --rubric /tests/rubric.json --out /logs/verifier/reward.json /app/answer.md
"""


class LocalEnvironment(BaseEnvironment):
    """Environment whose root is a folder."""

    @staticmethod
    def type():
        return "local"

    @property
    def capabilities(self):
        return EnvironmentCapabilities()

    def _validate_definition(self):
        pass

    async def start(self, force_build):
        pass

    async def stop(self, delete):
        pass

    def local(self, text):
        root = Path("root").resolve()
        for folder in ("/tests", "/logs", "/app"):
            text = text.replace(folder, f"{root}{folder}")
        return text

    async def upload_file(self, source_path, target_path):
        shutil.copy(source_path, self.local(str(target_path)))

    async def upload_dir(self, source_dir, target_dir):
        folder = shutil.copytree(source_dir, self.local(str(target_dir)), dirs_exist_ok=True)
        await asyncio.to_thread(Path(folder, "test.sh").write_text, self.local(TEST))

    async def download_file(self, source_path, target_path):
        shutil.copy(self.local(str(source_path)), target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self.local(str(source_dir)), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None, **options):
        variables = {**os.environ, **(env or {})}
        done = await asyncio.to_thread(
            subprocess.run, self.local(command), shell=True, capture_output=True, text=True, env=variables
        )
        return ExecResult(stdout=done.stdout, stderr=done.stderr, return_code=done.returncode)


def make_task():
    folder = Path("task")
    (folder / "tests").mkdir(parents=True)
    (folder / "environment").mkdir()
    (folder / "environment" / "Dockerfile").write_text("FROM scratch\n")
    (folder / "instruction.md").write_text("When?\n")
    (folder / "task.toml").write_text(
        'schema_version = "1.0"\n[task]\nname = "assay/example"\n[verifier.env]\nREWARD_URL = "' + given["url"] + '"\n'
    )
    (folder / "tests" / "test.sh").write_text(TEST)
    (folder / "tests" / "rubric.json").write_text(json.dumps(given["rubric"]))
    shutil.copy(adapter.__file__, folder / "tests" / "harbor.py")
    return Task(folder)


def make_trial(name, text):
    for folder in ("tests", "logs/verifier", "app"):
        Path("root", folder).mkdir(parents=True, exist_ok=True)
    Path("root/app/answer.md").write_text(text)
    paths = TrialPaths(Path("trials") / name)
    paths.verifier_dir.mkdir(parents=True)
    return paths


async def verified(task, name, text):
    paths = make_trial(name, text)
    environment = LocalEnvironment(task.paths.environment_dir, name, name, paths, task.config.environment)
    try:
        return (await Verifier(task, paths, environment).verify()).rewards
    except FileNotFoundError as error:
        return type(error).__name__


async def main():
    task = make_task()
    print(json.dumps({name: await verified(task, name, text) for name, text in given["answers"].items()}))


asyncio.run(main())

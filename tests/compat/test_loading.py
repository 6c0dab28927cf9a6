"""Loading of task scripts by path, and the paths of a public-toolkit project."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mind2web2 import PathConfig, load_eval_script

SIGNATURE = "client, answer, agent_name, answer_name, cache, semaphore, logger"


def write(folder: Path, source: str, name: str = "task.py") -> Path:
    path = folder / name
    path.write_text(source, "utf-8")
    return path


async def test_load_returns_the_function_of_the_script(tmp_path: Path):
    path = write(
        tmp_path, f"async def evaluate_answer({SIGNATURE}, model='o4-mini') -> dict:\n    return {{'m': model}}"
    )
    for given in (path, str(path)):
        script = load_eval_script(given)
        everything = dict.fromkeys(SIGNATURE.split(", "))
        assert await script(**everything) == {"m": "o4-mini"}


def test_module_is_registered_in_sys_modules(tmp_path: Path):
    source = (
        "from __future__ import annotations\nimport sys\n"
        "from dataclasses import dataclass\nfrom pydantic import BaseModel\n"
        "assert __name__ in sys.modules\n"
        "class Inner(BaseModel):\n    x: int = 0\nclass Outer(BaseModel):\n    inner: Inner | None = None\n"
        "@dataclass\nclass D:\n    y: list[int]\n"
        f"async def evaluate_answer({SIGNATURE}):\n    return Outer(inner=Inner()).model_dump()"
    )
    assert load_eval_script(write(tmp_path, source)).__module__ in sys.modules


def test_file_without_the_function_is_an_error_of_its_kind(tmp_path: Path):
    with pytest.raises(AttributeError, match="evaluate_answer"):
        load_eval_script(write(tmp_path, "x = 1"))
    with pytest.raises(TypeError, match="async def"):
        load_eval_script(write(tmp_path, f"def evaluate_answer({SIGNATURE}): ..."))
    with pytest.raises(ImportError):
        load_eval_script(write(tmp_path, "", "task.txt"))
    with pytest.raises(FileNotFoundError):
        load_eval_script(tmp_path / "nope.py")


@pytest.mark.parametrize(
    ("signature", "missing"),
    [
        ("**kw", "agent_name, answer, answer_name, cache, client, logger, semaphore"),
        ("client, answer, /, agent_name, answer_name, cache, semaphore, logger", "answer, client"),
    ],
)
def test_missing_parameters_are_listed_in_alphabetical_order(signature: str, missing: str, tmp_path: Path):
    with pytest.raises(TypeError) as raised:
        load_eval_script(write(tmp_path, f"async def evaluate_answer({signature}): ..."))
    assert str(raised.value).endswith(f"is missing the parameters {missing}")


@pytest.mark.parametrize(
    ("source", "error"), [("1 / 0", ZeroDivisionError), ("def (", SyntaxError), ("import nope_nope", ImportError)]
)
def test_errors_of_a_script_propagate_and_its_module_is_removed(source: str, error: type[Exception], tmp_path: Path):
    before = set(sys.modules)
    with pytest.raises(error):
        load_eval_script(write(tmp_path, source))
    assert {name for name in set(sys.modules) - before if name.startswith("mind2web2_script_")} == set()


def test_default_paths_of_a_project(tmp_path: Path):
    paths = PathConfig(tmp_path)
    assert paths.project_root == tmp_path
    assert paths.answers_root == tmp_path / "answers"
    assert paths.cache_root == tmp_path / "cache"
    assert paths.eval_results_root == tmp_path / "eval_results"
    assert paths.eval_scripts_root == tmp_path / "eval_scripts"
    assert paths.eval_version == "2025_07_14"
    assert paths.default_script_for("yu_lineage") == tmp_path / "eval_scripts" / "2025_07_14" / "yu_lineage.py"
    for place in (paths.dataset_root, paths.tasks_root, paths.run_eval_script):
        assert place.is_relative_to(tmp_path)


def test_paths_can_be_overridden(tmp_path: Path):
    paths = PathConfig(tmp_path)
    paths.apply_overrides(answers_root=tmp_path / "a", eval_scripts_root="scripts", eval_version="v2", cache_root=None)
    assert (paths.answers_root, paths.cache_root) == (tmp_path / "a", tmp_path / "cache")
    assert paths.default_script_for("t") == Path("scripts/v2/t.py")

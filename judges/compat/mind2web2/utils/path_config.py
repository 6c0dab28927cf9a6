"""Folder layout of a project of the public toolkit."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PathConfig"]


@dataclass(slots=True)
class PathConfig:
    """Paths of the public folder layout below ``project_root``. Every other path can be overridden."""

    project_root: Path
    dataset_root: Path = field(init=False)
    answers_root: Path = field(init=False)
    eval_scripts_root: Path = field(init=False)
    tasks_root: Path = field(init=False)
    eval_results_root: Path = field(init=False)
    cache_root: Path = field(init=False)
    eval_version: str = field(init=False, default="2025_07_14")
    run_eval_script: Path = field(init=False)

    def __post_init__(self) -> None:
        self.project_root = Path(self.project_root)
        self.dataset_root = self.project_root / "dataset"
        self.answers_root = self.project_root / "answers"
        self.eval_scripts_root = self.project_root / "eval_scripts"
        self.tasks_root = self.dataset_root / "tasks"
        self.eval_results_root = self.project_root / "eval_results"
        self.cache_root = self.project_root / "cache"
        self.run_eval_script = self.project_root / "run_eval.py"

    def default_script_for(self, task_id: str) -> Path:
        """Return the task script of a task in ``eval_version``."""
        return self.eval_scripts_root / self.eval_version / f"{task_id}.py"

    def apply_overrides(
        self,
        *,
        dataset_root: str | Path | None = None,
        answers_root: str | Path | None = None,
        eval_scripts_root: str | Path | None = None,
        tasks_root: str | Path | None = None,
        eval_results_root: str | Path | None = None,
        cache_root: str | Path | None = None,
        eval_version: str | None = None,
        run_eval_script: str | Path | None = None,
    ) -> None:
        """Override the given paths; None leaves a path unchanged."""
        paths = {
            "dataset_root": dataset_root,
            "answers_root": answers_root,
            "eval_scripts_root": eval_scripts_root,
            "tasks_root": tasks_root,
            "eval_results_root": eval_results_root,
            "cache_root": cache_root,
            "run_eval_script": run_eval_script,
        }
        for name, path in paths.items():
            if path is not None:
                setattr(self, name, Path(path))
        if eval_version is not None:
            self.eval_version = eval_version

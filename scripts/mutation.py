"""Mutation check of the core: change one line at random, run the tests of its area, and list what no test noticed.

``python scripts/mutation.py --count 200 --seed 1`` prints the mutants that survived. The last line is the share that
the tests found. The same seed and code give the same mutants. The checkout itself is not changed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
TIME_LIMIT_S = 300
"""Seconds for the tests of one mutant. A mutant that makes them hang is found."""

AREAS = {
    "rubrics": ["tests/unit/rubrics", "tests/unit/judges/test_runner.py", "tests/unit/judges/test_settling.py"],
    "judges/grounding": ["tests/unit/judges/grounding", "tests/unit/judges/test_verifier.py"],
    "judges/voting.py": ["tests/unit/judges/test_voting.py", "tests/unit/judges/test_jury.py"],
    "judges/verifier.py": ["tests/unit/judges/test_verifier.py", "tests/unit/judges/test_unseen_pages.py"],
    "cache/urls.py": ["tests/unit/cache/test_urls.py", "tests/unit/cache/test_pages.py"],
    "cache/classify": ["tests/unit/cache/classify", "tests/unit/cache/test_login_walls.py"],
    "answers/citations.py": ["tests/unit/answers/test_citations.py", "tests/unit/answers/binding"],
    "app/jobs": ["tests/unit/app/jobs", "tests/integration/app/jobs"],
}
"""Files and folders of the core with the tests that must notice their faults."""

SWAPPED = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "in": "not in", "not in": "in", "is": "is not", "is not": "is", "and": "or", "or": "and",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One changed place: the characters ``start`` to ``end`` of a file become ``text``."""

    area: str
    path: Path
    line: int
    start: int
    end: int
    text: str


def main() -> int:
    """Check the mutants and return 0."""
    parser = argparse.ArgumentParser(description="Mutation check of the core.")
    parser.add_argument("areas", nargs="*", help=f"areas to check, by default all: {', '.join(AREAS)}")
    parser.add_argument("--count", type=int, default=200, help="number of mutants")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random choice")
    parser.add_argument("--jobs", type=int, default=2, help="mutants that are checked at the same time")
    args = parser.parse_args()
    if unknown := set(args.areas) - set(AREAS):
        parser.error(f"unknown area: {', '.join(sorted(unknown))}")
    places = [mutant for area in args.areas or AREAS for mutant in dict.fromkeys(_places(area))]
    chosen = random.Random(args.seed).sample(places, min(args.count, len(places)))  # noqa: S311 - not a secret
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="assay-mutation-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(args.jobs):
            copies.put(_copy_checkout(Path(folder) / str(number)))
        _check_unchanged(copies, {mutant.area for mutant in chosen})
        with ThreadPoolExecutor(args.jobs) as pool:
            for mutant, noticed in zip(chosen, pool.map(lambda mutant: _is_found(mutant, copies), chosen), strict=True):
                found[mutant.area] += noticed
                if not noticed:
                    print(_describe(mutant), flush=True)
    for area, count in sorted(Counter(mutant.area for mutant in chosen).items()):
        print(f"{area}: {found[area]} of {count}")
    print(f"{found.total()} of {len(chosen)} mutants found ({found.total() / len(chosen):.1%})")
    return 0


def _places(area: str) -> Iterator[Mutant]:
    """Yield every possible mutant of an area, in a fixed order."""
    root = ROOT / area
    for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line.encode()))
        data = source.encode()
        for function in ast.walk(ast.parse(source)):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in (child for statement in function.body for child in ast.walk(statement)):
                for first, last, text in _edits(node, data, starts):
                    yield Mutant(area, path.relative_to(ROOT), data[:first].count(b"\n") + 1, first, last, text)


def _edits(node: ast.AST, data: bytes, starts: list[int]) -> Iterator[tuple[int, int, str]]:
    """Yield the changes of one node of the syntax tree: start and end in bytes, new text."""

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return starts[node.lineno - 1] + node.col_offset, starts[end_line - 1] + end_column

    def operator(left: ast.expr, right: ast.expr) -> Iterator[tuple[int, int, str]]:
        first, last = span(left)[1], span(right)[0]
        sign = re.search(rb"<=|>=|==|!=|<|>|\bnot\s+in\b|\bis\s+not\b|\bin\b|\bis\b|\band\b|\bor\b", data[first:last])
        if sign:
            swapped = SWAPPED[" ".join(sign.group().decode().split())]
            yield first + sign.start(), first + sign.end(), swapped

    match node:
        case ast.Compare(left=left, comparators=[right]):
            yield from operator(left, right)
        case ast.BoolOp(values=[left, right]):
            yield from operator(left, right)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield span(node)[0], span(operand)[0], ""
        case ast.Constant(value=bool(value)):
            yield *span(node), str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield *span(node), repr(value + 1)
        case ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield *span(node), "pass"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield *span(node), "pass"
        case ast.If(orelse=[], body=[ast.Return() | ast.Raise() | ast.Continue()]):
            yield *span(node), "pass"
        case _:
            pass


def _copy_checkout(folder: Path) -> Path:
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    for name in filter(None, names.split("\0")):
        if (source := ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name)
    return folder


def _check_unchanged(copies: SimpleQueue[Path], areas: set[str]) -> None:
    """Run the tests without a change first: a test that fails anyway would find every mutant."""
    copy = copies.get()
    for area in sorted(areas):
        if (problem := _run_tests(copy, area)) is not None:
            raise SystemExit(f"the tests of {area} fail without a mutant:\n{problem}")
    copies.put(copy)


def _is_found(mutant: Mutant, copies: SimpleQueue[Path]) -> bool:
    copy = copies.get()
    changed = copy / mutant.path
    original = changed.read_bytes()
    try:
        changed.write_bytes(original[: mutant.start] + mutant.text.encode() + original[mutant.end :])
        _forget_bytecode(changed)
        return _run_tests(copy, mutant.area) is not None
    finally:
        changed.write_bytes(original)
        _forget_bytecode(changed)
        copies.put(copy)


def _run_tests(copy: Path, area: str) -> str | None:
    """Return the end of the output if a test fails, None if all pass."""
    # Processes started by tests import the copy too, not the checkout that is installed in the environment.
    environment = {**os.environ, "PYTHONPATH": ":".join(str(copy / part) for part in ("", "judges/compat", "client"))}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(  # noqa: S603
            [*command, *AREAS[area]], cwd=copy, env=environment, timeout=TIME_LIMIT_S, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {TIME_LIMIT_S} s"
    return None if done.returncode == 0 else done.stdout[-2_000:]


def _forget_bytecode(path: Path) -> None:
    """Remove compiled files: a mutant can have the size and the time of the original."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _describe(mutant: Mutant) -> str:
    data = (ROOT / mutant.path).read_bytes()
    old = " ".join(data[mutant.start : mutant.end].decode().split())
    line = data.decode().splitlines()[mutant.line - 1].strip()
    return f"survived: {mutant.path}:{mutant.line}: {old[:60]!r} -> {mutant.text!r} in {line[:100]!r}"


if __name__ == "__main__":
    sys.exit(main())

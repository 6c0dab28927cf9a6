"""Registration of all commands, and conversion of expected errors to a message and an exit code.

Keep this module cheap to import, because every ``assay --help`` imports it. Commands import their dependencies when
they run.
"""

from __future__ import annotations

import errno
import functools
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, NamedTuple

import typer

from answers.errors import AnswersError
from app.cli import (
    backup,
    cache,
    capture,
    demo,
    doctor,
    evaluate,
    jobs,
    keys,
    providers,
    prune,
    results,
    serve,
    submit,
    summary,
    tasks,
)
from app.console.errors import CliError, Exit, Interrupted
from app.console.groups import SectionedGroup
from app.console.streams import print_error
from app.errors import AppError
from app.features.bundles import cli as bundles
from app.features.check import cli as check
from app.features.comparison import cli_compare, cli_gate
from app.features.drafting import cli as drafting
from app.features.interop import cli_export, cli_import, cli_page_caches
from app.features.meta_eval import cli as meta_eval
from app.features.rescore import cli as rescore
from app.features.suites import cli_compare_runs, cli_mind2web, cli_mm_mind2web
from app.features.tasks import cli as task_tests
from app.interruption import INTERRUPTION
from cache.backends.browser_search import INSTALL_BROWSER
from cache.errors import BrowserUnavailable, CacheError
from judges.errors import JudgeBug, JudgeError, missing_extra

_UNWRITABLE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOTDIR, errno.EISDIR}
)
"""Errors of the operating system that mean that a file or folder cannot be written."""
_INVALID_PATH = frozenset({errno.ELOOP, errno.ENAMETOOLONG})


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        commit = _commit()
        typer.echo(f"assay {version('assay')}" + (f" (commit {commit})" if commit else ""))
        raise typer.Exit


def _commit() -> str:
    """Return the commit of the source: of the repository it was installed from, or of its checkout. Else ""."""
    import json
    import subprocess
    from importlib.metadata import distribution
    from pathlib import Path

    origin = json.loads(distribution("assay").read_text("direct_url.json") or "{}")
    installed = str(origin.get("vcs_info", {}).get("commit_id", ""))[:12]
    folder = Path(__file__).parents[2]
    if installed or not (folder / ".git").exists():
        return installed
    command = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout.strip()  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""


def program() -> typer.Typer:
    """Build the ``assay`` command with all subcommands."""
    top = typer.Typer(
        name="assay",
        cls=SectionedGroup,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    top.callback()(_options)
    for section, name, command in (
        ("Evaluate", "demo", demo.demo),
        ("Evaluate", "evaluate", evaluate.evaluate),
        ("Evaluate", "submit", submit.submit),
        ("Evaluate", "check", check.check),
        ("Operate", "serve", serve.serve),
    ):
        # The command itself reports arguments without an option: the folder of answers.
        extra = {"allow_extra_args": name == "evaluate"}
        top.command(name, rich_help_panel=section, context_settings=extra)(command)
    for section, name, group in (
        ("Evaluate", "pages", _pages()),
        ("Inspect", "results", _results()),
        ("Inspect", "bundle", bundles.program()),
        ("Author", "tasks", _tasks()),
        ("Operate", "admin", _admin()),
        ("Benchmarks", "meta-eval", meta_eval.program()),
        ("Benchmarks", "suites", _suites()),
    ):
        top.add_typer(group, name=name, rich_help_panel=section)
    return top


def _group(description: str, commands: Mapping[str, Callable[..., None]]) -> typer.Typer:
    group = typer.Typer(help=description, no_args_is_help=True)
    for name, command in commands.items():
        group.command(name)(command)
    return group


def _pages() -> typer.Typer:
    return _group(
        "Capture, import and export the pages that answers cite.",
        {"capture": capture.capture, "import": cli_page_caches.import_, "export": cli_page_caches.export},
    )


def _results() -> typer.Typer:
    return _group(
        "List, summarize, compare, export and rescore results.",
        {
            "show": results.show,
            "summary": summary.summary,
            "compare": cli_compare.compare,
            "gate": cli_gate.gate,
            "rescore": rescore.rescore,
            "export": cli_export.export,
            "import": cli_import.import_,
        },
    )


def _tasks() -> typer.Typer:
    return _group(
        "List, create, draft and test task files.",
        {"show": tasks.show, "new": tasks.new, "draft": drafting.draft, "test": task_tests.test_judge},
    )


def _suites() -> typer.Typer:
    return _group(
        "Run models over Mind2Web and Multimodal-Mind2Web~.",
        {
            "mind2web": cli_mind2web.mind2web,
            "mm-mind2web": cli_mm_mind2web.mm_mind2web,
            "compare": cli_compare_runs.compare,
            "build": cli_mm_mind2web.build,
        },
    )


def _admin() -> typer.Typer:
    group = _group(
        "Doctor, jobs, keys, providers, reply cache, clean-up, backups.",
        {
            "doctor": doctor.doctor,
            "jobs": jobs.jobs,
            "providers": providers.providers,
            "cache": cache.cache,
            "prune": prune.prune,
            "backup": backup.backup,
            "restore": backup.restore,
        },
    )
    group.add_typer(
        _group("Create, list and revoke API keys.", {"create": keys.create, "list": keys.list_, "revoke": keys.revoke}),
        name="keys",
    )
    return group


def _options(
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Check the cited answers of research agents. Every score can be verified."""


@functools.cache
def _command() -> Callable[..., object]:
    return typer.main.get_command(program())


def run(arguments: list[str] | None = None) -> None:
    """Run one command. Always raises SystemExit.

    Errors that a user can cause or fix become a message on stderr and an exit code. All other errors are bugs and keep
    their traceback.
    """
    try:
        _command()(args=arguments, prog_name="assay")
    except Exception as error:  # expected errors may be inside exception groups; all others are raised again
        if isinstance(error, Interrupted):
            INTERRUPTION.message = str(error)
            INTERRUPTION.announce()
            raise SystemExit(INTERRUPTION.exit_code) from None
        ending = _ending_of(error)
        if ending is None or INTERRUPTION.signal_number is not None:
            raise  # errors of a command that is being interrupted are not printed
        hints = (_similar_file(sys.argv[1:] if arguments is None else arguments, ending.message), ending.hint)
        print_error(ending.message, "\n".join(filter(None, hints)))
        raise SystemExit(ending.code) from None


def _similar_file(arguments: Sequence[str], message: str) -> str | None:
    """Return a suggestion for an argument that names a missing file or folder, if the message is about it."""
    import re
    from difflib import get_close_matches
    from pathlib import Path

    for path in map(Path, arguments):
        is_named = re.search(rf"(?<![\w./-]){re.escape(str(path))}(?![\w-])", message)
        with suppress(OSError):  # no path, or in a folder that cannot be read
            if is_named and not path.exists() and path.absolute().parent.is_dir():
                names = [each.name for each in path.absolute().parent.iterdir()]
                close = get_close_matches(path.name, names, cutoff=0.7)
                if close:
                    return f"Did you mean: {', '.join(close)}?"
    return None


class _Ending(NamedTuple):
    message: str
    hint: str | None = None
    code: Exit = Exit.FAILED


def _ending_of(error: Exception) -> _Ending | None:
    """Return how an expected error ends the command, or None for a bug. Of a group, all errors must be expected."""
    if isinstance(error, ExceptionGroup):
        endings = [_ending_of(each) for each in error.exceptions]
        return None if None in endings else endings[0]
    if (missing := missing_extra(error)) is not None:
        return _Ending(missing)
    if isinstance(error, CliError):
        return _Ending(str(error), error.hint, error.exit_code)
    if isinstance(error, JudgeBug):
        return _Ending(str(error), error.traceback)
    if isinstance(error, BrowserUnavailable):
        hint = "" if INSTALL_BROWSER in str(error) else f"{INSTALL_BROWSER}. "
        return _Ending(str(error), f"{hint}`assay admin doctor` tests the browser.")
    if isinstance(error, AppError | JudgeError | CacheError | AnswersError):
        return _Ending(str(error))
    if isinstance(error, OSError) and (failed := _failed_operation(error)) is not None:
        space = "Free some space, or choose" if failed == "write" else "Choose"
        hint = f"{space} another folder: --out or --cache of this command, or ASSAY_DATA_DIR."
        return _Ending(f"cannot {failed} {error.filename or 'a file'}: {error.strerror}", hint)
    return None


def _failed_operation(error: OSError) -> str | None:
    """Return what cannot be done with the file or folder of an error. None: the error is a bug."""
    if error.errno in _UNWRITABLE:
        return "write"
    if error.errno in _INVALID_PATH:
        return "use"
    # Some file systems, for example /proc, report a folder that cannot be created as a missing one.
    raised_by = [frame.name for frame in traceback.extract_tb(error.__traceback__)[-1:]]
    return "create the folder" if error.errno == errno.ENOENT and raised_by == ["mkdir"] else None

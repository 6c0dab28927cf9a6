"""Registration of all commands, and conversion of expected errors to a message and an exit code.

Keep this module cheap to import, because every ``assay --help`` imports it. The modules of a command are imported when
the command is used.
"""

from __future__ import annotations

import errno
import functools
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
import typer.core

from answers.errors import AnswersError
from app.console.errors import CliError, Exit, Interrupted
from app.console.option_groups import with_options
from app.console.streams import print_error, stderr_console
from app.errors import AppError
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
        from app.cli.version import version_line

        typer.echo(version_line())
        raise typer.Exit


class _Entry(NamedTuple):
    """Line of ``assay --help``. ``load`` imports the modules of the command or group and builds it."""

    section: str
    summary: str
    load: Callable[[], typer.Typer]


def _demo() -> typer.Typer:
    from app.cli import demo

    return _command(demo.demo)


def _evaluate() -> typer.Typer:
    from app.cli import evaluate

    # The command itself reports arguments without an option: the folder of answers.
    return _command(evaluate.evaluate, context_settings={"allow_extra_args": True})


def _view() -> typer.Typer:
    from app.cli import view

    return _command(view.view)


def _submit() -> typer.Typer:
    from app.cli import submit

    return _command(submit.submit)


def _check() -> typer.Typer:
    from app.features.check import cli as check

    return _command(check.check)


def _pages() -> typer.Typer:
    from app.cli import capture
    from app.features.interop import cli_page_caches

    return _group({"capture": capture.capture, "import": cli_page_caches.import_, "export": cli_page_caches.export})


def _results() -> typer.Typer:
    from app.cli import results, summary
    from app.features.comparison import cli_compare, cli_gate
    from app.features.interop import cli_export, cli_import
    from app.features.rescore import cli as rescore

    return _group(
        {
            "show": results.show,
            "summary": summary.summary,
            "compare": cli_compare.compare,
            "gate": cli_gate.gate,
            "rescore": rescore.rescore,
            "export": cli_export.export,
            "import": cli_import.import_,
        }
    )


def _bundle() -> typer.Typer:
    from app.features.bundles import cli as bundles

    return _group({"export": bundles.export, "verify": bundles.verify, "replay": bundles.replay})


def _tasks() -> typer.Typer:
    from app.cli import tasks
    from app.features.drafting import cli as drafting
    from app.features.tasks import cli as task_tests

    return _group({"show": tasks.show, "new": tasks.new, "draft": drafting.draft, "test": task_tests.test_judge})


def _serve() -> typer.Typer:
    from app.cli import serve

    return _command(serve.serve)


def _admin() -> typer.Typer:
    from app.cli import backup, doctor, jobs, keys, providers, prune, reply_cache

    group = _group(
        {
            "doctor": doctor.doctor,
            "jobs": jobs.jobs,
            "providers": providers.providers,
            "cache": reply_cache.cache,
            "prune": prune.prune,
            "backup": backup.backup,
            "restore": backup.restore,
        }
    )
    key_commands = _group({"create": keys.create, "list": keys.list_, "revoke": keys.revoke})
    group.add_typer(key_commands, name="keys", help="Create, list and revoke API keys.")
    return group


def _meta_eval() -> typer.Typer:
    from app.features.meta_eval import cli as meta_eval
    from app.features.meta_eval import cli_bench

    group = _group({"measure": meta_eval.measure, "import": meta_eval.import_labels})
    group.command("bench", cls=cli_bench.BenchCommand)(with_options(cli_bench.bench))
    return group


def _suites() -> typer.Typer:
    from app.features.suites import cli_compare_runs, cli_mind2web, cli_mm_mind2web

    return _group(
        {
            "mind2web": cli_mind2web.mind2web,
            "mm-mind2web": cli_mm_mind2web.mm_mind2web,
            "compare": cli_compare_runs.compare,
            "build": cli_mm_mind2web.build,
        }
    )


_ENTRIES = {
    "demo": _Entry("Evaluate", "Judge the shipped example with the real service and browser.", _demo),
    "evaluate": _Entry("Evaluate", "Judge a folder of answers without a server.", _evaluate),
    "submit": _Entry("Evaluate", "Submit answers to a running server.", _submit),
    "check": _Entry("Evaluate", "Check whether the sources of a report support its statements.", _check),
    "pages": _Entry("Evaluate", "Capture, import and export the pages that answers cite.", _pages),
    "view": _Entry("Inspect", "Open results of a folder, a bundle or a check in the browser.", _view),
    "results": _Entry("Inspect", "List, summarize, compare, export and rescore results.", _results),
    "bundle": _Entry("Inspect", "Export, verify and replay evidence bundles.", _bundle),
    "tasks": _Entry("Author", "List, create, draft and test task files.", _tasks),
    "serve": _Entry("Operate", "Run the service: API, dashboard and embedded workers.", _serve),
    "admin": _Entry("Operate", "Doctor, jobs, keys, providers, reply cache, clean-up, backups.", _admin),
    "meta-eval": _Entry("Benchmarks", "Measure judges against labels of people.", _meta_eval),
    "suites": _Entry("Benchmarks", "Run models over Mind2Web and Multimodal-Mind2Web~.", _suites),
}
"""The commands in the order of ``assay --help``. Each is loaded when it is needed: all of them take two seconds."""


def _command(function: Callable[..., None], *, context_settings: dict[str, Any] | None = None) -> typer.Typer:
    alone = typer.Typer(add_completion=False, **_STYLE)
    alone.command(context_settings=context_settings)(with_options(function))
    return alone


def _group(commands: Mapping[str, Callable[..., None]]) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, add_completion=False, **_STYLE)
    group.callback()(lambda: None)
    for name, command in commands.items():
        group.command(name)(with_options(command))
    return group


class _Commands(Mapping[str, Any]):
    """The commands by name, loaded when they are used."""

    def __getitem__(self, name: str) -> Any:
        return _loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_ENTRIES)

    def __len__(self) -> int:
        return len(_ENTRIES)


@functools.cache
def _loaded(name: str) -> Any:
    entry = _ENTRIES[name]
    command = typer.main.get_command(entry.load())
    command.name = name
    if not command.help:
        command.help = entry.summary
    _warn_of_unknown_variables()
    return command


def _warn_of_unknown_variables() -> None:
    from app.settings import unknown_variables

    for message in unknown_variables():
        stderr_console().print_line(f"warning: {message}")


class _Program(typer.core.TyperGroup):
    """Group whose help lists its commands in sections, without loading them."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_ENTRIES)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for section in dict.fromkeys(entry.section for entry in _ENTRIES.values()):
            rows = [(name, entry.summary) for name, entry in _ENTRIES.items() if entry.section == section]
            with formatter.section(section):
                formatter.write_dl(rows, col_max=max(map(len, _ENTRIES)))


_STYLE: Final[dict[str, Any]] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}


def program() -> typer.Typer:
    """Build the ``assay`` command."""
    top = typer.Typer(
        name="assay",
        cls=_Program,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        **_STYLE,
    )
    top.callback()(_options)
    return top


def _options(
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Check the cited answers of research agents. Every score can be verified."""


def run(arguments: list[str] | None = None) -> None:
    """Run one command. Always raises SystemExit.

    Errors that a user can cause or fix become a message on stderr and an exit code. All other errors are bugs and keep
    their traceback.
    """
    try:
        typer.main.get_command(program())(args=arguments, prog_name="assay")
    except Exception as error:  # expected errors may be inside exception groups; all others are raised again
        if isinstance(error, Interrupted):
            INTERRUPTION.message = str(error)
            INTERRUPTION.announce()
            raise SystemExit(INTERRUPTION.exit_code) from None
        ending = _ending_of(error)
        if ending is None or INTERRUPTION.signal_number is not None:
            raise  # errors of a command that is being interrupted are not printed
        hints = (_similar_file(sys.argv[1:] if arguments is None else arguments, ending.message), ending.hint)
        print_error(ending.message, "\n".join(dict.fromkeys(filter(None, hints))))
        raise SystemExit(ending.code) from None


def _similar_file(arguments: Sequence[str], message: str) -> str | None:
    """Return a suggestion for an argument that names a missing file or folder, if the message is about it."""
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

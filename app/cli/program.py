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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Final, NamedTuple

import typer
import typer.core

from answers.errors import AnswersError
from app.console.errors import CliError, Exit, Interrupted
from app.console.option_groups import with_options
from app.console.streams import print_error
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
    """Command or group of commands.

    ``target`` is the function of a command (``module:function``), or the commands of a group by name. The modules are
    imported when the command is used.
    """

    summary: str
    target: str | Mapping[str, str | _Entry]
    section: str = ""
    """Section of ``assay --help``."""


_ENTRIES: Final[Mapping[str, _Entry]] = {
    "demo": _Entry(
        "Judge the shipped example with the real service and browser.", "app.cli.demo:demo", section="Evaluate"
    ),
    "evaluate": _Entry("Judge a folder of answers without a server.", "app.cli.evaluate:evaluate", section="Evaluate"),
    "submit": _Entry("Submit answers to a running server.", "app.cli.submit:submit", section="Evaluate"),
    "check": _Entry(
        "Check whether the sources of a report support its statements.",
        "app.features.check.cli:check",
        section="Evaluate",
    ),
    "pages": _Entry(
        "Capture, import and export the pages that answers cite.",
        {
            "capture": "app.cli.capture:capture",
            "import": "app.features.interop.cli_page_caches:import_",
            "export": "app.features.interop.cli_page_caches:export",
        },
        section="Evaluate",
    ),
    "results": _Entry(
        "List, summarize, compare, export and rescore results.",
        {
            "show": "app.cli.results:show",
            "summary": "app.cli.summary:summary",
            "compare": "app.features.comparison.cli_compare:compare",
            "gate": "app.features.comparison.cli_gate:gate",
            "rescore": "app.features.rescore.cli:rescore",
            "export": "app.features.interop.cli_export:export",
            "import": "app.features.interop.cli_import:import_",
        },
        section="Inspect",
    ),
    "bundle": _Entry(
        "Export, verify and replay evidence bundles.",
        {
            "export": "app.features.bundles.cli:export",
            "verify": "app.features.bundles.cli:verify",
            "replay": "app.features.bundles.cli:replay",
        },
        section="Inspect",
    ),
    "tasks": _Entry(
        "List, create, draft and test task files.",
        {
            "show": "app.cli.tasks:show",
            "new": "app.cli.tasks:new",
            "draft": "app.features.drafting.cli:draft",
            "test": "app.features.tasks.cli:test_judge",
        },
        section="Author",
    ),
    "serve": _Entry("Run the service: API, dashboard and embedded workers.", "app.cli.serve:serve", section="Operate"),
    "admin": _Entry(
        "Doctor, jobs, keys, providers, reply cache, clean-up, backups.",
        {
            "doctor": "app.cli.doctor:doctor",
            "jobs": "app.cli.jobs:jobs",
            "providers": "app.cli.providers:providers",
            "cache": "app.cli.cache:cache",
            "prune": "app.cli.prune:prune",
            "backup": "app.cli.backup:backup",
            "restore": "app.cli.backup:restore",
            "keys": _Entry(
                "Create, list and revoke API keys.",
                {"create": "app.cli.keys:create", "list": "app.cli.keys:list_", "revoke": "app.cli.keys:revoke"},
            ),
        },
        section="Operate",
    ),
    "meta-eval": _Entry(
        "Measure judges against labels of people.",
        {
            "measure": "app.features.meta_eval.cli:measure",
            "import": "app.features.meta_eval.cli:import_labels",
            "bench": "app.features.meta_eval.cli_bench:bench",
        },
        section="Benchmarks",
    ),
    "suites": _Entry(
        "Run models over Mind2Web and Multimodal-Mind2Web~.",
        {
            "mind2web": "app.features.suites.cli_mind2web:mind2web",
            "mm-mind2web": "app.features.suites.cli_mm_mind2web:mm_mind2web",
            "compare": "app.features.suites.cli_compare_runs:compare",
            "build": "app.features.suites.cli_mm_mind2web:build",
        },
        section="Benchmarks",
    ),
}
"""The commands in the order of ``assay --help``. Each is loaded when it is needed: all of them take two seconds."""
_CLASSES: Final = {"app.features.meta_eval.cli_bench:bench": "app.features.meta_eval.cli_bench:BenchCommand"}
"""Classes of commands with arguments of their own form."""
# The command itself reports arguments without an option: the folder of answers.
_CONTEXTS: Final = {"app.cli.evaluate:evaluate": {"allow_extra_args": True}}


def _typer_of(entry: _Entry) -> typer.Typer:
    """Import the modules of a command or group, and build it."""
    built = typer.Typer(no_args_is_help=not isinstance(entry.target, str), add_completion=False, **_STYLE)
    if isinstance(entry.target, str):
        _add(built, None, entry.target)
        return built
    built.callback()(lambda: None)
    for name, target in entry.target.items():
        if isinstance(target, str):
            _add(built, name, target)
        else:
            built.add_typer(_typer_of(target), name=name, help=target.summary)
    return built


def _add(group: typer.Typer, name: str | None, target: str) -> None:
    kind = resolve_name(_CLASSES[target]) if target in _CLASSES else None
    group.command(name, cls=kind, context_settings=_CONTEXTS.get(target))(with_options(resolve_name(target)))


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
    command = typer.main.get_command(_typer_of(entry))
    command.name = name
    if not command.help:
        command.help = entry.summary
    return command


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
        print_error(ending.message, "\n".join(filter(None, hints)))
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

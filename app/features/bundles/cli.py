"""``assay bundle``: export, verify, replay and sign evidence bundles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from app.console import event_loop
from app.console.connection import JsonOption
from app.console.database import run_in_database
from app.console.errors import Exit, ToolFailed, WrongUsage, require_folder
from app.console.judging_options import AgentOption, TaskOption
from app.console.streams import counted, print_json, print_line, stderr_console, stdout_console
from app.console.tables import bounds_text

if TYPE_CHECKING:
    from app.features.bundles.exporting import ExportReport
    from app.features.bundles.replaying import ReplayedResult
    from app.features.bundles.verifying import VerificationReport
    from app.settings import Settings
    from app.storage.database import Database

BundleArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE.zip", help="Bundle file.")]
RootOption: TypeAlias = Annotated[
    str | None, typer.Option("--root", metavar="HASH", help="Expected root hash, from a source that you trust.")
]
SignatureOption: TypeAlias = Annotated[
    Path | None, typer.Option("--signature", help="Signature file; needs --public-key.")
]
PublicKeyOption: TypeAlias = Annotated[
    Path | None, typer.Option("--public-key", help="Public key of the expected signer (PEM).")
]
SHOWN_PROBLEMS = 20
UNKNOWN_AUTHOR = (
    "author not checked: who made this file could have changed results, votes and evidence together, or left some out. "
    "Use --root HASH with the published root hash, or --signature FILE with --public-key FILE."
)


def program() -> typer.Typer:
    """Return the ``bundle`` command group."""
    group = typer.Typer(help="Export, verify, replay and sign evidence bundles.", no_args_is_help=True)
    group.command("export")(export)
    group.command("verify")(verify)
    group.command("replay")(replay)
    group.command("key")(key)
    group.command("sign")(sign)
    return group


def export(
    agent: AgentOption,
    out: Annotated[Path, typer.Option("--out", metavar="FILE.zip", help="Bundle file to write.")],
    task: TaskOption = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            help="Read the results of `assay evaluate` from this folder (default: the database)",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", help="With --results: page cache folder that was passed to `assay evaluate`."),
    ] = None,
    no_content: Annotated[
        bool, typer.Option("--no-content", help="Leave out page content; keep hashes, URLs and short quotes.")
    ] = False,
    wacz: Annotated[bool, typer.Option("--wacz", help="Add the captured pages as a WACZ web archive.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the newest result of each answer of an agent to a zip file. It includes all evidence."""
    if no_content and wacz:
        raise WrongUsage("--wacz needs page content, which --no-content leaves out; use only one of them")
    if cache is not None and results is None:
        raise WrongUsage("--cache applies only to result folders; add --results")
    options = {"content": not no_content, "wacz": wacz}
    if results is None:
        exported = run_in_database(
            lambda settings, database: _export_from_service(settings, database, agent, task or [], out, options)
        )
    else:
        require_folder("--results", results)
        exported = _export_from_folder(results, cache, agent, task or [], out, options)
    if as_json:
        print_json(
            {
                "file": str(out),
                "root": exported.root,
                "bytes": exported.bytes,
                "files": exported.files,
                "results": list(exported.results),
                "absent": [{"path": each.path, "reason": each.reason} for each in exported.absent],
            }
        )
        return
    print_line(f"root {exported.root}")
    stderr_console().print_line(
        f"{out}: {counted(len(exported.results), 'result')}, {exported.files} files, {exported.bytes} bytes"
    )
    for each in exported.absent[:SHOWN_PROBLEMS]:
        stderr_console().print_line(f"missing: {each.path}: {each.reason}")
    if len(exported.absent) > SHOWN_PROBLEMS:
        stderr_console().print(
            f"and {len(exported.absent) - SHOWN_PROBLEMS} more, listed in data/bundle.json", markup=False
        )


async def _export_from_service(
    settings: Settings, database: Database, agent: str, tasks: list[str], out: Path, options: dict[str, bool]
) -> ExportReport:
    from asyncio import to_thread

    from app.engine.runtime import open_blobs
    from app.features.bundles.agent_results import from_database
    from app.features.bundles.exporting import EvidenceStores, export_bundle
    from app.features.bundles.recorded_roots import record_root
    from app.observability.redaction import Redactor
    from app.storage.captures import PostgresCaptureIndex

    blobs = await to_thread(open_blobs, settings)
    stores = EvidenceStores(blobs=blobs, captures=PostgresCaptureIndex(database), redactor=Redactor(settings.secrets))
    exported = await export_bundle(stores, await from_database(database, agent, tasks), out, **options)
    await record_root(database, exported, content=options["content"])
    return exported


def _export_from_folder(
    results: Path, cache: Path | None, agent: str, tasks: list[str], out: Path, options: dict[str, bool]
) -> ExportReport:
    from asyncio import to_thread

    from app.console.judging_options import judging_settings, quiet_logging
    from app.engine.public_cache import PublicCache
    from app.engine.runtime import open_blobs
    from app.features.bundles.agent_results import from_folder
    from app.features.bundles.exporting import EvidenceStores, export_bundle
    from app.features.bundles.recorded_roots import record_root_in_files
    from app.observability.redaction import Redactor
    from cache.capture_index import FolderIndex

    settings = judging_settings(evidence=None if cache is None else PublicCache(cache).evidence_folder(agent))
    quiet_logging(settings)

    async def run() -> ExportReport:
        blobs = await to_thread(open_blobs, settings)
        captures = await FolderIndex.open(settings.data_dir / "captures")
        stores = EvidenceStores(blobs=blobs, captures=captures, redactor=Redactor(settings.secrets))
        agent_results = await from_folder(results, agent, tasks)
        exported = await export_bundle(stores, agent_results, out, **options)
        for reason in await to_thread(
            lambda: list(record_root_in_files(agent_results, exported, content=options["content"]))
        ):
            stderr_console().print_line(f"root hash not added to the result file: {reason}")
        return exported

    return event_loop.run(run())


def verify(
    file: BundleArgument,
    root: RootOption = None,
    signature: SignatureOption = None,
    public_key: PublicKeyOption = None,
    repacked: Annotated[
        bool, typer.Option("--repacked", help="Accept a zip that another program wrote; check only its contents.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify the hashes and the byte layout of a bundle."""
    report, signed_by = _verified(file, root, signature, public_key, repacked=repacked)
    if as_json:
        print_json(_verification_json(file, report, signed_by, root_checked=root is not None))
    else:
        _print_verification(report, signed_by)
        if report.valid and root is None and signed_by is None:
            stderr_console().print_line(UNKNOWN_AUTHOR)
    if not report.valid:
        raise typer.Exit(Exit.FAILED)


def _verified(
    file: Path, root: str | None, signature: Path | None, public_key: Path | None, *, repacked: bool
) -> tuple[VerificationReport, str | None]:
    """Verify a bundle, with its root hash and its signature if given. Return the report and the id of the signer."""
    from app.features.bundles.verifying import verify as verify_bundle

    if (signature is None) != (public_key is None):
        raise WrongUsage("--signature and --public-key must be used together: the key identifies the signer")
    report = verify_bundle(file, expected_root=root, repacked=repacked)
    if report.valid and signature is not None and public_key is not None:
        from app.features.bundles.signing import check_signature  # needs the extra "bundles"

        return report, check_signature(report.root, signature, public_key)
    return report, None


def _verification_json(
    file: Path, report: VerificationReport, signed_by: str | None, *, root_checked: bool
) -> dict[str, Any]:
    return {
        "file": str(file),
        "sound": report.valid,
        "root": report.root,
        "files": report.files,
        "bytes": report.bytes,
        "root_checked": root_checked,
        "signed_by": signed_by,
        "problems": list(report.problems),
    }


def _print_verification(report: VerificationReport, signed_by: str | None) -> None:
    if report.valid:
        print_line(f"root {report.root}")
        signed = f", signed by the key {signed_by}" if signed_by else ""
        stderr_console().print_line(f"valid: {report.files} files, {report.bytes} bytes{signed}")
        return
    for problem in report.problems[:SHOWN_PROBLEMS]:
        stderr_console().print_line(problem)
    stderr_console().print(f"[bold red]not valid[/]: {counted(len(report.problems), 'problem')}")


def replay(
    file: BundleArgument,
    run_scripts: Annotated[
        bool,
        typer.Option("--run-scripts", help="Run the bundle's judge scripts again. This executes code from the bundle."),
    ] = False,
    root: RootOption = None,
    signature: SignatureOption = None,
    public_key: PublicKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute every score from the bundle alone. This needs no network, no API key and no money."""
    from app.features.bundles.replaying import first_difference
    from app.features.bundles.replaying import replay as replay_bundle

    verification, signed_by = _verified(file, root, signature, public_key, repacked=True)
    if not verification.valid:
        raise ToolFailed(f"{file} failed verification: {verification.problems[0]}", hint=f"assay bundle verify {file}")
    results = replay_bundle(file)
    if run_scripts:
        results = _rerun_scripts(file, results)
    first, differs = first_difference(results), any(result.differences for result in results)
    if as_json:
        print_json(
            {
                "file": str(file),
                "root": verification.root,
                "root_checked": root is not None,
                "signed_by": signed_by,
                "scripts_run": run_scripts,
                "equal": first is None,
                "first_difference": first if differs else None,
                "results": [result.to_json() for result in results],
            }
        )
    else:
        _print_replay(results, first, differs=differs)
        if root is None and signed_by is None:
            stderr_console().print_line(UNKNOWN_AUTHOR)
    if first is not None:
        raise typer.Exit(Exit.FAILED if differs else Exit.INCOMPLETE)


def _rerun_scripts(file: Path, results: list[ReplayedResult]) -> list[ReplayedResult]:
    from app.console.judging_options import quiet_logging
    from app.features.bundles.rerunning import rerun
    from app.settings import load_settings

    settings = load_settings()
    quiet_logging(settings)
    stderr_console().print_line(
        "running the judge scripts of the bundle: code of its author, with the permissions of your account"
    )
    return event_loop.run(rerun(file, results, settings))


def _print_replay(results: list[ReplayedResult], first: str | None, *, differs: bool) -> None:
    console = stdout_console()
    for result in results:
        word = "equal" if result.equal else "different" if result.differences else "unchecked"
        score_text = _score_text(result.figures)
        if result.with_overrides is not None:
            score_text += f", {_score_text(result.with_overrides)} with overrides"
        console.print_line(f"{word}  {result.task_id} {result.answer_name}  score {score_text}")
    left_out = list(dict.fromkeys(text for result in results for text in result.not_compared))
    for text in left_out[:SHOWN_PROBLEMS]:
        stderr_console().print_line(f"not compared: {text}")
    if len(left_out) > SHOWN_PROBLEMS:
        stderr_console().print(f"and {len(left_out) - SHOWN_PROBLEMS} more; --json lists all", markup=False)
    if first is None:
        stderr_console().print(
            f"equal: {counted(len(results), 'result')} recomputed from the bundle alone", markup=False
        )
    else:
        explanation = "first difference" if differs else "not checked"
        stderr_console().print_line(f"{explanation}: {first}")


def _score_text(figures: Mapping[str, Any]) -> str:
    """Return the score with its bounds. Results of the public toolkit have only ``final_score``."""
    score, final = figures.get("score"), figures.get("final_score")
    if score is None and isinstance(final, float | int):
        score = {"low": final, "high": final}
    return bounds_text(score)


def key(file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write the private key to.")]) -> None:
    """Create a key pair for signing bundles. The public key is written to FILE.pub."""
    from app.features.bundles.signing import make_key

    public = make_key(file)
    stderr_console().print_line(f"private key {file}, public key {public}: share only the public key")


def sign(
    file: BundleArgument,
    private_key: Annotated[Path, typer.Option("--key", help="Private key from `assay bundle key`.")],
    out: Annotated[Path | None, typer.Option("--out", help="Signature file to write (default: FILE.zip.sig).")] = None,
) -> None:
    """Sign the root hash of a bundle. Write a separate signature file."""
    from app.features.bundles.signing import sign as sign_root
    from app.features.bundles.verifying import verify as verify_bundle
    from cache.atomic_files import write_atomic

    report = verify_bundle(file, repacked=True)
    if not report.valid:
        raise ToolFailed(f"{file} failed verification: {report.problems[0]}", hint=f"assay bundle verify {file}")
    target = out or file.with_name(f"{file.name}.sig")
    write_atomic(target, sign_root(report.root, private_key))
    stderr_console().print_line(f"signed root {report.root} in {target}")

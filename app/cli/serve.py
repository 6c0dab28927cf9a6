"""``assay serve`` and ``assay worker``: the programs that stay. Both drain on SIGTERM or Ctrl-C and exit 0."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.console import event_loop
from app.console.errors import Interrupted, ToolFailed, WrongUsage
from app.console.judging_options import IsolateOption, OnOff
from app.console.streams import remarks

if TYPE_CHECKING:
    from app.settings import Settings

BACKLOG = 2048


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; a public one needs keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8000,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Embedded workers; 0: none. Default: ASSAY_MAX_TASKS.")
    ] = None,
    isolate: IsolateOption = None,
) -> None:
    """Run the service: the API, the dashboard, and workers in the same process."""
    from app.server import processes as serving

    settings = _prepared(isolate)
    with listen(host, port) as listener:
        url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        count = settings.max_tasks if workers is None else workers

        def ready() -> None:
            remarks().print(
                f"assay serves at {url}: model {settings.model}, {count} worker(s), data in {settings.data_dir}",
                markup=False,
                soft_wrap=True,
            )

        _run(serving.serve(settings, listener, host=host, workers=workers, ready=ready))
    remarks().print("assay has stopped")


def worker(
    jobs: Annotated[int, typer.Option(min=1, help="Answers judged side by side.")] = 8,
    isolate: IsolateOption = None,
) -> None:
    """Run one more worker on a shared database."""
    from app.server import processes as serving

    settings = _prepared(isolate)

    def ready() -> None:
        remarks().print(f"assay worker: {jobs} job(s) at once, model {settings.model}", markup=False, soft_wrap=True)

    _run(serving.work(settings, jobs=jobs, ready=ready))
    remarks().print("assay worker has stopped")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, so that a port that is taken is noticed before anything else is started.

    Raises:
        WrongUsage: there is no such address.
        ToolFailed: the port cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise WrongUsage(f"--host {host}: {error.strerror}") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise ToolFailed(
            f"cannot listen on {host} port {port}: {error.strerror}",
            hint="Another program has it, perhaps another assay serve. Choose one with --port.",
        ) from error
    return listener


def _run(program: Coroutine[Any, Any, None]) -> None:
    """Run until it is stopped. Raises Interrupted when it was told twice, and so did not drain."""
    try:
        event_loop.run(program)
    except asyncio.CancelledError:
        raise Interrupted("stopped at once; what was being judged goes back to the queue") from None


def _prepared(isolate: OnOff | None) -> Settings:
    """The settings, with logging set up by them."""
    from app.observability.logs import configure_logging
    from app.observability.redaction import Redactor
    from app.settings import load_settings

    settings = load_settings(**({} if isolate is None else {"isolate": isolate is OnOff.ON}))
    configure_logging(Redactor(settings.secrets), level=settings.log_level)
    return settings

"""``assay serve``: the service, or only a worker of it. Both drain on SIGTERM and exit with 0."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from app.console import event_loop
from app.console.errors import ToolFailed, WrongUsage, reject_given
from app.console.streams import counted, stderr_console
from app.maintenance.doctor import State, check_keys
from app.observability.logs import Redactor, configure_logging
from app.server import processes as serving
from app.settings import Settings, load_settings

BACKLOG = 2048


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on. A public address requires API keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 selects a free port.")] = 8000,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Number of embedded workers; 0 for none (default: ASSAY_MAX_TASKS).")
    ] = None,
    worker_only: Annotated[
        bool, typer.Option("--worker-only", help="Run an additional worker on a shared database, without the API.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="With --worker-only: maximum concurrent jobs.")] = 8,
) -> None:
    """Run the service: API, dashboard and embedded workers."""
    if worker_only:
        reject_given(context, "cannot be used with --worker-only", "--host", "--port", "--workers")
        _work(jobs)
        return
    reject_given(context, "requires --worker-only", "--jobs")
    settings = _prepared()
    with listen(host, port) as listener:
        url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        count = settings.max_tasks if workers is None else workers

        def print_ready() -> None:
            stderr_console().print_line(
                f"assay serves at {url}: model {settings.model}, workers: {count}, data in {settings.data_dir}"
            )
            _warn_of_missing_key(settings)

        event_loop.run(serving.run_server(settings, listener, host=host, workers=workers, on_ready=print_ready))
    stderr_console().print("assay has stopped")


def _work(jobs: int) -> None:
    settings = _prepared()

    def print_ready() -> None:
        stderr_console().print_line(f"worker is ready: {counted(jobs, 'concurrent job')}, model {settings.model}")
        _warn_of_missing_key(settings)

    event_loop.run(serving.run_worker(settings, jobs=jobs, on_ready=print_ready))
    stderr_console().print("worker has stopped")


def _warn_of_missing_key(settings: Settings) -> None:
    keys = check_keys(settings)
    if keys.state is State.FAILED:
        stderr_console().print_line(f"warning: {keys.detail}. Until then, jobs for {settings.model} are paused.")
        stderr_console().print_line(keys.remedy)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. It is opened first, so that a port in use is detected before anything is started.

    Raises:
        WrongUsage: The address does not exist.
        ToolFailed: The port cannot be opened.
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
            hint="If another program uses the port, stop it or select another port with --port.",
        ) from error
    return listener


def _prepared() -> Settings:
    """Load the settings and configure logging."""
    settings = load_settings()
    configure_logging(Redactor(settings.secrets), level=settings.log_level)
    return settings

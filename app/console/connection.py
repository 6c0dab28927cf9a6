"""Connection of a command to a running server, with errors as messages for the user."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

import typer

from app.console.errors import CliError, ToolFailed, WrongUsage
from app.console.streams import stderr_console
from app.settings import load_settings
from assay_client import ApiError, Client, ServerUnreachable, UnexpectedReply, WaitTimeout
from cache.urls import is_loopback

URL = "http://127.0.0.1:8000"
"""Default of the client, repeated here because importing the client takes longer than printing the help."""
START_S = 20.0
POLL_S = 0.2

UrlOption: TypeAlias = Annotated[str, typer.Option("--url", help="URL of the server.")]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
DryRunOption: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Estimate calls, tokens and cost without judging.")
]
ResultsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--results", metavar="DIR", help="Read result files of `assay evaluate` from this folder instead of a server."
    ),
]


@contextmanager
def connect(url: str) -> Iterator[Client]:
    """Yield a client of the server at ``url``. It sends ASSAY_API_KEY, or else the first key of ASSAY_API_KEYS.

    Raises:
        ToolFailed: The server is not reachable, or failed.
        WrongUsage: The server rejected the request.
    """
    settings = load_settings()
    first = next((one.key for one in settings.configured_keys), None)
    key = first if settings.api_key is None else settings.api_key.get_secret_value()
    try:
        with Client(_checked_url(url), api_key=key) as client:
            _await_start(client.url)
            yield client
    except ServerUnreachable as error:
        raise ToolFailed(
            f"no server answers at {error.url} ({error.detail})",
            hint="Start one with `assay serve`, or set its URL with --url.",
        ) from error
    except UnexpectedReply as error:
        raise ToolFailed(f"{url} is not an assay server: {error}") from error
    except WaitTimeout as error:
        raise ToolFailed(str(error)) from error
    except ApiError as error:
        raise _command_error(error) from error


def _await_start(url: str) -> None:
    """Wait while a server on this machine refuses connections, at most ``START_S``: it may still be starting."""
    server, deadline, is_told = urlsplit(url), time.monotonic() + START_S, False
    address = server.hostname or "", server.port or {"https": 443}.get(server.scheme, 80)
    while is_loopback(address[0]) and time.monotonic() < deadline:
        try:
            socket.create_connection(address, timeout=START_S).close()
        except ConnectionRefusedError:
            if not is_told:
                stderr_console().print_line(
                    f"no server answers at {url} yet: waiting up to {START_S:g} s (start one with `assay serve`)"
                )
            is_told = True
            time.sleep(POLL_S)
        except OSError:
            return  # the request reports it
        else:
            return


def _command_error(error: ApiError) -> CliError:
    """Map an error response of the server to an error of the command."""
    if error.status in (401, 403):
        return WrongUsage(str(error), hint="Set ASSAY_API_KEY to a key of that server.")
    if error.status >= 500 or error.status == 429:
        return ToolFailed(str(error))
    return WrongUsage(str(error))


def _checked_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise WrongUsage(f"--url {url}: must start with http:// or https://")
    return url

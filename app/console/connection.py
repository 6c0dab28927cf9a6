"""A connection to a running server for the commands that need one, its errors put into words for a user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from app.console.errors import CliError, ToolFailed, WrongUsage

if TYPE_CHECKING:
    from app.client import ApiError, Client

URL = "http://127.0.0.1:8000"
"""The client's own default; written here again because importing that takes longer than printing help."""

UrlOption: TypeAlias = Annotated[str, typer.Option("--url", help="Address of the server.")]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


@contextmanager
def connected(url: str) -> Iterator[Client]:
    """A client of the server at ``url``; ASSAY_API_KEY is sent, or the first of ASSAY_API_KEYS, if there is one.

    Raises:
        ToolFailed: no server answers there, or it has a fault.
        WrongUsage: the server refused what was asked for.
    """
    from app.client import ApiError, Client, ServerUnreachable, UnexpectedReply, WaitTimeout
    from app.settings import load_settings

    settings = load_settings()
    key = settings.api_key or next(iter(settings.api_keys), None)
    try:
        with Client(_checked(url), api_key=None if key is None else key.get_secret_value()) as client:
            yield client
    except ServerUnreachable as error:
        raise ToolFailed(
            f"no server answers at {error.url} ({error.detail})",
            hint="Start one with: assay serve\nor name another with --url.",
        ) from error
    except UnexpectedReply as error:
        raise ToolFailed(f"{url} does not answer like an assay server: {error}") from error
    except WaitTimeout as error:
        raise ToolFailed(str(error)) from error
    except ApiError as error:
        raise _refused(error) from error


def _refused(error: ApiError) -> CliError:
    """What the server's refusal means to the user of a command."""
    if error.status in (401, 403):
        return WrongUsage(str(error), hint="Set ASSAY_API_KEY to a key of that server.")
    if error.status >= 500 or error.status == 429:
        return ToolFailed(str(error))
    return WrongUsage(str(error))


def _checked(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise WrongUsage(f"--url {url}: an address starts with http:// or https://")
    return url

"""``assay admin keys``: manage API keys. Uses the database directly, so it needs no key."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from app.access.keys import create_key
from app.console.connection import JsonOption
from app.console.errors import WrongUsage, duration
from app.console.runtime import run_in_database
from app.console.streams import print_json, print_line, stderr_console, stdout_console
from app.console.tables import plain_table
from app.storage.keys import load_keys, revoke_key
from app.storage.records import KeyRecord, Scope

_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def create(
    owner: Annotated[str, typer.Option(help="Owner. All keys of an owner give access to the same submissions.")],
    scope: Annotated[
        str, typer.Option(help="Scope: read, submit, operator or admin. Each includes the ones before it.")
    ] = "submit",
    expires: Annotated[
        str | None, typer.Option(help="Validity, for example 12h or 90d (default: until revoked).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a key. It is shown only once, because only its hash is stored."""
    if not _OWNER.fullmatch(owner):
        raise WrongUsage(f"--owner {owner!r}: use 1 to 100 letters, digits, . _ or -, starting with a letter or digit")
    now = datetime.now(UTC)
    expires_at = None if expires is None else now + duration(expires, option="--expires")
    key_scope = _scope(scope)
    key, record = run_in_database(
        lambda _, database: create_key(database, owner, key_scope, now=now, expires_at=expires_at)
    )
    if as_json:
        print_json({"key": key, **_as_json(record)})
        return
    # Only the key goes to stdout, so that it can be piped.
    print_line(key)
    validity = "does not expire" if expires_at is None else f"expires {expires_at.isoformat(timespec='minutes')}"
    stderr_console().print(
        f"key {record.id} of {record.owner}, {record.scope}, {validity}; it is not shown again", markup=False
    )


def list_(as_json: JsonOption = False) -> None:
    """List all keys with owner, scope and state."""
    keys = run_in_database(lambda _, database: load_keys(database))
    if as_json:
        print_json({"items": [_as_json(record) for record in keys]})
        return
    table = plain_table("id", "owner", "scope", "created", "state")
    for record in keys:
        table.add_row(record.id, record.owner, record.scope, _day(record.created_at), _state(record))
    stdout_console().print(table if keys else "no keys")


def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key, as shown by `assay admin keys list`.")],
    as_json: JsonOption = False,
) -> None:
    """Revoke a key. All processes reject it within 5 seconds."""
    record = run_in_database(lambda _, database: revoke_key(database, key_id, now=datetime.now(UTC)))
    if record is None:
        raise WrongUsage(f"no key {key_id!r}; `assay admin keys list` lists all keys")
    if as_json:
        print_json(_as_json(record))
    else:
        stdout_console().print(f"key {record.id} of {record.owner} is revoked", markup=False)


def _scope(text: str) -> Scope:
    try:
        return Scope(text.strip().lower())
    except ValueError:
        raise WrongUsage(f"--scope {text!r}: choose one of {', '.join(Scope)}") from None


def _as_json(record: KeyRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "owner": record.owner,
        "scope": record.scope,
        "state": _state(record),
        "created_at": record.created_at.isoformat(),
        "expires_at": None if record.expires_at is None else record.expires_at.isoformat(),
        "revoked_at": None if record.revoked_at is None else record.revoked_at.isoformat(),
    }


def _state(record: KeyRecord) -> str:
    if record.revoked_at is not None:
        return "revoked"
    return "good" if record.usable(datetime.now(UTC)) else "expired"


def _day(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")

"""Settings of the program, read from the environment and ``.env``.

No other module reads the environment. Functions that need a setting receive it as an argument.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from dotenv import dotenv_values
from pydantic import BeforeValidator, Field, PrivateAttr, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.errors import InvalidSettings
from cache.urls import is_loopback
from judges.forbidden_sources import ForbiddenSource
from judges.llm.learned_formats import Images
from judges.llm.models import DEFAULT_MODEL
from judges.llm.parameters import RunParameters
from judges.llm.pricing import Prices

_NAMED_KEY = re.compile(
    r"(?P<owner>[A-Za-z0-9][\w.@-]{0,99}):(?P<scope>read|submit|operator|admin):(?P<key>.+)", re.ASCII
)
_LIKE_A_NAMED_KEY = re.compile(r"[A-Za-z0-9][\w.@-]{0,99}:[a-z]+:.+", re.ASCII)
TASK_FOLDER: Final = Path("judges.d")
"""Default folder for task files of the user, in the working directory."""
DEFAULT_CONNECTIONS: Final = 24
MIN_CONNECTIONS: Final = 12
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")


def _split_folders(value: object) -> object:
    if isinstance(value, str):
        return tuple(Path(part).expanduser() for part in value.split(":") if part.strip())
    return value


Folders: TypeAlias = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_split_folders)]
"""Folders, separated by ``:`` in the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredKey:
    """Entry of ``ASSAY_API_KEYS``. Owner and scope are None if the entry contains only a key."""

    key: str = field(repr=False)
    owner: str | None = None
    scope: str | None = None

    @classmethod
    def parse(cls, entry: str) -> ConfiguredKey:
        """Parse ``OWNER:SCOPE:KEY`` or ``KEY``.

        >>> ConfiguredKey.parse("team-a:submit:8f2c41d09b").owner
        'team-a'
        """
        named = _NAMED_KEY.fullmatch(entry)
        return cls(key=entry) if named is None else cls(key=named["key"], owner=named["owner"], scope=named["scope"])


class Settings(BaseSettings):
    """All settings, documented in ``docs/operations.md``.

    Times are in seconds, sizes in bytes, limits per process.
    """

    model_config = SettingsConfigDict(
        env_prefix="ASSAY_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    data_dir: Path = Path("data")
    """Folder of the embedded PostgreSQL and the captured pages."""
    database_url: SecretStr | None = None
    """``postgresql://...``. None: an embedded PostgreSQL in ``data_dir``."""
    database_connections: int = Field(DEFAULT_CONNECTIONS, ge=MIN_CONNECTIONS, le=1000)
    """Maximum connections of this process to the database."""
    blobs: str = ""
    """Storage for page bodies: ``file:///path``, ``s3://bucket/prefix`` or ``memory://``. Empty: a folder in
    ``data_dir``."""
    model: str = f"openai/{DEFAULT_MODEL}"
    """``provider/model`` for submissions that name no model."""
    model_options: Annotated[tuple[str, ...], NoDecode] = ()
    """Parameters of model requests, ``NAME=VALUE`` or ``ROLE.NAME=VALUE``: see ``RunParameters.of_options``."""
    llm_timeout_s: float | None = Field(None, gt=0, le=3600)
    """Time limit of one model request including its retries. None: 60, or 900 at reasoning effort high or above."""
    prices: Annotated[Prices, NoDecode] = Prices()
    """Model prices that override the shipped price table."""
    images: Images = Images.AUTO
    """Whether models receive page screenshots: ``auto`` (until a server rejects them), ``on`` or ``off``."""
    forbidden_sources: tuple[ForbiddenSource, ...] = ()
    """Sources that do not count for any task, as JSON: ``[{"host": "bench.example", "reason": "the benchmark"}]``."""
    judges: Folders = Field(default_factory=lambda: tuple(filter(Path.is_dir, (TASK_FOLDER,))))
    """Folders of task files, in addition to the shipped ones. Default: ``judges.d``, if it exists."""

    max_tasks: int = Field(2, ge=1, le=1000)
    max_answers: int = Field(3, ge=1, le=1000)
    """Maximum concurrent answers of one task."""
    max_pages: int = Field(5, ge=1, le=1000)
    max_pages_per_host: int = Field(2, ge=1, le=1000)
    """Maximum concurrent captures per host over all workers on one database."""
    max_llm: int = Field(30, ge=1, le=10_000)
    max_llm_total: int | None = Field(None, ge=1, le=100_000)
    """Maximum concurrent model requests over all workers on one database. None: no shared limit."""

    host_gap_s: float = Field(0.5, ge=0, le=60)
    """Minimum time between the starts of two visits to one host, over all workers. Hosts in ``egress_allow`` are
    exempt."""
    page_max_age_s: float | None = Field(None, gt=0)
    """Age at which a captured page is captured again. None: never."""
    wayback: str = ""
    """Whether to request unavailable pages from the web archive: empty, ``on``, or the URL of another archive."""

    browser: Path | None = None
    browser_unsandboxed: bool = False
    """Whether the browser may run without a sandbox if the machine does not support one."""
    contact: str = Field("", max_length=200, pattern=r"^[\x21-\x7e]*$")
    """Email address or URL that captures send to the sites they visit. Empty: none."""
    egress_allow: Annotated[frozenset[str], NoDecode] = frozenset()
    """``host:port`` of private addresses that captures may reach."""
    api_keys: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    """API keys, each ``OWNER:SCOPE:KEY`` or ``KEY``, in addition to those of ``assay admin keys``. Without any key the
    service listens on loopback only."""
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    """Addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are used."""
    api_key: SecretStr | None = None
    """Key that the commands of this program send to a server. None: the first of ``api_keys``."""
    rate_per_s: float = Field(2000.0, ge=0)
    """Maximum requests per second, per key owner and process. 0: no limit."""
    max_streams: int = Field(1000, ge=1)
    """Maximum open event streams, per key owner and process."""
    max_queued: int = Field(200_000, ge=0)
    """Maximum number of queued jobs of all owners. 0: no limit."""

    reply_cache_bytes: int = Field(1024**3, ge=0)
    """Maximum size of the cache of model replies (LRU eviction). 0 disables the cache."""
    budget_usd: float | None = Field(None, gt=0)
    """Maximum total model cost over all workers on one database, or in one run of ``assay evaluate``."""
    budget_tokens: int | None = Field(None, gt=0)
    """The same limit in input and output tokens. The only limit for a model with an unknown price."""

    max_attempts: int = Field(3, ge=1, le=100)
    """Maximum number of attempts per job."""
    stalled_s: float = Field(6.0, gt=0, le=3600)
    """Time without a heartbeat after which other workers take over a worker's jobs."""
    drain_s: float = Field(25.0, ge=0, le=3600)
    """Time a stopping worker waits for running jobs before it returns them to the queue."""
    job_deadline_s: float = Field(1800.0, gt=0)
    """Time limit for judging one answer."""
    script_memory_bytes: int = Field(1024**3, ge=256 * 1024**2)
    """Maximum address space of the process of a task file."""
    max_body_bytes: int = Field(16 * 1024 * 1024, ge=1024)
    metrics_bind: str = Field("", pattern=r"^(|[^\s:]+:[0-9]{1,5})$")
    """``host:port`` on which ``assay serve --worker-only`` serves Prometheus metrics. Empty: disabled."""
    log_level: str = "info"

    openai_api_key: SecretStr | None = Field(None, validation_alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(None, validation_alias="OPENAI_BASE_URL")
    azure_api_key: SecretStr | None = Field(None, validation_alias="AZURE_OPENAI_API_KEY")
    azure_endpoint: str | None = Field(None, validation_alias="AZURE_OPENAI_ENDPOINT_URL")
    azure_api_version: str | None = Field(None, validation_alias="AZURE_OPENAI_API_VERSION")
    aws_access_key: SecretStr | None = Field(None, validation_alias="AWS_ACCESS_KEY")
    aws_secret_key: SecretStr | None = Field(None, validation_alias="AWS_SECRET_KEY")
    aws_access_key_id: SecretStr | None = Field(None, validation_alias="AWS_ACCESS_KEY_ID")
    aws_secret_access_key: SecretStr | None = Field(None, validation_alias="AWS_SECRET_ACCESS_KEY")
    aws_session_token: SecretStr | None = Field(None, validation_alias="AWS_SESSION_TOKEN")
    aws_region: str | None = Field(None, validation_alias="AWS_REGION")
    aws_endpoint_url: str | None = Field(None, validation_alias="AWS_ENDPOINT_URL")
    google_maps_api_key: SecretStr | None = Field(None, validation_alias="GOOGLE_MAPS_API_KEY")

    suite_data: Folders = ()
    """Folders of benchmark data that suite runs over HTTP may read. Empty: no suite runs over HTTP."""

    @field_validator("*", mode="before")
    @classmethod
    def _empty_means_unset(cls, value: object, info: Any) -> object:
        """Treat an empty value as unset: ``ASSAY_BROWSER=`` in a .env file means the default."""
        if isinstance(value, str) and not value.strip():
            return cls.model_fields[info.field_name].get_default(call_default_factory=True, validated_data={})
        return value

    @field_validator("egress_allow", mode="before")
    @classmethod
    def _split_hosts(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        hosts = frozenset(part.strip().lower() for part in value.split(",") if part.strip())
        for host in sorted(hosts):
            if not _HOST_PORT.fullmatch(host):
                raise ValueError(f"invalid address {host!r}: expected host:port")
        return hosts

    @field_validator("prices", mode="before")
    @classmethod
    def _read_prices(cls, value: object) -> object:
        return Prices.read(value) if isinstance(value, str) else value

    @field_validator("model_options")
    @classmethod
    def _check_model_options(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        RunParameters.of_options(options)
        return options

    @field_validator("wayback")
    @classmethod
    def _is_archive(cls, value: str) -> str:
        if value in ("", "off"):
            return ""
        if value == "on" or (urlsplit(value).scheme in ("http", "https") and urlsplit(value).hostname):
            return value.rstrip("/")
        raise ValueError("expected off, on, or the http(s) URL of an archive")

    @field_validator("openai_base_url", "azure_endpoint")
    @classmethod
    def _check_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            address = urlsplit(value)
            is_valid = address.scheme in ("http", "https") and bool((address.hostname or "").encode("idna"))
            is_valid = is_valid and address.port != 0
        except ValueError:
            is_valid = False
        if not is_valid:
            raise ValueError("expected an http(s) URL, such as https://models.example/v1")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            try:
                ip_network(address)
            except ValueError as error:
                raise ValueError(f"{error}: expected addresses or networks, such as 10.0.0.7 or 10.0.0.0/8") from None
        return value

    @field_validator("api_keys", "trusted_proxies", "model_options", mode="before")
    @classmethod
    def _split_at_commas(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())

    @field_validator("api_keys")
    @classmethod
    def _check_keys(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        owners: dict[str, str | None] = {}
        for number, entry in enumerate(value, 1):
            one = ConfiguredKey.parse(entry.get_secret_value())
            if one.owner is None and _LIKE_A_NAMED_KEY.fullmatch(one.key):
                raise ValueError(f"number {number} has an unknown scope: use read, submit, operator or admin")
            if owners.setdefault(one.key, one.owner) != one.owner:
                raise ValueError(f"number {number} has the key of another owner: use a key of its own for each owner")
        return value

    @property
    def configured_keys(self) -> tuple[ConfiguredKey, ...]:
        """The keys of ``api_keys``, without duplicates."""
        return tuple(dict.fromkeys(ConfiguredKey.parse(entry.get_secret_value()) for entry in self.api_keys))

    @property
    def shared_reply_cache_bytes(self) -> int:
        """Maximum size of the reply cache in the database, shared by all workers; 0 on a single machine.

        A deployment counts as several machines if it has its own database and stores page bodies outside ``data_dir``.
        """
        location = urlsplit(self.blobs)
        is_local = not self.blobs or location.scheme == "memory"
        if location.scheme == "file":
            is_local = Path(unquote(location.path)).is_relative_to(self.data_dir.absolute())
        return 0 if is_local or self.database_url is None else self.reply_cache_bytes

    _budget_option: str = PrivateAttr("ASSAY_BUDGET_USD")

    @property
    def budget_option(self) -> str:
        """What sets ``budget_usd``, for messages: the environment variable, or the flag of a command."""
        return self._budget_option

    def with_budget_flag(self, flag: str) -> Settings:
        """Return a copy with the flag of the command that set ``budget_usd``."""
        copy = self.model_copy()
        copy._budget_option = flag
        return copy

    @property
    def parameters(self) -> RunParameters:
        """Model parameters by role."""
        return RunParameters.of_options(self.model_options)

    @property
    def secrets(self) -> tuple[str, ...]:
        """All secret values, for redaction in logs and error messages."""
        values: list[str] = []
        for name in type(self).model_fields:
            value = getattr(self, name)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, SecretStr) and item.get_secret_value():
                    values.append(item.get_secret_value())
        values += [one.key for one in self.configured_keys if one.owner is not None]
        if self.database_url is not None:
            password = urlsplit(self.database_url.get_secret_value()).password
            values += [password] if password else []
        return tuple(values)


_OTHER_VARIABLES: Final = frozenset({"ASSAY_MEMORY"})
"""Variables of docker-compose.yml that are no settings."""


def unknown_variables() -> list[str]:
    """Return a message for each variable in the environment or ``.env`` that looks like a setting and is none."""
    known = {f"ASSAY_{name.upper()}" for name in Settings.model_fields} | _OTHER_VARIABLES
    given = {name.upper() for name in (*os.environ, *dotenv_values(".env"))}
    messages = []
    for name in sorted(given - known):
        if name.startswith("ASSAY_"):
            close = get_close_matches(name, known, n=1)
            messages.append(f"{name} is not a setting" + (f". Did you mean {close[0]}?" if close else ""))
    return messages


def load_settings(**overrides: Any) -> Settings:
    """Read the settings. ``overrides`` (by field name) take precedence over the environment.

    Raises:
        InvalidSettings: At least one setting is invalid. The message names each one, but never its value.
    """
    try:
        return Settings(**overrides)
    except ValidationError as error:
        lines = [f"{_variable(part['loc'])}: {part['msg'].removeprefix('Value error, ')}" for part in error.errors()]
        raise InvalidSettings("; ".join(lines)) from None


def _variable(location: tuple[int | str, ...]) -> str:
    name = str(location[0]) if location else "settings"
    return name if name.isupper() else f"ASSAY_{name.upper()}"


MIN_KEY_CHARS = 20
MIN_DIFFERENT_CHARS = 8


def check_bind(host: str, *, keys: bool, chosen_keys: Sequence[ConfiguredKey] = ()) -> None:
    """Check the keys of a service that listens on ``host``. ``chosen_keys`` were chosen by a person and may be weak.

    Raises:
        InvalidSettings: ``host`` is not a loopback address, and no API key exists or a chosen one can be guessed.
    """
    if is_loopback(host):
        return
    if not keys:
        raise InvalidSettings(
            f"Cannot listen on {host} without an API key, because other machines can reach it: create a key with "
            "`assay admin keys create`, set ASSAY_API_KEYS, or listen on 127.0.0.1"
        )
    weak = [number for number, key in enumerate(chosen_keys, 1) if _is_weak(key.key)]
    if weak:
        numbers = ", ".join(map(str, weak))
        raise InvalidSettings(
            f"Cannot listen on {host} with a key that can be guessed (ASSAY_API_KEYS, number {numbers}): use at least "
            f"{MIN_KEY_CHARS} random characters, for example of `openssl rand -hex 32`, or create keys with "
            "`assay admin keys create`"
        )


def _is_weak(key: str) -> bool:
    return len(key) < MIN_KEY_CHARS or len(set(key)) < MIN_DIFFERENT_CHARS

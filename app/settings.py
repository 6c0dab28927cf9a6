"""Every setting of the program, read from the environment and ``.env`` in one place.

No other module reads the environment: whoever needs a value is handed it.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.errors import WrongSettings
from judges.llm.families import DEFAULT_MODEL
from judges.llm.negotiation import Images
from judges.llm.parameters import ROLES, Effort, Parameters, RunParameters
from judges.llm.pricing import Prices

_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")


class Settings(BaseSettings):
    """The settings of ``docs/operations.md``. Times are seconds, sizes bytes, counts are per process."""

    model_config = SettingsConfigDict(
        env_prefix="ASSAY_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    data_dir: Path = Path("data")
    """Where the private PostgreSQL and the captured pages live."""
    database_url: SecretStr | None = None
    """``postgresql://...``; None: a private PostgreSQL inside ``data_dir``."""
    blobs: str = ""
    """``file:///path``, ``s3://bucket/prefix`` or ``memory://``; empty: a folder inside ``data_dir``."""
    model: str = f"openai/{DEFAULT_MODEL}"
    """``provider/model``, the judge of submissions that name none."""
    reasoning_effort: Effort | None = None
    """How much the model reasons; None: ``max`` for the default model, else as the provider does it."""
    temperature: float | None = Field(None, ge=0, le=2)
    max_output_tokens: int | None = Field(None, ge=1, le=10_000_000)
    """Reasoning included; None: as much as the model may."""
    verify_reasoning_effort: Effort | None = None
    verify_temperature: float | None = Field(None, ge=0, le=2)
    verify_max_output_tokens: int | None = Field(None, ge=1, le=10_000_000)
    """These three for judging claims only."""
    extract_reasoning_effort: Effort | None = None
    extract_temperature: float | None = Field(None, ge=0, le=2)
    extract_max_output_tokens: int | None = Field(None, ge=1, le=10_000_000)
    """These three for reading values only."""
    llm_timeout_s: float | None = Field(None, gt=0, le=3600)
    """How long one request may take with all its retries; None: 60, or 900 at reasoning effort high or above."""
    prices: Annotated[Prices, NoDecode] = Prices()
    """Prices of models, in front of the shipped table."""
    images: Images = Images.AUTO
    """Whether models are shown the pictures of pages: ``auto`` (until a server refuses them), ``on`` or ``off``."""
    look_ahead: bool = False
    """Whether public judge scripts run with a scout that starts their claims early."""
    judges: Annotated[tuple[Path, ...], NoDecode] = ()
    """Folders of judge scripts, beside those that are shipped."""

    suite_data: Annotated[tuple[Path, ...], NoDecode] = ()
    """Folders of benchmark data that runs over HTTP may read; none: no such runs."""

    certificates: Path | None = None
    """Folder of judges' certificates, of which a result carries the one in force; None: one inside ``data_dir``."""

    max_tasks: int = Field(2, ge=1, le=1000)
    max_answers: int = Field(3, ge=1, le=1000)
    """Answers of one task that are judged side by side."""
    max_pages: int = Field(5, ge=1, le=1000)
    max_pages_per_host: int = Field(2, ge=1, le=1000)
    max_llm: int = Field(30, ge=1, le=10_000)
    max_llm_total: int | None = Field(None, ge=1, le=100_000)
    """Requests to the models at once over all workers on one database; None: as many as the workers have together."""
    max_pages_per_host_total: int | None = Field(None, ge=1, le=1000)
    """Captures on one host at once over all workers on one database; None: as many as one worker may."""

    host_gap_s: float = Field(0.5, ge=0, le=60)
    """Between the beginnings of two visits to one host, by all workers; not for hosts in ``egress_allow``."""
    page_max_age_s: float | None = Field(None, gt=0)
    """How old a captured page may be before it is captured again; None: any age."""
    wayback: str = ""
    """Whether the web archive is asked for pages that cannot be had: empty, ``on``, or the address of a stand-in."""

    browser: Path | None = None
    browser_unsandboxed: bool = False
    """Whether the browser may run without its sandbox on a machine that has none to offer."""
    contact: str = Field("", max_length=200, pattern=r"^[\x21-\x7e]*$")
    """An address or URL that the browser names to the sites it opens; empty: it names none."""
    egress_allow: Annotated[frozenset[str], NoDecode] = frozenset()
    """``host:port`` of private addresses that captures may reach."""
    api_keys: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    """Keys that clients may send, beside those of ``assay keys``; without any the service is bound to loopback."""
    api_key: SecretStr | None = None
    """The key that this program's own commands send to a server; None: the first of ``api_keys``."""
    rate_per_s: float = Field(2000.0, ge=0)
    """Requests a second that the keys of one owner may make of one process; 0: any number."""
    max_streams: int = Field(1000, ge=1)
    """Event streams that the keys of one owner may have open at one process."""
    max_queued: int = Field(200_000, ge=0)
    """Jobs that may wait, of all owners; 0: any number."""

    reply_cache_bytes: int = Field(1024**3, ge=0)
    """How much of the models' replies is kept, least recently used out first; 0: none is kept and none is reused."""
    budget_usd: float | None = Field(None, gt=0)
    """What the models may cost: in all, over every worker on one database, or in one run of ``assay evaluate``."""
    budget_tokens: int | None = Field(None, gt=0)
    """The same in input and output tokens; the only limit on a model whose price is unknown."""

    max_attempts: int = Field(3, ge=1, le=100)
    """How often a job may be started before it is given up."""
    heartbeat_s: float = Field(2.0, gt=0, le=600)
    stalled_s: float = Field(6.0, gt=0, le=3600)
    """A worker silent for so long has lost its jobs."""
    drain_s: float = Field(25.0, ge=0, le=3600)
    """How long a stopping worker waits for its running jobs before it hands them back."""
    job_deadline_s: float = Field(1800.0, gt=0)
    """How long judging one answer may take, all in all."""
    isolate: bool = True
    """Whether each run of a judge file gets a process of its own, without keys and within the limits below."""
    script_memory_bytes: int = Field(1024**3, ge=256 * 1024**2)
    """Address space of one such process."""
    script_cpu_s: int = Field(60, ge=1)
    script_file_bytes: int = Field(64 * 1024**2, ge=0)
    """The largest file it may write."""
    script_open_files: int = Field(256, ge=32)
    script_processes: int = Field(0, ge=0, le=1000)
    """Processes it may start itself."""
    script_output_bytes: int = Field(8 * 1024**2, ge=1024)
    """What it may print."""
    suite_deadline_s: float = Field(86_400.0, gt=0)
    """How long one run of a suite may take, all in all."""
    max_body_bytes: int = Field(16 * 1024 * 1024, ge=1024)
    metrics_bind: str = Field("", pattern=r"^(|[^\s:]+:[0-9]{1,5})$")
    """``host:port`` on which a worker without HTTP answers Prometheus; empty: it does not."""
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

    @field_validator("*", mode="before")
    @classmethod
    def _empty_means_unset(cls, value: object, info: Any) -> object:
        """``ASSAY_BROWSER=`` in a .env file means the default, as it does in a shell script."""
        if isinstance(value, str) and not value.strip():
            return cls.model_fields[info.field_name].get_default(call_default_factory=True, validated_data={})
        return value

    @field_validator("judges", "suite_data", mode="before")
    @classmethod
    def _split_folders(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(Path(part).expanduser() for part in value.split(":") if part.strip())
        return value

    @field_validator("egress_allow", mode="before")
    @classmethod
    def _split_hosts(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        hosts = frozenset(part.strip().lower() for part in value.split(",") if part.strip())
        for host in sorted(hosts):
            if not _HOST_PORT.fullmatch(host):
                raise ValueError(f"{host!r} is not host:port")
        return hosts

    @field_validator("prices", mode="before")
    @classmethod
    def _read_prices(cls, value: object) -> object:
        return Prices.read(value) if isinstance(value, str) else value

    @field_validator("wayback")
    @classmethod
    def _is_archive(cls, value: str) -> str:
        if value in ("", "off"):
            return ""
        if value == "on" or (urlsplit(value).scheme in ("http", "https") and urlsplit(value).hostname):
            return value.rstrip("/")
        raise ValueError("use off, on, or the http(s) address of an archive")

    @field_validator("api_keys", mode="before")
    @classmethod
    def _split_keys(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())

    @property
    def shared_reply_bytes(self) -> int:
        """How much of the models' replies is kept in the database for all workers; 0 where they stay on one machine.

        Workers on several machines are told by what they must have: a database of their own, and one place for bodies
        that is not in the data folder of one of them.
        """
        place = urlsplit(self.blobs)
        at_hand = not self.blobs or place.scheme == "memory"
        if place.scheme == "file":
            at_hand = Path(unquote(place.path)).is_relative_to(self.data_dir.absolute())
        return 0 if at_hand or self.database_url is None else self.reply_cache_bytes

    @property
    def parameters(self) -> RunParameters:
        """What models are asked with, by role."""

        def under(prefix: str) -> Parameters:
            return Parameters(
                reasoning_effort=getattr(self, f"{prefix}reasoning_effort"),
                temperature=getattr(self, f"{prefix}temperature"),
                max_output_tokens=getattr(self, f"{prefix}max_output_tokens"),
            )

        return RunParameters(every=under(""), roles={role: under(f"{role}_") for role in ROLES})

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value, for the redaction of logs and error texts."""
        found: list[str] = []
        for name in type(self).model_fields:
            value = getattr(self, name)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, SecretStr) and item.get_secret_value():
                    found.append(item.get_secret_value())
        if self.database_url is not None:
            password = urlsplit(self.database_url.get_secret_value()).password
            found += [password] if password else []
        return tuple(found)


def load_settings(**overrides: Any) -> Settings:
    """Read the settings; ``overrides`` (field names) win over the environment.

    Raises:
        WrongSettings: naming each setting that cannot be used, never its value.
    """
    try:
        return Settings(**overrides)
    except ValidationError as error:
        lines = [f"{_variable(part['loc'])}: {part['msg'].removeprefix('Value error, ')}" for part in error.errors()]
        raise WrongSettings("; ".join(lines)) from None


def _variable(location: tuple[int | str, ...]) -> str:
    name = str(location[0]) if location else "settings"
    return name if name.isupper() else f"ASSAY_{name.upper()}"


def check_bind(host: str, *, keys: bool) -> None:
    """Refuse to open a service without ``keys`` to anyone but this machine.

    Raises:
        WrongSettings: ``host`` is not a loopback address and nobody has a key.
    """
    if keys or is_loopback(host):
        return
    raise WrongSettings(
        f"{host} can be reached from outside: make a key with `assay keys create`, set ASSAY_API_KEYS, "
        "or bind to 127.0.0.1"
    )


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine only."""
    bare = host.strip("[]").lower()
    if bare == "localhost":
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False

"""Reasoning effort, temperature and output limit of a run, by role, and their addition to requests.

Values of the user override the table of model families. They are added to every request of a run before it is recorded,
counted, looked up or sent, so that call log, cache key and request agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from judges.errors import ModelNotConfigured
from judges.llm.client import OWN_ROLE, LLMRequest, role_of
from judges.llm.models import DEFAULT_MODEL, family_of, is_reasoning_model, params_for
from judges.voting import members_in
from rubrics.tree_json import members_of, parameters_of

Effort: TypeAlias = Literal["default", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
PROVIDER_DEFAULT: Final = "default"
"""Effort that is not sent, so that the provider's default applies."""
LONG_EFFORTS: Final = frozenset({"high", "xhigh", "max"})
"""Efforts at which a reply may take minutes."""
ROLES: Final = ("verify", "extract")
TOOLKIT_DEFAULTS: Final = frozenset({"o4-mini", DEFAULT_MODEL})
"""Past and present default models of the public toolkit. In a script they stand for the model of the run."""

_OPTIONS: Final[Mapping[str, tuple[str, TypeAdapter[Any]]]] = {
    "effort": ("reasoning_effort", TypeAdapter(Effort)),
    "temperature": ("temperature", TypeAdapter(Annotated[float, Field(ge=0, le=2)])),
    "max_tokens": ("max_output_tokens", TypeAdapter(Annotated[int, Field(ge=1, le=10_000_000)])),
}
"""Names of model options, with the parameter and the type of its values."""
_LIMITS: Final = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Parameters of a request; None: not set."""

    reasoning_effort: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None

    def or_else(self, other: Parameters) -> Parameters:
        """Return these parameters, with unset ones taken from ``other``."""
        own = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(other, **own)


NO_PARAMETERS: Final = Parameters()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParameters:
    """Parameters of one run: for ``every`` request, and overrides for ``roles`` (verify, extract).

    ``members`` replaces those of verdict requests by model, for the members of a recorded jury.
    """

    every: Parameters = NO_PARAMETERS
    roles: Mapping[str, Parameters] = field(default_factory=dict)
    members: Mapping[str, Parameters] = field(default_factory=dict)

    def set_for(self, role: str) -> Parameters:
        """Return the user's parameters for a role."""
        return self.roles.get(role, NO_PARAMETERS).or_else(self.every)

    def sent_for(self, role: str, model: str) -> Parameters:
        """Return the parameters to send for a role: the user's, else those of the model family."""
        family = params_for(model)
        defaults = Parameters(reasoning_effort=family.get("reasoning_effort"), temperature=family.get("temperature"))
        own = self.members.get(model) if role == "verify" else None
        parameters = (own or self.set_for(role)).or_else(defaults)
        return (
            replace(parameters, reasoning_effort=None)
            if parameters.reasoning_effort == PROVIDER_DEFAULT
            else parameters
        )

    def as_json(self, model: str) -> dict[str, Any]:
        """Return the JSON value in results, by role; of a jury, for its first member. Null: not sent."""
        model = members_in(model)[0]
        sent = {role: asdict(self.sent_for(role, model)) for role in ROLES}
        return {**sent, OWN_ROLE: asdict(self.set_for(OWN_ROLE))}

    @classmethod
    def of_options(cls, options: Iterable[str]) -> Self:
        """Return the parameters of options ``NAME=VALUE`` or ``ROLE.NAME=VALUE``; a later one overrides an earlier one.

        The names are effort, temperature and max_tokens (of a reply, including reasoning).

        Raises:
            ValueError: An option has another form, an unknown role or name, or an invalid value.
        """
        by_role: dict[str, dict[str, Any]] = {}
        for option in options:
            key, separator, value = option.partition("=")
            role, _, name = key.strip().rpartition(".")
            if not separator or role not in ("", *ROLES) or name not in _OPTIONS:
                raise ValueError(
                    f"{option!r}: use NAME=VALUE, or ROLE.NAME=VALUE for one role ({', '.join(ROLES)}); "
                    f"the names are {', '.join(_OPTIONS)}"
                )
            field_name, kind = _OPTIONS[name]
            try:
                by_role.setdefault(role, {})[field_name] = kind.validate_python(value.strip())
            except ValidationError as error:
                raise ValueError(f"{option!r}: {error.errors()[0]['msg']}") from None
        every = Parameters(**by_role.pop("", {}))
        return cls(every=every, roles={role: Parameters(**values) for role, values in by_role.items()})

    @classmethod
    def of_result(cls, result: Mapping[str, Any]) -> Self | None:
        """Return the parameters that a result was judged with; None if it does not contain them."""
        written = parameters_of(result)
        if written is None:
            return None
        roles = {role: _read(written.get(role) or {}) for role in (*ROLES, OWN_ROLE)}
        members = {str(member.get("model")): _exact(_read(member)) for member in members_of(result)}
        return cls(every=roles.pop(OWN_ROLE), roles={role: _exact(one) for role, one in roles.items()}, members=members)


def _read(values: Mapping[str, Any]) -> Parameters:
    return Parameters(**{name: values.get(name) for name in asdict(NO_PARAMETERS)})


def _exact(sent: Parameters) -> Parameters:
    """Return parameters with which the same effort is sent again: none if there was none."""
    return sent if sent.reasoning_effort else replace(sent, reasoning_effort=PROVIDER_DEFAULT)


class RequestParameters:
    """Adds the parameters of a run to its requests. ``providers`` has the provider of each model of the run.

    The first model replaces the default models of the public toolkit, and the name of a jury in requests that are not
    for a verdict.

    Raises:
        ModelNotConfigured: a reasoning effort is set, and a provider supports none.
    """

    def __init__(self, parameters: RunParameters, providers: Mapping[str, str]) -> None:
        has_effort = any(_effort(parameters.set_for(role)) for role in (*ROLES, OWN_ROLE))
        without_effort = next((name for name, each in providers.items() if each == "bedrock"), None)
        if without_effort is not None and has_effort:
            raise ModelNotConfigured(
                f"bedrock/{without_effort} supports no reasoning effort: "
                "remove effort from ASSAY_MODEL_OPTIONS or --model-option"
            )
        self._sent_for, self._set_for = lru_cache(parameters.sent_for), lru_cache(parameters.set_for)
        self._providers = providers
        self._model, self._provider = next(iter(providers.items()))

    def add_to(self, request: LLMRequest) -> LLMRequest:
        """Return the request with model and parameters of the run."""
        params = dict(request.params)
        if len(members_in(request.model)) > 1:
            request = replace(request, model=self._model)
        if request.model in TOOLKIT_DEFAULTS and request.model not in self._providers:
            # The script set these parameters for another model.
            params = {name: value for name, value in params.items() if name not in ("temperature", "reasoning_effort")}
            request = replace(request, model=self._model)
        role = role_of(request)
        limit = output_limit_name(self._providers.get(request.model, self._provider), request.model)
        if role in ROLES:
            parameters = self._sent_for(role, request.model)
            params |= {"reasoning_effort": parameters.reasoning_effort, "temperature": parameters.temperature}
        else:
            parameters = self._set_for(role)
            params |= {
                name: value
                for name, value in (("reasoning_effort", _effort(parameters)), ("temperature", parameters.temperature))
                if value is not None
            }
            if parameters.reasoning_effort == PROVIDER_DEFAULT:
                params["reasoning_effort"] = None
        if parameters.max_output_tokens is not None or is_reasoning_model(request.model):
            # A script's limit applies to the visible reply, but reasoning tokens count as output and would exhaust it.
            params = {name: value for name, value in params.items() if name not in _LIMITS}
        if parameters.max_output_tokens is not None:
            params[limit] = parameters.max_output_tokens
        return request if params == request.params else replace(request, params=params)


def output_limit_name(provider: str, model: str) -> str:
    family = family_of(model)
    is_openai = provider == "azure" or (
        provider == "openai" and family is not None and family.name.startswith("openai")
    )
    return "max_completion_tokens" if is_openai else "max_tokens"


def _effort(parameters: Parameters) -> str | None:
    return None if parameters.reasoning_effort == PROVIDER_DEFAULT else parameters.reasoning_effort

"""Groups of command options: a parameter of a command whose type is a dataclass stands for one option per field.

A command then reads as what it works on, and commands that share options share the dataclass.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

Command = Callable[..., None]


def with_options(command: Command) -> Command:
    """Return ``command`` as Typer needs it: with one parameter per option, in the order of parameters and fields."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = inspect.Parameter.KEYWORD_ONLY
        if name not in groups:
            parameters.append(parameter.replace(kind=kind, annotation=hints[name]))
            continue
        of_group = get_type_hints(groups[name], include_extras=True)
        for field in dataclasses.fields(groups[name]):
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=of_group[field.name]))

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        command(**given)

    run.__doc__, run.__name__ = command.__doc__, command.__name__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run

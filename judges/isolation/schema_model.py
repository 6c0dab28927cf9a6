"""Models that represent a judge file's pydantic classes in the service.

The class itself exists only in the child process, which validates each reply. The service uses its JSON Schema in
requests and in reply cache keys, so the same replies are found with and without isolation.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from judges.errors import JudgeBug

MAX_SCHEMA_CHARS: Final = 1_000_000
_ANY_JSON: Final[TypeAdapter[JsonValue]] = TypeAdapter(JsonValue)


class SchemaModel(BaseModel):
    """Base of all stand-in classes. They accept any JSON value and keep the values of an object unchanged."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())
    described: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
        """Return a copy of the schema of the class that this represents."""
        return copy.deepcopy(dict(cls.described))

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **_: Any) -> SchemaModel:
        """Return the values of a JSON object; no values for any other JSON value.

        Raises:
            ValidationError: ``json_data`` is not valid JSON.
        """
        value = _ANY_JSON.validate_json(json_data)
        return cls.model_validate(value if isinstance(value, dict) else {})


@lru_cache(maxsize=256)
def schema_model(name: str, schema: str) -> type[BaseModel]:
    """Return the stand-in for the class ``name`` with this JSON schema. Equal arguments return the same class.

    Raises:
        JudgeBug: the schema is invalid or too large.
    """
    if len(schema) > MAX_SCHEMA_CHARS:
        raise JudgeBug(f"the schema of {name} has {len(schema)} characters (max {MAX_SCHEMA_CHARS})")
    try:
        described = json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise JudgeBug(f"the schema of {name} is not valid JSON: {error}") from error
    if not isinstance(described, dict):
        raise JudgeBug(f"the schema of {name} is not a JSON object")
    return type(name or "Model", (SchemaModel,), {"described": described, "__module__": __name__})

"""Models that represent a judge file's pydantic classes in the service, built from their JSON schemas.

The class itself exists only in the child process, where replies are parsed into it. The service uses the schema in
requests and in reply cache keys, so the same replies are found with and without isolation. The fields are rebuilt as
far as the schema describes them, because the lexical judge works on fields.
"""

from __future__ import annotations

import copy
import json
import keyword
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, Optional, Union

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, create_model
from pydantic_core import Url

from judges.errors import JudgeBug

MAX_DEPTH: Final = 24
MAX_SCHEMA_CHARS: Final = 1_000_000
_ANY_JSON: Final[TypeAdapter[JsonValue]] = TypeAdapter(JsonValue)
_PLAIN: Final[Mapping[str, Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
    "object": dict[str, Any],
    "array": list[Any],
}


class SchemaModel(BaseModel):
    """Base of all stand-in classes. Accepts any JSON value; the child process validates it with the real class."""

    model_config = ConfigDict(protected_namespaces=(), populate_by_name=True, serialize_by_alias=True)
    described: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
        """Return a copy of the schema of the class that this represents."""
        return copy.deepcopy(dict(cls.described))

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **_: Any) -> SchemaModel:
        """Return an empty object if ``json_data`` is valid JSON. The child process parses the content."""
        _ANY_JSON.validate_json(json_data)
        return cls.model_construct()


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
    return _TypeBuilder(described).stand_in(name)


class _TypeBuilder:
    """Builds types from one schema. Unknown constructs become ``Any``."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        definitions = whole.get("$defs")
        self._whole = whole
        self._definitions: Mapping[str, Any] = definitions if isinstance(definitions, dict) else {}
        self._made: dict[str, Any] = {}

    def stand_in(self, name: str) -> type[BaseModel]:
        """Return the class for the whole schema. A self-referencing class has its own definition in ``$defs``."""
        top = self._definitions.get(str(self._whole.get("$ref")).rpartition("/")[2])
        model: Any = self.model(name, top if isinstance(top, dict) else self._whole, base=SchemaModel)
        model.described = self._whole
        model_class: type[BaseModel] = model
        return model_class

    def model(
        self, name: str, schema: Mapping[str, Any], *, base: type[BaseModel] | None = None, depth: int = 0
    ) -> type[BaseModel]:
        """Return the class of an object with named properties."""
        properties, required = schema.get("properties"), schema.get("required")
        fields: dict[str, Any] = {}
        for number, (key, each) in enumerate((properties if isinstance(properties, dict) else {}).items()):
            described = each if isinstance(each, dict) else {}
            kind = self.type(described, depth + 1)
            is_required = isinstance(required, list) and key in required
            default = ... if is_required else described.get("default")
            field = _field_name(str(key), number)
            hint = kind if is_required or default is not None else Optional[kind]  # noqa: UP045 - made at run time
            text = described.get("description")
            fields[field] = (
                hint,
                Field(
                    default,
                    alias=None if field == key else str(key),
                    description=text if isinstance(text, str) else None,
                ),
            )
        doc = schema.get("description")
        text = doc if isinstance(doc, str) else None
        model_class: Any = create_model(name or "Model", __base__=base or _Inner, __doc__=text, **fields)
        model: type[BaseModel] = model_class
        return model

    def type(self, schema: Mapping[str, Any], depth: int) -> Any:
        """Return the type that a schema describes."""
        if depth > MAX_DEPTH:
            return Any
        if isinstance(schema.get("$ref"), str):
            return self._referred(schema["$ref"], depth)
        for key in ("anyOf", "oneOf", "allOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                options = [self.type(each, depth + 1) for each in schema[key] if isinstance(each, dict)]
                return Union[tuple(options)] if options else Any  # noqa: UP007 - made at run time
        if "const" in schema or isinstance(schema.get("enum"), list):
            values = [schema["const"]] if "const" in schema else schema["enum"]
            is_plain = values and all(isinstance(value, str | int | bool | None) for value in values)
            return Literal[tuple(values)] if is_plain else Any
        kind = schema.get("type")
        if kind == "array" and isinstance(schema.get("items"), dict):
            return list[self.type(schema["items"], depth + 1)]  # type: ignore[misc]
        if kind == "object" and isinstance(schema.get("properties"), dict):
            return self.model(str(schema.get("title") or "Model"), schema, depth=depth)
        if kind == "string" and schema.get("format") == "uri":
            return Url
        return _PLAIN.get(kind, Any) if isinstance(kind, str) else Any

    def _referred(self, reference: str, depth: int) -> Any:
        name = reference.rpartition("/")[2]
        if name not in self._made:
            self._made[name] = Any  # stops at self-references
            described = self._definitions.get(name)
            if isinstance(described, dict):
                self._made[name] = self.type({"title": name, **described}, depth + 1)
        return self._made[name]


class _Inner(BaseModel):
    """Base of nested classes."""

    model_config = ConfigDict(protected_namespaces=(), populate_by_name=True, serialize_by_alias=True)


def _field_name(key: str, number: int) -> str:
    """Return a valid pydantic field name for a property."""
    name = key if key.isidentifier() else "".join(char if char.isalnum() else "_" for char in key)
    name = name.lstrip("_") or f"field{number}"
    if not name.isidentifier():
        name = f"field_{name}" if f"field_{name}".isidentifier() else f"field{number}"
    return f"{name}_" if hasattr(SchemaModel, name) or keyword.iskeyword(name) else name

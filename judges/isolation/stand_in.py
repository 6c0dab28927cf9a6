"""A judge file's pydantic class, as the service knows it: by its JSON schema.

The class itself lives in the file's process, where replies become objects of it. Here it is only described: to models,
and to the store of replies, which therefore finds the same replies with isolation and without. Its fields are made
again as far as a schema says, for the judge that works without a model and goes by fields.
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


class StandIn(BaseModel):
    """Stands for a class of a judge file. Any JSON value is taken as a reply: whether it fits is found out there."""

    model_config = ConfigDict(protected_namespaces=(), populate_by_name=True, serialize_by_alias=True)
    described: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
        """The schema of the class this stands for, a copy: whoever asks may change it."""
        return copy.deepcopy(dict(cls.described))

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **_: Any) -> StandIn:
        """An empty object, if what is given is JSON at all; what it says is read by the file's own class."""
        _ANY_JSON.validate_json(json_data)
        return cls.model_construct()


@lru_cache(maxsize=256)
def stand_in(name: str, schema: str) -> type[BaseModel]:
    """The stand-in for the class ``name``, by its schema as JSON text. Equal descriptions give the same class.

    Raises:
        JudgeBug: the schema is none, or is too large.
    """
    if len(schema) > MAX_SCHEMA_CHARS:
        raise JudgeBug(f"the schema of {name} has {len(schema)} characters: at most {MAX_SCHEMA_CHARS}")
    try:
        described = json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise JudgeBug(f"the schema of {name} cannot be read: {error}") from error
    if not isinstance(described, dict):
        raise JudgeBug(f"the schema of {name} is no object")
    return _Maker(described).stand_in(name)


class _Maker:
    """Makes types from one schema. What it does not know becomes ``Any``."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        found = whole.get("$defs")
        self._whole = whole
        self._definitions: Mapping[str, Any] = found if isinstance(found, dict) else {}
        self._made: dict[str, Any] = {}

    def stand_in(self, name: str) -> type[BaseModel]:
        """The class for the whole. One that refers to itself is described by a definition of its own."""
        top = self._definitions.get(str(self._whole.get("$ref")).rpartition("/")[2])
        made: Any = self.model(name, top if isinstance(top, dict) else self._whole, base=StandIn)
        made.described = self._whole
        stands: type[BaseModel] = made
        return stands

    def model(
        self, name: str, schema: Mapping[str, Any], *, base: type[BaseModel] | None = None, depth: int = 0
    ) -> type[BaseModel]:
        """The class of an object with named properties."""
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
        made: Any = create_model(name or "Model", __base__=base or _Inner, __doc__=text, **fields)
        model: type[BaseModel] = made
        return model

    def type(self, schema: Mapping[str, Any], depth: int) -> Any:
        """The type a schema describes."""
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
            is_plain = values and all(isinstance(each, str | int | bool | None) for each in values)
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
            self._made[name] = Any  # what refers to itself ends here
            described = self._definitions.get(name)
            if isinstance(described, dict):
                self._made[name] = self.type({"title": name, **described}, depth + 1)
        return self._made[name]


class _Inner(BaseModel):
    """A class inside another one."""

    model_config = ConfigDict(protected_namespaces=(), populate_by_name=True, serialize_by_alias=True)


def _field_name(key: str, number: int) -> str:
    """A name pydantic takes for a field."""
    name = key if key.isidentifier() else "".join(char if char.isalnum() else "_" for char in key)
    name = name.lstrip("_") or f"field{number}"
    if not name.isidentifier():
        name = f"field_{name}" if f"field_{name}".isidentifier() else f"field{number}"
    return f"{name}_" if hasattr(StandIn, name) or keyword.iskeyword(name) else name

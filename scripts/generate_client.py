"""Generator for ``make client``: the client's methods and types, and the operations in docs/http-api.md.

The source is the OpenAPI document.
"""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.server.application import create_app
from app.settings import load_settings

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "client" / "assay_client"
NOTICE = "Generated from the OpenAPI document by `make client`. Do not edit."
LEFT_OUT = {
    "verify_answer": "written by hand: one answer and a batch have different responses",
}
"""Operations without a generated method, with the reason."""
API_PAGE = ROOT / "docs" / "http-api.md"
API_NOTICE = "<!-- Generated from the OpenAPI document by `make client`. Do not edit below this line. -->\n"
LIST_FILTERS = ["agent", "task_id", "run", "since", "until"]
"""Filters that several lists have. The table of operations links to their description."""
PLAIN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
}


def main() -> None:
    """Write both modules and the page."""
    for name, text in modules().items():
        (FOLDER / name).write_text(text, "utf-8")
    API_PAGE.write_text(api_page(API_PAGE.read_text("utf-8")), "utf-8")


def api_page(current: str) -> str:
    """Return the page of the HTTP API: the hand-written part of ``current``, then a table row for each operation."""
    document = create_app(load_settings()).openapi()
    schemas = document["components"]["schemas"]
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            effect = one["summary"].replace("``", "`").replace("|", "\\|")
            inputs = _inputs(one, schemas)
            row = f"| `{method.upper()} {path}` | {effect}{f': {inputs}' if inputs else ''} |"
            by_tag.setdefault(one["tags"][0].capitalize(), []).append(row)
    rows = ["| operation | effect: parameters (bold: required) |", "|---|---|"]
    for tag, of_tag in by_tag.items():
        rows += [f"| **{tag}** | |", *of_tag]
    return "\n".join([current.partition(API_NOTICE)[0] + API_NOTICE, *rows]) + "\n"


def _inputs(operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Return the query parameters and the fields of the body, those that are required in bold."""
    given = [one for one in operation.get("parameters", ()) if one["in"] == "query" or one["name"] == "Idempotency-Key"]
    names = [one["name"] for one in given]
    is_filtered = all(name in names for name in LIST_FILTERS)
    left_out = {"cursor", "limit", *(LIST_FILTERS if is_filtered else ())}
    parts = [
        _input(one["name"], is_required=one.get("required", False)) for one in given if one["name"] not in left_out
    ]
    if is_filtered or "cursor" in names:
        parts.append("[filters](#lists)" if is_filtered else "[pages](#lists)")
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        needed = schema.get("required", ())
        fields = [_input(name, is_required=name in needed) for name in schema.get("properties", {})]
        parts += fields or [f"`{kind}`"]
    return ", ".join(dict.fromkeys(parts))


def _input(name: str, *, is_required: bool) -> str:
    return f"**`{name}`**" if is_required else f"`{name}`"


def modules() -> dict[str, str]:
    """Return the text of each generated module by file name."""
    document = create_app(load_settings()).openapi()
    schemas = document["components"]["schemas"]
    texts = {"operations.py": _operations(document["paths"], schemas), "types.py": _types(schemas)}
    return {name: _formatted(text) for name, text in texts.items()}


def _formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff"]
    for action in (["check", "--quiet", "--fix", "--select", "I,F401"], ["format", "--quiet"]):
        done = subprocess.run(  # noqa: S603 - formats generated text
            [*command, *action, "--stdin-filename", str(FOLDER / "generated.py"), "-"],
            input=text, capture_output=True, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
        text = done.stdout
    return text


def _operations(paths: dict[str, Any], schemas: dict[str, Any]) -> str:
    lines = [f'"""A method for each operation of the API. {NOTICE}"""', "", "from __future__ import annotations", ""]
    lines += ["from collections.abc import AsyncIterator, Iterator, Mapping, Sequence"]
    lines += ["from typing import TYPE_CHECKING, Any, Literal", ""]
    lines += ["from assay_client.sending import AsyncSender, Sender", "from assay_client.values import Event"]
    lines += [
        "from assay_client.wire import given, path",
        "",
        "if TYPE_CHECKING:",
        "    from assay_client import types",
        "",
    ]
    every = [(path, method, one) for path, methods in paths.items() for method, one in methods.items()]
    for prefix, kind in (("", "blocking"), ("Async", "asyncio")):
        lines += ["", f"class {prefix}Operations({prefix}Sender):", f'    """Methods of the {kind} client."""']
        for path, method, operation in every:
            if operation["operationId"] not in LEFT_OUT:
                lines += ["", *_method(path, method, operation, schemas, is_async=bool(prefix))]
    return "\n".join(lines) + "\n"


def _method(
    path: str, verb: str, operation: dict[str, Any], schemas: dict[str, Any], *, is_async: bool
) -> Iterator[str]:
    answers = {kind: body for status, one in operation["responses"].items() if status[0] == "2"
               for kind, body in one.get("content", {}).items()}  # fmt: skip
    answer = answers.get("application/json", {}).get("schema", {})
    item = _item(answer, schemas)
    needed, optional, query, headers = ["self"], [], [], []
    for one in operation.get("parameters", ()):
        name = re.sub(r"\W", "_", one["name"]).lower()
        if (one["in"] == "header" and name != "idempotency_key") or (item is not None and name == "cursor"):
            continue  # If-None-Match and Last-Event-ID are for browsers; lists follow the cursor
        kind = _type(one["schema"], prefix="types.", is_input=True)
        if one.get("required"):
            needed.append(f"{name}: {kind}")
        else:
            optional.append(f"{name}: {kind.removesuffix(' | None')} | None = None")
        if one["in"] == "query":
            query.append(f"{name}={name}")
        elif one["in"] == "header":
            headers.append(f'"{one["name"]}": {name}')
    options = [f"params=given({', '.join(query)})"] if query else []
    options += [f"headers=given(**{{{', '.join(headers)}}})"] if headers else []
    for named, more, option in _body(operation, schemas):
        needed += named
        optional += more
        options += option
    places = re.findall(r"\{(\w+)\}", path)
    place = f"path({', '.join([repr(re.sub('{.*?}', '{}', path)), *places])})" if places else repr(path)
    call = f"({', '.join([repr(verb.upper()), place, *options])})"
    wait, iterator = ("await ", "AsyncIterator") if is_async else ("", "Iterator")
    define = "async def" if is_async else "def"
    if item is not None:
        result, code, define = f"{iterator}[{item}]", f"self._items({place}, given({', '.join(query)}))", "def"
    elif "text/event-stream" in answers:
        result, code, define = f"{iterator}[Event]", f"self._events({place}, after)", "def"
        optional.append("after: str | None = None")
    elif not answers:
        result, code = "None", f"{wait}self._send{call}"
    elif "application/json" in answers:
        result, code = _type(answer, prefix="types."), f"{wait}self._json{call}"
    elif all(kind.startswith("text/") or kind.endswith("ndjson") for kind in answers):
        result, code = "str", f"({wait}self._send{call}).text"
    else:
        result, code = "bytes", f"({wait}self._send{call}).content"
    parameters = [*needed, "*", *optional] if optional else needed
    yield f"    {define} {operation['operationId']}({', '.join(parameters)}) -> {result}:"
    yield from _docstring(f"{operation['summary'].rstrip('.')}.", operation.get("description", ""), indent=8)
    yield f"        {code}" if result == "None" else f"        return {code}"


def _body(operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Yield the required and optional parameters of a request body, and how it is passed on."""
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        kind = _type(content["application/json"]["schema"], prefix="types.", is_input=True)
        yield [f"body: {kind} | Mapping[str, Any]"], [], ["json=body"]
    elif list(content) == ["multipart/form-data"]:
        schema = content["multipart/form-data"]["schema"]
        schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        fields = {name: one for name, one in schema["properties"].items() if one.get("contentMediaType") is None}
        needed = [f"{name}: bytes" for name in schema["properties"] if name not in fields]
        optional = [
            f"{name}: {_type(one, prefix='types.', is_input=True)} | None = None" for name, one in fields.items()
        ]
        files = ", ".join(f'"{name}": {name}' for name in schema["properties"] if name not in fields)
        yield needed, optional, [f"files={{{files}}}", f"data=given({', '.join(f'{name}={name}' for name in fields)})"]
    elif content:
        kinds = ", ".join(f'"{kind}"' for kind in content if not kind.startswith("multipart/"))
        yield (
            [f"content: bytes, content_type: Literal[{kinds}]"],
            [],
            ["content=content", 'headers={"Content-Type": content_type}'],
        )


def _item(schema: dict[str, Any], schemas: dict[str, Any]) -> str | None:
    """Return the type of the items if a schema is a page of a list."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if set(schema.get("properties", {})) != {"items", "next_cursor"}:
        return None
    return _type(schema["properties"]["items"].get("items", {}), prefix="types.")


def _types(schemas: dict[str, Any]) -> str:
    lines = [
        f'"""Types of requests and responses: the JSON objects of the API. {NOTICE}"""',
        "",
        "from __future__ import annotations",
        "",
    ]
    lines += [
        "from collections.abc import Mapping, Sequence",
        "from typing import Any, Literal, NotRequired, TypeAlias, TypedDict",
    ]
    for name in sorted(schemas):
        schema = schemas[name]
        if _item(schema, schemas) is not None or name.startswith("Body_"):
            continue
        if "properties" not in schema:
            value = "Any" if f"/{name}'" in str(schema) else _type(schema)
            lines += [
                "",
                f'{_name(name)}: TypeAlias = "{value}"' if '"' not in value else f"{_name(name)}: TypeAlias = {value}",
            ]
            if schema.get("description"):
                lines += list(_docstring(schema["description"], "", indent=0))
            continue
        lines += ["", "", *_typed_dict(name, schema)]
    return "\n".join(lines) + "\n"


def _typed_dict(name: str, schema: dict[str, Any]) -> Iterator[str]:
    needed = schema.get("required", ())
    is_input = name.endswith("In")
    fields = {field: _type(one, is_input=is_input) for field, one in schema["properties"].items()}
    fields = {field: kind if field in needed else f"NotRequired[{kind}]" for field, kind in fields.items()}
    if all(field.isidentifier() and not keyword.iskeyword(field) for field in fields):
        yield f"class {_name(name)}(TypedDict):"
        yield from _docstring(schema.get("description") or f"Object {name}.", "", indent=4)
        yield from (f"    {field}: {kind}" for field, kind in fields.items())
    else:
        items = ", ".join(f'"{field}": {_quoted(kind)}' for field, kind in fields.items())
        yield f'{_name(name)} = TypedDict("{_name(name)}", {{{items}}})'
        yield from _docstring(schema.get("description") or f"Object {name}.", "", indent=0)


def _quoted(kind: str) -> str:
    inner = re.fullmatch(r"NotRequired\[(.*)\]", kind)
    return f"NotRequired[{_quoted(inner[1])}]" if inner else repr(kind)


def _name(schema: str) -> str:
    """Return the class name of a schema."""
    return re.sub(r"\W", "_", schema)


def _type(schema: dict[str, Any], *, prefix: str = "", is_input: bool = False) -> str:
    """Return the annotation of the values of a schema. Inputs may be any sequence or mapping."""
    of, to = ("Sequence", "Mapping") if is_input else ("list", "dict")

    def inner(one: dict[str, Any]) -> str:
        return _type(one, prefix=prefix, is_input=is_input)

    if "$ref" in schema:
        return prefix + _name(schema["$ref"].rpartition("/")[2])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema and "properties" not in schema:
            kinds = list(dict.fromkeys(inner(one) for one in schema[several]))
            return "Any" if "Any" in kinds else " | ".join(sorted(kinds, key=lambda kind: kind == "None"))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        literal = f"Literal[{', '.join(_literal(one) for one in values if one is not None)}]"
        return f"{literal} | None" if None in values else literal
    kind: Any = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(inner({**schema, "type": one}) for one in sorted(kind, key=lambda one: one == "null"))
    if kind == "array":
        return f"{of}[{inner(schema['items']) if isinstance(schema.get('items'), dict) else 'Any'}]"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict) and "properties" not in schema:
        return f"{to}[str, {inner(schema['additionalProperties'])}]"
    return f"{to}[str, Any]" if kind == "object" else PLAIN.get(str(kind), "Any")


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _docstring(summary: str, description: str, *, indent: int) -> Iterator[str]:
    """Yield a docstring: its first line, and the rest after an empty line."""
    space = " " * indent
    width = 116 - indent
    summary, description = (" ".join(part.split()) for part in (summary, description))
    first, *rest = textwrap.wrap(summary, width)
    if not rest and not description:
        yield f'{space}"""{first}"""'
        return
    more = [*rest, *([""] if rest and description else []), *textwrap.wrap(description, width)]
    yield from (
        f'{space}"""{first}',
        *([] if rest else [""]),
        *(space + line if line else "" for line in more),
        f'{space}"""',
    )


if __name__ == "__main__":
    main()

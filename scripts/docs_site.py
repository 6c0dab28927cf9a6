"""Hook of MkDocs: adds the documents outside ``docs/`` and the reference pages that are generated from the code."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from app.cli.program import program
from app.server.application import create_app
from app.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "start.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Documents outside ``docs/``, with their place in the site."""
_LINK = re.compile(
    r"```.*?```|`[^`\n]*`|\[(?P<label>(?:`[^`]*`|[^\[\]`])*)\]\((?P<target>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)", re.DOTALL
)
BOUNDS = {"minimum": "at least", "exclusiveMinimum": "over", "maximum": "at most"}
METHODS = ("get", "post", "put", "patch", "delete")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for source, place in OUTSIDE.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text("utf-8")))
    pages = {"commands": commands_page, "settings": settings_page, "api": api_page}
    for name, page in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Redirect the links that leave ``docs/``: to their place in the site, or for other files to their path as text."""
    del config
    place = page.file.src_uri
    source = next((name for name, moved in OUTSIDE.items() if moved == place), f"docs/{place}")

    def redirect(link: re.Match[str]) -> str:
        target = link["target"]
        if target is None:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        moved = OUTSIDE.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
        if moved is None and (ROOT / path).exists():
            return link["label"] if path in link["label"] else f"{link['label']} (`{path}`)"
        if moved is None or files.get_file_from_path(moved) is None:
            return link[0]  # MkDocs reports it
        relative = posixpath.relpath(moved, posixpath.dirname(place) or ".")
        return f"[{link['label']}]({relative}{link['anchor'] or ''})"

    return _LINK.sub(redirect, markdown)


def commands_page() -> str:
    """Return a page with every command, its arguments and options."""
    lines = [
        "# Commands",
        "",
        "`assay COMMAND --help` prints the same. `assay --install-completion` installs completion for your shell.",
    ]
    for path, command in _commands(typer.main.get_command(program()), "assay"):
        lines += ["", f"## `{path}`", "", command.help or ""]
        shown = [one for one in command.params if not one.hidden]
        if shown:
            lines += ["", "| argument or option | default | description |", "|---|---|---|"]
        for one in shown:
            names = ", ".join([*one.opts, *one.secondary_opts]) if one.opts[0].startswith("-") else one.name.upper()
            default = (
                "required"
                if one.required
                else _code(str(one.default) if isinstance(one.default, Path) else one.default)
                if one.show_default
                else ""
            )
            lines.append(f"| `{names}` | {default} | {_cell(one.help or '')} |")
    return "\n".join(lines) + "\n"


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    if not below or command.invoke_without_command:
        yield path, command
    for name, one in below.items():
        if not one.hidden:
            yield from _commands(one, f"{path} {name}")


def settings_page() -> str:
    """Return a page with every setting, its type and default."""
    schema = Settings.model_json_schema()
    lines = [
        "# Settings",
        "",
        "Settings are read from the environment and from a file `.env` in the working directory.",
        "[Operations](../operations.md#settings) explains them.",
        "",
        "| setting | type | default |",
        "|---|---|---|",
    ]
    for name, one in schema["properties"].items():
        variable = name if name.isupper() else f"ASSAY_{name.upper()}"
        lines.append(f"| `{variable}` | {_schema(one)} | {_code(one.get('default'))} |")
    return "\n".join([*lines, *_schemas(schema["$defs"])]) + "\n"


def api_page() -> str:
    """Return a page with every operation of the OpenAPI document and the schemas of requests and responses."""
    document = create_app(load_settings()).openapi()
    lines = [
        "# HTTP API: parameters and schemas",
        "",
        "[HTTP API](../http-api.md) explains the operations. The service has the same document at `/openapi.json`.",
    ]
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method in operations:
                lines += _operation(f"{method.upper()} {path}", operations[method])
    return "\n".join([*lines, *_schemas(document["components"]["schemas"])]) + "\n"


def _operation(title: str, operation: dict[str, Any]) -> Iterator[str]:
    yield from ("", f"## `{title}`", "", f"{operation.get('summary', '')}. {operation.get('description', '')}")
    yield from ("", f"Operation `{operation['operationId']}`.")
    if operation.get("parameters"):
        yield from ("", "| parameter | in | type | description |", "|---|---|---|---|")
    for one in operation.get("parameters", ()):
        place = f"{one['in']}, required" if one.get("required") else one["in"]
        yield f"| `{one['name']}` | {place} | {_schema(one['schema'])} | {_cell(one.get('description', ''))} |"
    yield from ("", "| | content | schema |", "|---|---|---|")
    bodies = {"request": operation.get("requestBody", {}), **operation["responses"]}
    for name, body in bodies.items():
        for kind, content in body.get("content", {}).items():
            yield f"| {name} | `{kind}` | {_schema(content.get('schema', {}))} |"


def _schemas(schemas: dict[str, Any]) -> Iterator[str]:
    yield from ("", "## Schemas")
    for name, schema in schemas.items():
        yield from ("", f"### {name}", "", _cell(schema.get("description", "")), "")
        if "properties" not in schema:
            yield _schema(schema)
            continue
        yield from ("| field | type | description |", "|---|---|---|")
        for field, one in schema["properties"].items():
            needed = ", required" if field in schema.get("required", ()) else ""
            yield f"| `{field}` | {_schema(one)}{needed} | {_cell(one.get('description', ''))} |"


def _schema(schema: dict[str, Any]) -> str:
    """Return a schema as one table cell, with links to named schemas."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(_schema(one) for one in schema[several] if one.get("type") != "null")
    if "enum" in schema or "const" in schema:
        return ", ".join(_code(one) for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_schema(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_schema(schema['additionalProperties'])}"
    bounds = "".join(f", {word} {schema[key]}" for key, word in BOUNDS.items() if key in schema)
    return f"{schema.get('type', 'any')}{bounds}"


def _code(value: object) -> str:
    """Return a value in code style. Empty values give an empty cell."""
    if value in (None, "", [], {}):
        return ""
    text = (value if isinstance(value, str) else json.dumps(value)).replace("|", "\\|")
    return f"`{text}`"


def _cell(text: str) -> str:
    """Return a text for a table cell, without links and HTML."""
    return re.sub(r"([|\[])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")

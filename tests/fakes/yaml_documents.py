"""Writer of YAML documents for tests of the reader."""

from __future__ import annotations

import re
from typing import Any

import yaml

from judges.yaml_tasks.document import resolve_scalar

_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029\ufeff]")
"""Line breaks that YAML normalizes, and the byte order mark; they survive only as escapes."""


class _Dumper(yaml.SafeDumper):
    """Dumper without aliases. It quotes every text that ``resolve_scalar`` would read as another value."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None if isinstance(resolve_scalar(text), str) else "'"
    style = '"' if _OTHER_BREAKS.search(text) else "|" if "\n" in text else style
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def write_document(value: Any) -> str:
    """Return a value as YAML. ``read_document`` returns an equal value."""
    written: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return written

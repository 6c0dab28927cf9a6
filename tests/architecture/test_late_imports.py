"""Imports inside functions: only those of this list, for the start of a command or of a child process.

Milliseconds of CPU time on a small virtual machine, as the import adds them to what is loaded before it. Libraries that
are imported on first use stand in ``judges/late_libraries.py``.
"""

from __future__ import annotations

import ast
from collections import Counter

from tests.architecture.sources import module_name, parsed, python_files

LATE = {
    "assay": 1,  # the packages that it makes importable
    "app.cli": 4,  # Ctrl-C is handled before anything else is imported
    "app.cli.program": 22,  # all commands: 2,000 ms; `assay --help`: 120 ms
    "app.console.streams": 1,  # rich: 35 ms, for `assay --help`
    "app.engine.runtime": 3,  # SQLAlchemy: 460 ms, for `assay evaluate`, which has no database
    "app.interruption": 1,  # psutil: 30 ms, before Ctrl-C is handled
    "app.server.processes": 1,  # FastAPI: 1,600 ms, for worker processes
    "app.storage.database": 4,  # Alembic: 370 ms, for processes that find a current database
    "cache.backends.document_child": 3,  # Pillow: 30 ms for each child that decodes no image
    "cache.backends.patchright": 1,  # the browser driver, for processes that capture nothing
    "judges.analysis.label_formats": 2,  # ijson, for label sets in JSON arrays
    "judges.llm.providers": 3,  # SDKs: 570 ms for OpenAI, 700 ms for Bedrock
    "judges.loader": 1,  # the compiler of YAML tasks: 280 ms, for processes of scripts
    "judges.suites.mind2web.candidate_scores_child": 2,  # pyarrow, in a confined process that has only this file
    "judges.tokenizers": 1,  # tiktoken: 130 ms, for pages that are too long
    "mind2web2.api_tools.tool_arxiv": 1,  # requests: 60 ms, for processes of scripts without this tool
    "mind2web2.cli._common": 1,  # structlog: 40 ms
    "mind2web2.external_services": 1,  # local services: 100 ms, for isolated scripts
    "mind2web2.local_services": 1,  # requests, as above
}


def test_imports_inside_functions_are_those_of_the_list() -> None:
    found: Counter[str] = Counter()
    for path in python_files("rubrics", "answers", "cache", "judges", "app"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[module_name(path)] += sum(
                    isinstance(each, ast.Import | ast.ImportFrom) for each in ast.walk(node)
                )
    assert +found == Counter(LATE)
    assert sum(LATE.values()) <= 60

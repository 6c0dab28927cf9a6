"""Records of the threads in which work on long answers runs, which must not be the one of the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from answers import citations


def record_long_searches(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """Return a list to which each search for the citations of a long answer adds its thread."""
    threads, search = list[threading.Thread](), citations.citations

    def recorded(text: str) -> tuple[citations.Citation, ...]:
        if len(text) >= citations.CACHED_CHARS:
            threads.append(threading.current_thread())
        return search(text)

    monkeypatch.setattr(citations, "citations", recorded)
    return threads


def record_calls(monkeypatch: pytest.MonkeyPatch, module: ModuleType, *names: str) -> list[threading.Thread]:
    """Return a list to which each call of these functions of a module adds its thread."""
    threads = list[threading.Thread]()

    def recorded(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return function(*arguments, **options)

    for name in names:
        monkeypatch.setattr(module, name, partial(recorded, getattr(module, name)))
    return threads

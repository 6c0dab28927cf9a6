"""Whether this machine can do the work: one check after the other, each with its remedy. Changes nothing for good."""

from __future__ import annotations

import asyncio
import platform
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path

from app.errors import AppError
from app.limits import Limits
from app.settings import Settings, is_loopback
from cache.errors import CacheError
from judges.errors import JudgeError

WANTED_BYTES = 2 * 1024**3
NEEDED_BYTES = 200 * 1024**2


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    """Work can be done, but somebody should know."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at; ``remedy`` says what to do about it, empty where nothing is wrong."""

    name: str
    state: State
    detail: str
    remedy: str = ""

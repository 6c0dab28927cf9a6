"""Models for a suite, without the rest of what judging answers needs: no browser, no page store, no judge files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.engine.limits import Limits
from app.engine.model_clients import ModelClients, reply_store
from app.features.suites.running import Asking
from app.settings import Settings


@asynccontextmanager
async def open_asking(settings: Settings) -> AsyncIterator[Asking]:
    """The settings' model, through the same limits, retries, budget and reply store as every judge.

    Raises:
        ModelNotConfigured: no such provider, or its key is missing.
    """
    models = ModelClients(settings, Limits.from_settings(settings), reply_store(settings))
    try:
        yield asking_for(models, settings.model)
    finally:
        await models.aclose()


def asking_for(models: ModelClients, model: str) -> Asking:
    """The client of a model that is open already.

    Raises:
        ModelNotConfigured
    """
    client, name = models.client(model)
    return Asking(client=client, model=name)

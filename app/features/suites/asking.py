"""Model clients for suites, without the browser, page store and judge files that judging answers needs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.engine.limits import Limits
from app.engine.model_clients import ModelClients, reply_store
from app.features.suites.running import SuiteModel
from app.settings import Settings


@asynccontextmanager
async def open_suite_model(settings: Settings) -> AsyncIterator[SuiteModel]:
    """Open a client for the configured model, with the same limits, retries, budget and reply cache as for judges.

    Raises:
        ModelNotConfigured: the provider does not exist or its API key is missing.
    """
    models = ModelClients(settings, Limits.from_settings(settings), reply_store(settings))
    try:
        yield _model_for(models, settings.model)
    finally:
        await models.aclose()


def _model_for(models: ModelClients, model: str) -> SuiteModel:
    """Return the client of a model.

    Raises:
        ModelNotConfigured: the provider does not exist or its API key is missing.
    """
    client, name = models.client(model)
    return SuiteModel(client=client, model=name)

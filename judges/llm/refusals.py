"""Detects that a provider refuses every request of a run, so that judging stops instead of failing claim by claim."""

from __future__ import annotations

from judges.errors import LLMRejected, RejectionScope
from judges.llm.client import LLMClient, LLMReply, LLMRequest

_NO_ACCESS = 403


class RefusalWatch:
    """A client that remembers the first refusal of the key, the account or the model.

    One for each answer, over a client that many share: ``aclose`` closes nothing.
    """

    def __init__(self, inner: LLMClient, model: str) -> None:
        """``model`` is the run's. That another one which a script names is refused does not stop the run."""
        self._inner = inner
        self._model = model
        self.refusal: LLMRejected | None = None

    async def complete(self, request: LLMRequest) -> LLMReply:
        try:
            return await self._inner.complete(request)
        except LLMRejected as error:
            concerned = error.scope is RejectionScope.ENDPOINT or request.model == self._model
            if self.refusal is None and concerned and refuses_everything(error):
                self.refusal = error
            raise

    async def aclose(self) -> None:
        """The client behind belongs to somebody else."""


def refuses_everything(error: LLMRejected) -> bool:
    """Whether the provider would refuse every request of the run: for its key, its account or its model."""
    return error.scope is RejectionScope.ENDPOINT or (
        error.scope is RejectionScope.MODEL and (error.no_such_model or error.status == _NO_ACCESS)
    )

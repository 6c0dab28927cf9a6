"""Detection of rejections that concern every request of a run, so that judging stops instead of failing each claim."""

from __future__ import annotations

from judges.errors import LLMRejected, RejectionScope
from judges.llm.client import LLMClient, LLMReply, LLMRequest

_NO_ACCESS = 403


class RejectionMonitor:
    """``LLMClient`` that stores the first rejection of the key, the account or the model.

    It belongs to one answer and wraps a shared client, which it does not close.
    """

    def __init__(self, inner: LLMClient, model: str) -> None:
        """``model`` is the model of the run. Rejections of another model that a script uses do not stop the run."""
        self._inner = inner
        self._model = model
        self.refusal: LLMRejected | None = None

    async def complete(self, request: LLMRequest) -> LLMReply:
        try:
            return await self._inner.complete(request)
        except LLMRejected as error:
            concerned = error.scope is RejectionScope.ENDPOINT or request.model == self._model
            if self.refusal is None and concerned and rejects_all_requests(error):
                self.refusal = error
            raise

    async def aclose(self) -> None:
        """Do nothing: the wrapped client is shared."""


def rejects_all_requests(error: LLMRejected) -> bool:
    """Return whether the provider would reject every request of the run because of its key, account or model."""
    return error.scope is RejectionScope.ENDPOINT or (
        error.scope is RejectionScope.MODEL and (error.no_such_model or error.status == _NO_ACCESS)
    )

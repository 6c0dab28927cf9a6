"""Notices when a provider refuses everything: then it is no answer's fault, and judging on is of no use."""

from __future__ import annotations

from judges.errors import LLMRejected, RejectionScope
from judges.llm.client import LLMClient, LLMReply, LLMRequest

_NO_ACCESS = 403


class RefusalWatch:
    """A client that remembers the first refusal of the key, the account or the access to the model.

    One for each answer, over a client that many share: ``aclose`` closes nothing.
    """

    def __init__(self, inner: LLMClient) -> None:
        self._inner = inner
        self.refusal: LLMRejected | None = None

    async def complete(self, request: LLMRequest) -> LLMReply:
        try:
            return await self._inner.complete(request)
        except LLMRejected as error:
            if self.refusal is None and refuses_everything(error):
                self.refusal = error
            raise

    async def aclose(self) -> None:
        """The client behind belongs to somebody else."""


def refuses_everything(error: LLMRejected) -> bool:
    """Whether a refusal is about who asks: mended by a key, a payment or a permission, and not by another request."""
    return error.scope is RejectionScope.ENDPOINT or (
        error.scope is RejectionScope.MODEL and error.status == _NO_ACCESS
    )

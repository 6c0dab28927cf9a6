"""Commands that wait for the server: what they print at the end, and after Ctrl-C that the server continues."""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.submit import follow
from app.console.errors import Interrupted


class InterruptedClient:
    """Client of a server on which a job never ends. Waiting for it is interrupted."""

    def wait(self, labels: object, **options: object) -> None:
        raise KeyboardInterrupt

    def get_rescore(self, rescore_id: str) -> dict[str, Any]:
        return {"answers": [{"job_id": "job_1", "agent": "otter", "task_id": "sky", "answer_name": "answer_1"}]}


def test_waiting_for_jobs():
    with pytest.raises(Interrupted, match=r"continue on the server\. .* again: assay admin jobs --wait job_1 job_2$"):
        follow(InterruptedClient(), {"job_1": "a", "job_2": "b"}, timeout_s=None, as_json=False)  # type: ignore[arg-type]

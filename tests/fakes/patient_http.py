"""HTTP transports that repeat a request while the service is briefly unavailable, as clients of a real service do.

A service on a busy machine can lose a database connection. It then returns 503 with ``Retry-After``.
"""

from __future__ import annotations

import time

import httpx

_PAUSE_S = 0.2


class PatientTransport(httpx.HTTPTransport):
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        while _is_busy(request, response := super().handle_request(request)):
            response.close()
            time.sleep(_PAUSE_S)
        return response


def _is_busy(request: httpx.Request, response: httpx.Response) -> bool:
    """Return whether to repeat the request. ``/readyz`` returns 503 as its result."""
    return response.status_code == 503 and "retry-after" in response.headers and request.url.path != "/readyz"

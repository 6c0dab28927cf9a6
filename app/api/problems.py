"""Error responses as ``application/problem+json`` (RFC 9457), with an error code for programs."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, get_args, get_origin

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.params import Form
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException

from answers.errors import InvalidSubmission, ProblemCode
from app.jobs.errors import JobNotFound, JobStateConflict, QueueFull
from app.storage.errors import DatabaseUnavailable, KeyInProgress, KeyReused, StorageFull
from cache.errors import BlobStoreFull, CacheError
from judges.errors import ModelNotConfigured, missing_extra

MEDIA_TYPE = "application/problem+json"
_INVALID = "The request has invalid fields; see errors"
RETRY_AFTER_S = 2
_QUEUE_RETRY_S = 10
_FULL_RETRY_S = 30
_LIMITS = (ProblemCode.TOO_LARGE, ProblemCode.TOO_MANY)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
_KNOWN = (
    InvalidSubmission,
    ModelNotConfigured,
    JobNotFound,
    JobStateConflict,
    QueueFull,
    KeyInProgress,
    KeyReused,
    DatabaseUnavailable,
    CacheError,
    ModuleNotFoundError,
    OSError,
)
_log = structlog.get_logger(__name__)


class Problem(Exception):
    """Exception that becomes an error response.

    ``errors`` are (path, message) pairs of invalid fields. ``fields`` are added to the response.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.fields = dict(fields or {})
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})

    @property
    def title(self) -> str:
        return HTTPStatus(self.status).phrase

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
        }
        request_id = structlog.contextvars.get_contextvars().get("request_id")
        if request_id is not None:
            body["request_id"] = request_id
        if self.errors:
            body["errors"] = [{"path": path, "message": message} for path, message in self.errors]
        return {**body, **self.fields}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body(), self.status, self.headers, media_type=MEDIA_TYPE)


class ProblemWhileReading(HTTPException):
    """Problem raised while the body is read. FastAPI passes only its own exception type through at that point."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.status, problem.detail, problem.headers)
        self.problem = problem


def not_found(subject: str) -> Problem:
    return Problem(404, "NOT_FOUND", f"{subject[0].upper()}{subject[1:]} not found")


def unavailable(detail: str) -> Problem:
    return Problem(503, "UNAVAILABLE", detail, headers={"Retry-After": str(RETRY_AFTER_S)})


def _full(detail: str) -> Problem:
    _log.error("storage full", detail=detail)
    return Problem(507, "STORAGE_FULL", detail, headers={"Retry-After": str(_FULL_RETRY_S)})


def install_problems(app: FastAPI) -> None:
    """Turn every exception into an error response."""
    app.add_exception_handler(Problem, _answer)
    app.add_exception_handler(HTTPException, _answer)
    app.add_exception_handler(RequestValidationError, _answer)
    for known in _KNOWN:
        app.add_exception_handler(known, _answer)
    app.add_exception_handler(Exception, _answer)


async def check_parameters(request: Request) -> None:
    """Check that the request says each thing once, and nothing that the route does not declare.

    A misspelled filter would return other items, and of two values one would be ignored.

    Raises:
        Problem: A query parameter is unknown (422). A header, a query parameter or a form field that is not a list is
            given more than once (400).
    """
    dependants = list(_flat(request.scope["route"].dependant))
    query = {field.alias: field for each in dependants for field in each.query_params}
    unknown = sorted(request.query_params.keys() - query.keys())
    if unknown:
        takes = f"this operation takes {', '.join(sorted(query))}" if query else "this operation takes none"
        message = f"is not a query parameter: {takes}"
        raise Problem(422, "INVALID", _INVALID, errors=[(name, message) for name in unknown])
    given = [name for name, _ in request.query_params.multi_items() if not _is_list(query[name])]
    headers = {"Authorization", *(field.alias for each in dependants for field in each.header_params)}
    given += [name for name in headers for _ in request.headers.getlist(name)]
    form = {
        field.alias: field for each in dependants for field in each.body_params if isinstance(field.field_info, Form)
    }
    if form:
        sent = (await request.form()).multi_items()
        given += [name for name, _ in sent if name in form and not _is_list(form[name])]
    repeated = sorted(name for name, number in Counter(given).items() if number > 1)
    if repeated:
        message = "is given more than once: send it once"
        raise Problem(
            400, "GIVEN_TWICE", f"{', '.join(repeated)} {message}", errors=[(name, message) for name in repeated]
        )


def _flat(dependant: Dependant) -> Iterator[Dependant]:
    yield dependant
    for dependency in dependant.dependencies:
        yield from _flat(dependency)


def _is_list(field: Any) -> bool:
    """Return whether a parameter takes several values."""
    return any(
        isinstance(origin, type) and issubclass(origin, Collection)
        for each in (field.field_info.annotation, *get_args(field.field_info.annotation))
        if (origin := get_origin(each)) is not None
    )


async def _answer(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return _not_allowed(request)
    return as_problem(error).response()


def _not_allowed(request: Request) -> Response:
    """Answer a method that the path does not support: OPTIONS with 204, others with 405, both with ``Allow``.

    Each route knows only its own methods, so all routes are checked.
    """
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    routes: list[Any] = [one for one in iter_route_contexts(request.app.routes) if one.path_regex.match(path)]
    served = {method for route in routes for method in route.methods}
    allowed = [method for method in _METHODS if method in served]
    headers = {"Allow": ", ".join(dict.fromkeys([*allowed, "OPTIONS"]))}
    if request.method == "OPTIONS":
        return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)
    detail = f"{request.url.path} does not support {request.method}; it supports {headers['Allow']}"
    return Problem(405, "METHOD_NOT_ALLOWED", detail, headers=headers).response()


def as_problem(error: Exception) -> Problem:
    match error:
        case Problem():
            return error
        case ProblemWhileReading():
            return error.problem
        case RequestValidationError():
            return _invalid_request(error)
        case InvalidSubmission():
            return _invalid_submission(error)
        case HTTPException() if "exceeded maximum size" in str(error.detail):  # a text field of a form
            return Problem(413, "TOO_LARGE", str(error.detail))
        case HTTPException():
            code = HTTPStatus(error.status_code).name
            return Problem(error.status_code, code, str(error.detail), headers=error.headers)
        case ModelNotConfigured():
            return Problem(422, "INVALID", str(error), errors=[("model", str(error))])
        case ModuleNotFoundError() if (missing := missing_extra(error)) is not None:
            return Problem(501, "NOT_INSTALLED", missing)
        case JobNotFound():
            return not_found(f"job {str(error)!r}")
        case JobStateConflict():
            return Problem(409, "CONFLICT", str(error))
        case KeyReused():
            return Problem(422, "IDEMPOTENCY_KEY_REUSED", str(error), errors=[("Idempotency-Key", str(error))])
        case KeyInProgress():
            return Problem(409, "IDEMPOTENCY_KEY_IN_PROGRESS", str(error), headers={"Retry-After": "1"})
        case QueueFull():
            return Problem(503, "QUEUE_FULL", str(error), headers={"Retry-After": str(_QUEUE_RETRY_S)})
        case StorageFull():
            return _full(str(error))
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _full("The disk of the service is full: free some space")
        case DatabaseUnavailable():
            _log.warning("database unavailable", detail=str(error))
            return unavailable("The database is unavailable")
        case BlobStoreFull():
            return _full("The evidence store is full: free some space")
        case CacheError():
            _log.warning("evidence unavailable", detail=str(error))
            return unavailable("The evidence store is unavailable")
        case _:
            return Problem(500, "INTERNAL", "Internal error; see the log of the service")


def _invalid_request(error: RequestValidationError) -> Problem:
    if all(part["loc"][0] == "path" for part in error.errors()):
        return not_found("resource")  # ids in paths have a fixed format
    errors = []
    for part in error.errors():
        place, *path = part["loc"]
        if place == "query":  # a name can follow, of a member of a union
            path = [path[0], *(each for each in path[1:] if isinstance(each, int))]
        if part["type"] == "json_invalid":
            errors.append(("", f"is not valid JSON: {part['ctx']['error']}"))
            continue
        message = str(part["msg"]).removeprefix("Value error, ")
        if part["type"] in ("string_too_long", "too_long"):
            message = f"{message}, not {len(part['input'])}"
        if part["loc"] == ("query", "cursor"):
            message = "is not a cursor of this list: send the next_cursor of the previous page"
        errors.append((".".join(map(str, path)) or ("" if place == "body" else str(place)), message))
    return Problem(422, "INVALID", _INVALID, errors=errors)


def _invalid_submission(error: InvalidSubmission) -> Problem:
    too_large = all(problem.code in _LIMITS for problem in error.problems)
    errors = [(problem.path, problem.message) for problem in error.problems]
    if too_large:
        return Problem(413, "TOO_LARGE", "The request exceeds a limit; see errors", errors=errors)
    return Problem(422, "INVALID", _INVALID, errors=errors)

"""Turns exceptions into error responses: a JSON object and an HTTP status."""

import logging

from flask import Response, g
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from btcpay.settings.logs import REQUEST_ID
from btcpay.values import errors
from btcpay.web.paths import json_response
from storage.database import in_one_line
from storage.faults import is_outside
from storage.write_queue import TooManyWait

log = logging.getLogger(__name__)

STATUS = {
    "invalid_request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "payload_too_large": 413,
    "rate_limited": 429,
    "server_error": 500,
    "price_unavailable": 503,
}


def error_response(error: errors.ApiError) -> Response:
    """Returns the API's response to an error: JSON, with the HTTP status and headers.

    Also stores the error's code in `g.error_code`, for the log of requests.
    """
    g.error_code = error.code
    envelope = {"error": {"code": error.code, "message": str(error)}}
    response = json_response(envelope, STATUS[error.code])
    if isinstance(error, errors.Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, errors.RateLimited):
        response.headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.Busy):
        response.status_code = 503
    if isinstance(error, errors.MethodNotAllowed):
        response.status_code = 405
        response.headers["Allow"] = ", ".join(sorted(error.allowed))
    return response


def as_api_error(error: Exception) -> errors.ApiError:
    """Converts an exception to an ApiError.

    An ApiError is returned unchanged. An HTTPException of Flask or werkzeug becomes the
    ApiError with a similar status. Any other exception is unexpected: it is logged, and
    the result tells the client no details.
    """
    if isinstance(error, errors.ApiError):
        return error
    if isinstance(error, HTTPException):
        return _from_http(error)
    return _log_unexpected(error)


def _from_http(error: HTTPException) -> errors.ApiError:
    """Returns the ApiError for an HTTPException of Flask or werkzeug."""
    if error.code == 404:
        return errors.NotFound("there is nothing at this path")
    if isinstance(error, MethodNotAllowed):
        methods = list(error.valid_methods or [])
        return errors.MethodNotAllowed("this path does not take that method", methods)
    if error.code == 413:
        return errors.PayloadTooLarge("the body is too large")
    if error.code is None or error.code >= 500:
        # Flask wraps an exception that nothing handles in an InternalServerError.
        unhandled = getattr(error, "original_exception", None)
        return _log_unexpected(unhandled or error)
    return errors.InvalidRequest(error.description or "the request is malformed")


def _log_unexpected(error: Exception) -> errors.ApiError:
    """Logs an unexpected exception, and returns an error with the request's id.

    The error tells the client no other details. Two kinds of exceptions are special:

    - A full disk or an unreachable database is logged in one line, without a traceback,
      since each request would log it again.
    - TooManyWait is not logged: slow earlier requests cause it, and those are logged if
      they fail.
    """
    if isinstance(error, TooManyWait):
        return errors.Busy("too many requests wait for the database; retry shortly")
    request_id = REQUEST_ID.get()
    message = f"something went wrong on our side; request id {request_id}"
    if is_outside(error):
        log.error("request %s failed: %s", request_id, in_one_line(error))
        return errors.Busy(message)
    log.error("request %s failed", request_id, exc_info=error)
    return errors.ApiError(message)

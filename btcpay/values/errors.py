"""All exceptions that the service raises on purpose."""

import re
from decimal import Decimal
from typing import ClassVar


class BtcpayError(Exception):
    """The base class of this service's exceptions.

    The message is a sentence for the person who has to act on it.
    """


class ApiError(BtcpayError):
    """An error response of the HTTP API. `code` is its stable error code."""

    code: ClassVar[str] = "server_error"


class Busy(ApiError):
    """The database is busy, full or unreachable. The response has status 503."""


class InvalidRequest(ApiError):
    # a field or parameter is missing, has the wrong type or is out of range
    code = "invalid_request"


class TooMuch(InvalidRequest):
    """The amount exceeds the maximum."""


class TooLittle(InvalidRequest):
    """The amount is too small for wallets to send.

    `least` is the lowest amount that they can send, in `currency`.
    """

    def __init__(self, least: Decimal, currency: str) -> None:
        super().__init__(f"wallets cannot send less than {least} {currency}")
        self.least = least
        self.currency = currency


class Unauthorized(ApiError):
    code = "unauthorized"  # the request has no valid API key


class Forbidden(ApiError):
    code = "forbidden"  # the API key's scope does not allow this operation


class NotFound(ApiError):
    code = "not_found"  # the merchant has nothing with that id


class MethodNotAllowed(ApiError):
    code = "invalid_request"  # the path exists, but not with this method

    def __init__(self, message: str, allowed: list[str]) -> None:
        super().__init__(message)
        self.allowed = allowed


class Conflict(ApiError):
    code = "conflict"  # the Idempotency-Key is in use, or was used with another body


class PayloadTooLarge(ApiError):
    code = "payload_too_large"  # the body is larger than the maximum


class RateLimited(ApiError):
    code = "rate_limited"  # the limit of a rolling window is reached

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many requests; retry in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class PriceUnavailable(ApiError):
    code = "price_unavailable"  # there is no trustworthy price right now


class CommandError(BtcpayError):
    """An action was refused or failed, and the message says why.

    A command prints the message to standard error, and ends with `exit_status`. Pages
    show it, or a message of their own.
    """

    def __init__(self, message: str, exit_status: int = 1) -> None:
        super().__init__(message)
        self.exit_status = exit_status


class ChangeRefused(CommandError):
    """An invoice, bill or refund does not allow this change in its present state.

    `code` names the reason. Pages choose their own message by it.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DatabaseNotReady(CommandError):
    """The database cannot be used.

    It is missing, was not made by this service, belongs to another network, or has
    another version of the schema.
    """


class SettingsError(BtcpayError):
    """The settings are invalid.

    `mistakes` has one line for each error, with the variable and what it accepts.
    """

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class FetchError(BtcpayError):
    """A request got no response, or an unusable one. The message contains no URL."""


class Unreachable(FetchError):
    """No complete response came: no connection, a time-out, or a truncated body."""


class TimedOut(Unreachable):
    """No response came in time. The server may nevertheless have acted on the request."""


class Compressed(FetchError):
    """The response body is compressed, though the request did not allow it."""

    def __init__(self) -> None:
        super().__init__("answered compressed, though it was asked not to")


class WebPage(FetchError):
    """The response is an HTML page instead of data."""

    def __init__(self) -> None:
        super().__init__("answered with a web page (HTML) in place of data")


class BadStatus(FetchError):
    """The response has a status other than 200.

    `retry_after_s` is the number of seconds in its Retry-After header, else 0.
    """

    def __init__(self, status: int, retry_after: str = "") -> None:
        super().__init__(f"answered HTTP {status}")
        self.status = status
        self.retry_after_s = 0
        # RFC 9110 also allows a date here, but a server's clock is not trusted.
        if re.fullmatch("[0-9]{1,9}", retry_after):
            self.retry_after_s = int(retry_after)


class ProofFailed(BtcpayError):
    """The evidence does not prove the payment. The message says which check failed."""


class BadRow(BtcpayError):
    """A stored column has an invalid value, because of an edit or a faulty disk.

    The error is raised when a row is converted, so that a loop can skip this row.
    """


class ExplorerError(BtcpayError):
    """No explorer or peer gave a trustworthy response.

    If they respond that nothing was found, this error is not raised.
    """


class OutOfQuota(ExplorerError):
    """No explorer or peer may be called: each one's quota or time limit is used up."""


class BeyondMoney(ExplorerError):
    """A merchant's total of payments would exceed 21 million bitcoin.

    The database transaction that would store this total is rolled back.
    """

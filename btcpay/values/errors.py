"""Every error that the service raises on purpose."""

import re
from decimal import Decimal
from typing import ClassVar


class BtcpayError(Exception):
    """The root; the message is a sentence for the person who has to act on it."""


class ApiError(BtcpayError):
    """An answer of the HTTP interface, with its stable code."""

    code: ClassVar[str] = "server_error"


class Busy(ApiError):
    """A server_error that is 503: the database is busy, full or away."""


class InvalidRequest(ApiError):
    code = "invalid_request"  # a field or parameter is missing, of the wrong type or out of range


class TooMuch(InvalidRequest):
    """An amount that is worth more than may be asked for."""


class TooLittle(InvalidRequest):
    """An amount that no wallet can send; `least`: the smallest sendable amount, in its currency."""

    def __init__(self, least: Decimal, currency: str) -> None:
        super().__init__(f"wallets cannot send less than {least} {currency}")
        self.least = least
        self.currency = currency


class Unauthorized(ApiError):
    code = "unauthorized"  # no valid API key


class Forbidden(ApiError):
    code = "forbidden"  # the key is not for this operation


class NotFound(ApiError):
    code = "not_found"  # nothing with that id belongs to the merchant


class MethodNotAllowed(ApiError):
    code = "invalid_request"  # the path exists, the method does not

    def __init__(self, message: str, allowed: list[str]) -> None:
        super().__init__(message)
        self.allowed = allowed


class Conflict(ApiError):
    code = "conflict"  # the Idempotency-Key is in use, or was used with another body


class PayloadTooLarge(ApiError):
    code = "payload_too_large"  # the body is larger than the service reads


class RateLimited(ApiError):
    code = "rate_limited"  # a rolling window is full

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many requests; retry in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class PriceUnavailable(ApiError):
    code = "price_unavailable"  # no trustworthy price right now


class CommandError(BtcpayError):
    """A command refuses or fails; its message goes to standard error."""

    def __init__(self, message: str, exit_status: int = 1) -> None:
        super().__init__(message)
        self.exit_status = exit_status


class Refused(CommandError):
    """The owner's wish for an invoice is refused; `code` lets a page say why in its own words."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DatabaseNotReady(CommandError):
    """The database has another version or network than this program expects."""


class SettingsError(BtcpayError):
    """`mistakes`: one line each, naming the variable and what it accepts."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class FetchError(BtcpayError):
    """There was no answer, or none that fits the question; the message names no URL."""


class Unreachable(FetchError):
    """No complete answer came: no connection, a time-out, or a body that broke off."""


class TimedOut(Unreachable):
    """No answer in time; the server may still be at work."""


class Compressed(FetchError):
    """The body is compressed, though it was asked for as it is."""

    def __init__(self) -> None:
        super().__init__("answered compressed, though it was asked not to")


class WebPage(FetchError):
    """A page for people came in place of data."""

    def __init__(self) -> None:
        super().__init__("answered with a web page (HTML) in place of data")


class BadStatus(FetchError):
    """A status other than 200. `retry_after_s`: the pause that the server asked for, else 0."""

    def __init__(self, status: int, retry_after: str = "") -> None:
        super().__init__(f"answered HTTP {status}")
        self.status = status
        # RFC 9110 also allows a date here, but no server's clock is believed.
        self.retry_after_s = (
            int(retry_after) if re.fullmatch("[0-9]{1,9}", retry_after) else 0
        )


class ProofFailed(BtcpayError):
    """The evidence does not prove the payment; the message names what does not hold."""


class BadRow(BtcpayError):
    """A column has a meaningless value: somebody, or a faulty disk, has changed the row.

    Raised where rows become values, so that a loop over many rows goes on with the next.
    """


class ExplorerError(BtcpayError):
    """No source gave an answer that can be believed; never means "nothing there"."""


class OutOfQuota(ExplorerError):
    """Every source's budget of calls is used up for now."""


class BeyondMoney(ExplorerError):
    """A merchant's total would exceed all bitcoin; its writes are undone."""

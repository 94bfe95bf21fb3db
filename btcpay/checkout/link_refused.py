"""Why a payment link makes no invoice now, as its page says it."""

from btcpay.web.pages.languages import gettext

GONE = 410


class LinkRefused(Exception):
    """Why a link makes no invoice now: the page's status and its sentence.

    `field` is true when the amount is wrong; `retry_after_s` says when to come back, if known.
    """

    def __init__(
        self, status: int, message: str, field: bool = False, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
        self.retry_after_s = retry_after_s


def from_elsewhere() -> LinkRefused:
    """Refuses a form that another site sent: its visitors would fill the link unknowingly."""
    return LinkRefused(
        403,
        gettext("Another site asked for this payment. If you want to pay, please press here."),
    )

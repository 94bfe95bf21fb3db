"""Limits how many invoices visitors create on payment pages.

The limits protect the wallet's gap limit.
"""

import math

from btcpay.checkout.link_page import LinkRefused
from btcpay.checkout.payment_page import Page
from btcpay.values.times import to_ms
from btcpay.web.pages.languages import gettext
from btcpay.web.rate_limits import link_invoices
from btcpay.web.service import Service
from storage.values import Values

# How long an unpaid invoice counts towards its link's limit, after its creation or after its page
# was last open. So abandoned invoices do not keep others from paying for long.
LOOKED_AT_MS = 10 * 60_000


def refuse_busy_visitor(
    service: Service,
    visitor_key: str | None,
    mark: str,
    is_counted: bool = True,
) -> None:
    """Raises LinkRefused if this visitor has created too many invoices.

    `visitor_key` is the rate-limit key of the visitor; None if there is no limit. `mark`
    is the same for all copies of one form, which are counted once. If `is_counted` is
    False, the limit is checked but this request is not counted.
    """
    if visitor_key is None:
        return
    bucket = link_invoices(service.settings.link_invoices_per_visitor)
    window = service.limiter.hit(bucket, visitor_key, is_counted, mark)
    if window.allowed:
        return
    message = gettext(
        "Too many payments were started from your network. Please try again in an hour."
    )
    retry_after_s = window.retry_after_s(service.now().timestamp())
    raise LinkRefused(429, message, retry_after_s=retry_after_s)


def refuse_full_page(service: Service, page: Page) -> None:
    """Raises LinkRefused if all visitors together have too many unpaid invoices of the page.

    Call this function again in the transaction that creates the invoice: only there the
    count is exact.
    """
    now_ms = to_ms(service.now())
    values: Values = {
        "through": page.id,
        "now": now_ms,
        "since": now_ms - LOOKED_AT_MS,
    }
    count, first_look_ms, first_expiry_ms = service.db.get(page.unpaid_counts, **values)
    if count < service.settings.link_open_invoices:
        return
    # An invoice no longer counts once it has expired, or nobody has looked at it for a while.
    first_end_ms = min(first_expiry_ms or 0, (first_look_ms or 0) + LOOKED_AT_MS)
    message = gettext("This link has too many open payments. Please try again later.")
    # The time may be over by now, but a browser should wait for at least a second.
    retry_after_s = max(1, math.ceil((first_end_ms - now_ms) / 1000))
    raise LinkRefused(429, message, retry_after_s=retry_after_s)

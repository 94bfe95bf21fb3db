"""A page that creates invoices, and the visitor who presses the page's button."""

from dataclasses import dataclass
from typing import Protocol

from btcpay.invoices import orders
from btcpay.web.service import Service
from storage.statement import Typed


class Page(Protocol):
    """A page that creates invoices: of a payment link, or of a part (optional plug-in).

    - `is_for_one`: True if the page has a single payer. Then the page's button leads
      back to the last invoice that the browser created, while that invoice is unpaid.
    - `unpaid_counts`: the query about the page's unpaid invoices that have not expired at
      `now`, and whose own pages were open after `since`. It returns their number, the
      earliest of the times at which their pages were last open, and the earliest of the
      times at which they expire. All times are in unix milliseconds.
    """

    is_for_one: bool

    @property
    def id(self) -> str: ...
    @property
    def unpaid_counts(self) -> Typed[tuple[int, int | None, int | None]]: ...
    def order(self, service: Service, text: str) -> orders.Order:
        """Returns the order from which an invoice is created.

        The order's amount is fixed by the page, or is the one that the payer typed
        (`text`). Raises AmountRefused if `text` is no valid amount, and LinkRefused if
        the page creates no more invoices.
        """

    def lock(self, service: Service, order: orders.Order) -> None:
        """Locks the page's database row until the caller's transaction ends.

        Raises LinkRefused if the page creates no invoice for `order` any more.
        """


@dataclass(frozen=True)
class Visitor:
    """The visitor who presses the button.

    - `address`: the rate-limit key that counts the visitor's invoices; None if there is
      no limit.
    - `amount_text`: the amount as the visitor typed it.
    - `form_id`: the id of the invoice that this form creates; None if the form does not
      come from the page.
    - `last_id`: the id of the last invoice that this browser created on the page; None
      if it created none.
    - `next_id`: the id of the invoice that may follow `last_id` once that one is paid.
      This one invoice does not count towards the visitor's limit. None if `last_id` is
      None.
    """

    address: str | None
    amount_text: str
    form_id: str | None
    last_id: str | None
    next_id: str | None

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
    - `unpaid_counts`: a query with the parameters `through` (the page's id), `now` and
      `since`. It counts the page's unpaid invoices that have not expired at `now`, and
      whose own pages were open after `since`. It returns their number, the earliest time
      at which one of their pages was last open, and the earliest expiry. All times are
      in Unix milliseconds; the last two are None if there is no such invoice.
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

    - `key`: the rate-limit key that counts the visitor's invoices; None if there is no
      limit.
    - `amount_text`: the amount as the visitor typed it.
    - `form_invoice_id`: the id of the invoice that this form creates; None if the form
      does not come from the page.
    - `last_invoice_id`: the id of the last invoice that this browser created on the page;
      None if it created none.
    - `next_invoice_id`: the id of the invoice that may follow the last one once that is
      paid. This invoice does not count towards the visitor's limit; all others do. None
      if there is no last one.
    """

    key: str | None
    amount_text: str
    form_invoice_id: str | None
    last_invoice_id: str | None
    next_invoice_id: str | None

"""Creates an invoice with an address that was never used before.

Every order takes two steps. `quotes.quote` gets the exchange rate, while no database
transaction is open. Then `new_invoice` stores the invoice. Its caller's database
transaction ensures that an order makes only one invoice.
"""

from datetime import datetime
from typing import Any

from btcpay.invoices.orders import BTC, USD
from btcpay.invoices.quotes import Quote
from btcpay.merchants import account
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import NewEvent, News, publish
from btcpay.values.ids import new_id
from btcpay.values.networks import Network
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import to_ms
from storage.database import Database
from storage.models import Invoice
from storage.queries import invoices, merchants, receivers
from storage.statement import as_dict, replace


def new_invoice(
    db: Database,
    network: Network,
    now: datetime,
    quote: Quote,
    id: str | None = None,
) -> Invoice:
    """Stores an invoice, publishes its event, and returns its row.

    In the returned row `seq` and `above_height` are not set: the database chooses them.
    Call this function inside `db.write()`, so that one database transaction takes the
    address index and stores the invoice. If `id` is None, the id is random.
    """
    order = quote.order
    (merchant,), merchant_receivers = db.rows_of_both(
        merchants.TAKE_INDEX,
        receivers.OF_MERCHANT,
        id=order.merchant_id,
        merchant_id=order.merchant_id,
    )
    index = merchant.next_index - 1  # TAKE_INDEX returns the counter after this index
    script, address = account.at_index(merchant.descriptor, index, network)
    expires_at_ms = None
    if order.life is not None:
        expires_at_ms = to_ms(now + order.life)
    columns: dict[str, Any] = {
        **order.details,
        **_price_columns(quote),
        "id": id or new_id("inv"),
        "merchant_id": order.merchant_id,
        "status": InvoiceStatus.OPEN,
        "deposit_address": address,
        "script": script.hex(),
        "address_index": index,
        "expires_ms": expires_at_ms,
        "created_ms": to_ms(now),
    }
    row = replace(invoices.NEW, **columns)
    db.queue(invoices.ADD, **as_dict(row))
    new_event = NewEvent(row, News(EventKind.INVOICE_CREATED))
    publish(db, [new_event], now, merchant_receivers)
    return row


def _price_columns(quote: Quote) -> dict[str, Any]:
    """Returns the columns with the amount and the exchange rate.

    An order in bitcoin gets dollars as its currency: its page shows its value in
    dollars beside the amount.
    """
    order = quote.order
    price = quote.price
    amount = None
    shown_price = price
    if order.currency == BTC:
        shown_price = price._replace(currency=USD, in_currency=price.usd)
    elif order.currency is not None:
        amount = str(order.amount)
    return {
        "amount_sats": quote.amount_sats,
        "amount_usd_quote": str(quote.amount_usd),
        "price_usd": str(price.usd),
        "currency": shown_price.currency,
        "amount": amount,
        "price": str(shown_price.in_currency),
    }

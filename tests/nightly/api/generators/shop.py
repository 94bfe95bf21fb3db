"""A shop that knows the service by its generated client alone: `shop.py SERVICE KEY`."""

import sys
import time

from bitcoin_payments_service_client import AuthenticatedClient
from bitcoin_payments_service_client.api.invoices import (
    create_invoice,
    get_checkout_status,
    get_invoice,
    list_invoices,
)
from bitcoin_payments_service_client.api.payment_links import create_payment_link
from bitcoin_payments_service_client.models import NewInvoice, NewPaymentLink

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
titled = NewPaymentLink(title="Tip jar", min_amount_usd=1)
link = create_payment_link.sync(client=client, body=titled)
invoice = create_invoice.sync(client=client, body=NewInvoice(amount_usd=25))
print(invoice.deposit_address, invoice.amount_sats, flush=True)
while get_invoice.sync(invoice.id, client=client).status != "paid":
    time.sleep(0.6)  # a key may read 120 times a minute
newest = list_invoices.sync(client=client, limit=1).data[0]
print(
    link.title,
    newest.status,
    get_checkout_status.sync(invoice.id, client=client).missing_sats,
)

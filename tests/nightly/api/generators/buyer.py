"""Makes an invoice by OpenAPI Generator's client and reads it back: `buyer.py SERVICE KEY`."""

import sys

from openapi_client import ApiClient, Configuration, InvoicesApi, NewInvoice

service, key = sys.argv[1:]
with ApiClient(Configuration(host=service, access_token=key)) as client:
    invoices = InvoicesApi(client)
    body = NewInvoice(amount_usd=25, description="Two mugs")
    made = invoices.create_invoice(body, idempotency_key="of OpenAPI Generator")
    read = invoices.get_invoice(made.id)
    print(read.status, read.amount_usd_quote, read.description, read == made)

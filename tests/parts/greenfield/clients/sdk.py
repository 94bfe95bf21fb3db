"""Calls by btcpay-python-sdk: a line of JSON in, a line of JSON out."""

import json
import sys

import btcpay

btcpay.host_url, btcpay.api_key, btcpay.store_id = sys.argv[1] + "/", *sys.argv[2:]
CALLS = {
    "order": lambda body: btcpay.Invoices.create_invoice(**body),
    "seen": btcpay.Invoices.get_invoice,
    "listed": btcpay.Invoices.get_invoices,
    "methods": btcpay.Invoices.get_invoice_payment_methods,
    "cancel": lambda id: btcpay.Invoices.mark_invoice_status(id, "invalid"),
}
for line in sys.stdin:
    name, *said = json.loads(line)
    print(json.dumps(CALLS[name](*said)), flush=True)

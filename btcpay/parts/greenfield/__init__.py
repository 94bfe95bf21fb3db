"""The part (optional plug-in) for the Greenfield API, the API of BTCPay Server.

Plug-ins of web shops use that API to create invoices for their orders.
"""

from btcpay import hooks

HOOKS = (
    hooks.ApiKeys,
    hooks.InvoiceFrame,
    hooks.MerchantViews,
    hooks.Pages,
    hooks.Transports,
)

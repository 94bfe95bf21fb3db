"""Greenfield, the interface that shops' plug-ins speak: stores, and their orders."""

from btcpay import hooks

HOOKS = (
    hooks.ApiKeys,
    hooks.InvoiceFrame,
    hooks.MerchantViews,
    hooks.Pages,
    hooks.Transports,
)

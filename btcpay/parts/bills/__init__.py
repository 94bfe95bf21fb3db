"""The part (optional plug-in) for bills: amounts that one customer owes.

A bill is in a currency. Each payment is converted to bitcoin at the exchange rate at
that moment.
"""

from btcpay import hooks

HOOKS = (
    hooks.AfterCheck,
    hooks.Commands,
    hooks.EventKinds,
    hooks.Findings,
    hooks.InvoiceSums,
    hooks.Mails,
    hooks.MerchantViews,
    hooks.Pages,
)

"""The part (optional plug-in) for bills: amounts that one customer owes.

A bill is in a currency. Each time the customer starts to pay, the unpaid amount is
converted to bitcoin at the current exchange rate.
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

"""The part (optional plug-in) for bills: amounts that one customer owes.

A bill is converted to bitcoin at each payment, at the price of that moment.
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

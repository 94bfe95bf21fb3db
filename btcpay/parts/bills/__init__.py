"""The part (optional plug-in) for bills: amounts that one customer owes.

Each payment of a bill is converted to bitcoin at the price at that moment.
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

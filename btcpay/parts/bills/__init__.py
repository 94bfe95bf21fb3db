"""Bills: an amount that one customer owes, priced each time that something is paid toward it."""

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

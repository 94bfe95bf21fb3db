"""Money that goes back: asked for by the payer, sent by the merchant, proven by a block."""

from btcpay import hooks

HOOKS = (
    hooks.Blocks,
    hooks.Commands,
    hooks.EventKinds,
    hooks.Exports,
    hooks.MerchantViews,
    hooks.Pages,
    hooks.PlugInOperations,
    hooks.Receipts,
)

"""The part (optional plug-in) for refunds.

The owner or a shop's plug-in creates a refund, the payer gives an address, and the
merchant's own wallet sends the money. The block that contains the transaction proves
it.
"""

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

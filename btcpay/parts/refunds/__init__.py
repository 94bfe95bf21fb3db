"""The part (optional plug-in) for refunds.

The owner or a shop's plug-in creates a refund, and the payer gives an address. The
merchant sends the money from their own wallet. The refund counts as sent when a block
contains the transaction.
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

"""The part (optional plug-in) that downloads headers and blocks from Bitcoin nodes.

It speaks Bitcoin's peer-to-peer protocol. It also listens for unconfirmed transactions.
"""

from btcpay import hooks

HOOKS = (hooks.Findings, hooks.Sources)

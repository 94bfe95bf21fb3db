"""The part (optional plug-in) that reads headers and blocks from Bitcoin nodes.

It speaks Bitcoin's peer-to-peer protocol, and also listens for unconfirmed
transactions.
"""

from btcpay import hooks

HOOKS = (hooks.Findings, hooks.Sources)

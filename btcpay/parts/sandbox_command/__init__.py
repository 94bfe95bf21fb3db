"""The command `sandbox`."""

from btcpay import hooks

HOOKS = (hooks.Commands,)

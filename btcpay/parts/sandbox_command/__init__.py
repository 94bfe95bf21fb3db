"""The part (optional plug-in) with the command `sandbox`."""

from btcpay import hooks

HOOKS = (hooks.Commands,)

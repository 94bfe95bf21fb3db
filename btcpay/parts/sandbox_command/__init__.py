"""The command `sandbox`, as a part (an optional plug-in)."""

from btcpay import hooks

HOOKS = (hooks.Commands,)

"""The merchant's pages: for merchants who use no shell, behind a link that logs in once."""

from btcpay import hooks

HOOKS = (hooks.Pages,)

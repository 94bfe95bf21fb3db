"""The merchant's web pages, for merchants who use no shell. A login link logs in."""

from btcpay import hooks

HOOKS = (hooks.Pages,)

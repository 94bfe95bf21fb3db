"""The part (optional plug-in) with the merchant's web pages.

They are for merchants who use no command line. A login link or the owner's password
opens them.
"""

from btcpay import hooks

HOOKS = (hooks.AfterCheck, hooks.Pages, hooks.RequestLogs)

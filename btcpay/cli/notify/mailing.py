"""Mail as a check sends it."""

from collections.abc import Callable

from btcpay.cli.context import Shell
from btcpay.notify.mail.deliver import Mailer
from btcpay.values.times import utc_now


def ready(shell: Shell) -> Callable[[], str]:
    """What sends all that is due, and says how that went; nothing when there was nothing."""
    mailer = Mailer(shell.db, shell.settings, utc_now)

    def run() -> str:
        sent = mailer.run().sent
        return f"{sent} sent" if sent else ""

    return run

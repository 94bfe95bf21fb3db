"""Webhooks as a check delivers them."""

from collections.abc import Callable

from btcpay.cli.context import Shell
from btcpay.notify.webhooks.deliver import MOST_OF_ONE, Deliverer
from btcpay.notify.webhooks.send import ATTEMPT_S, new_session, send
from btcpay.values.times import utc_now
from schemas.resources import Resources


def ready(shell: Shell) -> Callable[[], str]:
    """What delivers all that is due, and says how that went; nothing when there was nothing."""
    session = new_session(MOST_OF_ONE, shell.settings.proxy)
    deliverer = Deliverer(
        shell.db,
        Resources(shell.settings.base_url),
        utc_now,
        lambda endpoint, event, at: send(session, endpoint, event, at, ATTEMPT_S),
    )

    def run() -> str:
        told = deliverer.run()
        if not (told.delivered or told.failed):
            return ""
        return f"{told.delivered} delivered, {told.failed} not"

    return run

"""`listen`: events as they come, one JSON line each, and forwarded to a developer's machine."""

import signal
import threading

import click

from btcpay.cli.context import Shell, say, with_shell
from btcpay.http import http_client
from btcpay.merchants.merchants import find_merchant
from btcpay.notify.events import read
from btcpay.notify.events.read import Event
from btcpay.notify.webhooks.endpoints import refuse_url
from btcpay.notify.webhooks.send import ATTEMPT_S, new_session, send
from btcpay.notify.webhooks.signature import new_secret
from btcpay.values.times import utc_now
from schemas.resources import Resources
from storage.database import Row

EVERY_S = 0.5


@click.command()
@click.option("--merchant", metavar="NAME", help="Only this one's.")
@click.option(
    "--since",
    type=click.IntRange(0),
    metavar="NUMBER",
    help="Begin behind this number, 0 for all that is kept; without it, what comes from now on.",
)
@click.option("--forward-to", "url", metavar="URL", help="Send each there too, signed; once.")
@with_shell
def listen(shell: Shell, merchant: str | None, since: int | None, url: str | None) -> None:
    """Print events as they come, one JSON line each, until Ctrl-C."""
    owner_id = find_merchant(shell.db, merchant)["id"] if merchant is not None else None
    forward = _forwarding(shell, url) if url is not None else None
    number = read.last_number(shell.db) if since is None else since
    resources, stop = Resources(shell.settings.base_url), threading.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: stop.set())
    say(f"listening behind event {number}; Ctrl-C ends it")
    while not stop.is_set():
        for event in (events := read.after(shell.db, resources, number)):
            number = event.number
            if owner_id in (None, event.merchant_id) and not stop.is_set():
                click.echo(event.line)
                if forward:
                    forward.send(event)
        if not events:
            stop.wait(EVERY_S)


class _Forward:
    """An endpoint for as long as the command runs: nothing is tried again."""

    def __init__(self, endpoint: Row, session: http_client.Session) -> None:
        self._endpoint, self._session = endpoint, session

    def send(self, event: Event) -> None:
        """Says what was answered, when that does not take the event."""
        answer = send(self._session, self._endpoint, event, utc_now(), ATTEMPT_S)
        if not answer.is_taken:
            told = answer.text if answer.status is None else f"answered {answer.status}"
            say(f"{event.id} was not taken: {told}")


def _forwarding(shell: Shell, url: str) -> _Forward:
    refuse_url(url, shell.settings.network)
    secret = new_secret()
    say(f"forwarded events are signed with {secret}")
    endpoint = {"command": None, "url": url, "secret": secret, "old_until_at": None}
    return _Forward(endpoint, new_session(1, shell.settings.proxy))

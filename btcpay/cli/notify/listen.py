"""`listen`: events as they come, in lines, and forwarded to a developer's machine."""

import signal
import sys
from collections.abc import Callable

import click

from btcpay.cli.context import Shell, Stop, answering, printable, say
from btcpay.merchants.merchants import find_merchant
from btcpay.notify import read
from btcpay.notify.outbox import new_send
from btcpay.notify.read import Event
from btcpay.notify.receivers import refuse_url
from btcpay.notify.transports import new_secret
from btcpay.values.times import utc_now
from schemas.resources import Resources
from storage.models import Receiver
from storage.queries.receivers import WEBHOOK
from storage.statement import blank

EVERY_S = 0.5  # between looks at the table of events


@click.command()
@click.option("--merchant", metavar="NAME", help="Only this merchant's.")
@click.option("--since", type=click.IntRange(0), help="Begin after this event; 0: with the first.")
@click.option("--forward-to", "url", metavar="URL", help="Also send each there, once, signed.")
@answering
def listen(shell: Shell, merchant: str | None, since: int | None, url: str | None) -> None:
    """Print events as they come until Ctrl-C: a readable line each, JSON into a pipe."""
    owner_id = find_merchant(shell.db, merchant).id if merchant is not None else None
    forward = _forwarding(shell, url) if url is not None else lambda _event: None
    number = read.last_number(shell.db) if since is None else since
    resources = Resources(shell.settings.base_url)
    as_json = shell.as_json or not sys.stdout.isatty()
    stop = Stop(signal.SIGTERM, signal.SIGINT)
    say(f"listening after event {number}; Ctrl-C ends it")
    while not stop.wait():
        for event in (events := read.after(shell.db, resources, number)):
            number = event.number
            if owner_id in (None, event.merchant_id) and not stop.wait():
                click.echo(event.line if as_json else readable(event))
                forward(event)
        if not events:
            stop.wait(EVERY_S)


def readable(event: Event) -> str:
    """The event in one line for people: number, time, kind, and what it is about."""
    data, about = event.data, event.data[event.kind.resource]
    words = [about["id"], data.get("reference"), about.get("status"), data.get("attention")]
    if "amount_sats" in about:
        words.append(f"{about['amount_sats']} sats")
    said = " ".join(str(word) for word in words if word)
    return printable(f"{event.number:>6}  {event.happened_at}  {event.kind.value:<26}  {said}")


def _forwarding(shell: Shell, url: str) -> Callable[[Event], None]:
    """A function that sends an event, once, and says why when it is not accepted."""
    refuse_url(url, shell.settings.network)
    receiver = blank(Receiver, transport=WEBHOOK, url=url, secret=new_secret())
    say(f"forwarded events are signed with {receiver.secret}")
    send = new_send(shell.settings)

    def forward(event: Event) -> None:
        answer = send(receiver, event, utc_now())
        if not answer.is_taken:
            why = answer.text if answer.status is None else f"answered {answer.status}"
            say(f"{event.id} was not taken: {why}")

    return forward

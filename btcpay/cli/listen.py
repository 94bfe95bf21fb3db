"""Command `listen`: prints each new event as one line."""

import signal
import sys
from collections.abc import Callable

import click

from btcpay.cli.output import printable, say, write_data
from btcpay.cli.shell import Shell, with_json_shell
from btcpay.cli.stop import Stop
from btcpay.merchants.merchants import find_merchant
from btcpay.notify.events import Event, events_after, last_number
from btcpay.notify.outbox import new_send
from btcpay.notify.receivers import webhook_url
from btcpay.notify.transports import new_secret
from schemas.resources import Resources
from storage.models import Receiver
from storage.queries.receivers import WEBHOOK
from storage.statement import blank

EVERY_S = 0.5  # the pause between two polls of the table of events
Forward = Callable[[Event], None]


@click.command()
@click.option("--merchant", metavar="NAME", help="Only this merchant's.")
@click.option(
    "--since", type=click.IntRange(0), help="Begin after this event; 0: with the first."
)
@click.option(
    "--forward-to",
    "url",
    metavar="URL",
    help="Also send each there, once, signed.",
)
@with_json_shell
def listen(
    shell: Shell,
    merchant: str | None,
    since: int | None,
    url: str | None,
) -> None:
    """Print each new event as one line until Ctrl-C: readable, or as JSON into a pipe."""
    owner_id = None
    if merchant is not None:
        owner_id = find_merchant(shell.db, merchant).id
    forward = None
    if url is not None:
        forward = _new_forward(shell, url)
    number = since
    if number is None:
        number = last_number(shell.db)
    stop = Stop(signal.SIGTERM, signal.SIGINT)
    say(f"listening after event {number}; Ctrl-C ends it")
    _print_events(shell, stop, owner_id, number, forward)


def _print_events(
    shell: Shell,
    stop: Stop,
    owner_id: int | None,
    number: int,
    forward: Forward | None,
) -> None:
    """Prints the events after the event with this number, until `stop` is set.

    Prints only events of the merchant `owner_id`; None means all merchants. Calls
    `forward`, unless it is None, with each printed event.
    """
    resources = Resources(shell.settings.base_url)
    as_json = shell.as_json or not sys.stdout.isatty()
    while not stop.wait():
        events = events_after(shell.db, resources, number)
        for event in events:
            number = event.number
            is_wanted = owner_id is None or owner_id == event.merchant_id
            if not is_wanted:
                continue
            if stop.wait():  # without waiting: True if Ctrl-C was pressed meanwhile
                return
            if as_json:
                write_data(event.line + b"\n")
            else:
                click.echo(readable_line(event))
            if forward:
                forward(event)
        if not events:
            stop.wait(EVERY_S)


def readable_line(event: Event) -> str:
    """Returns the event in one line for people: number, time, kind and resource."""
    data = event.data
    resource = data[event.kind.resource]
    words = [
        resource["id"],
        data.get("reference"),
        resource.get("status"),
        data.get("attention"),
    ]
    if "amount_sats" in resource:
        words.append(f"{resource['amount_sats']} sats")
    about = " ".join(str(word) for word in words if word)
    return printable(
        f"{event.number:>6}  {event.happened_at}  {event.kind.value:<26}  {about}"
    )


def _new_forward(shell: Shell, url: str) -> Forward:
    """Returns a function that sends an event to `url` once, and prints a failure.

    Also prints the new secret that signs the requests. Raises CommandError if `url`
    cannot be used.
    """
    url = webhook_url(url, shell.settings.network)
    receiver = blank(Receiver, transport=WEBHOOK, url=url, secret=new_secret())
    say(f"forwarded events are signed with {receiver.secret}")
    send = new_send(shell.settings)

    def forward(event: Event) -> None:
        answer = send(receiver, event, shell.now)
        if answer.is_taken:
            return
        reason = f"answered {answer.status}"
        if answer.status is None:
            reason = answer.text
        say(f"{event.id} was not taken: {reason}")

    return forward

"""`webhook`: the receivers of events, and deliveries; `listen`: events as they come, in lines."""

import json
import signal
import sys
from collections.abc import Callable
from typing import Any

import click

from btcpay.cli.context import (
    Shell,
    Stop,
    limit_option,
    printable,
    say,
    with_json_shell,
    with_shell,
    write_data,
)
from btcpay.merchants.merchants import find_merchant
from btcpay.notify import receivers
from btcpay.notify.events import KINDS, Event, events_after, last_number, sample_event
from btcpay.notify.outbox import new_send
from btcpay.notify.receivers import webhook_url
from btcpay.notify.transports import new_secret
from btcpay.values.errors import CommandError
from schemas.resources import Resources
from storage.models import Receiver
from storage.queries import deliveries
from storage.queries.receivers import LIST, WEBHOOK
from storage.statement import as_dict, blank

LIST_COLUMNS = (
    "id merchant url command kinds pending failing_since_at"
    " disabled_at disabled_reason created_at"
)
DELIVERY_COLUMNS = "number event_id kind state attempts status tried_at next_at answer"
TEST_COLUMNS = "kind event_id is_taken status answer"
KIND = click.Choice([*KINDS])  # docs/developers/events.md
webhook = click.Group(
    "webhook", help="Receivers of events: a URL, signed, or a command."
)


@webhook.command("add")
@click.argument("merchant")
@click.argument("url", required=False)
@click.option(
    "--exec",
    "command",
    metavar="COMMAND",
    help="A program that reads the event's body.",
)
@click.option(
    "--kinds", multiple=True, type=KIND, metavar="KIND", help="Only this, or these."
)
@with_json_shell
def webhook_add(
    shell: Shell,
    merchant: str,
    url: str | None,
    command: str | None,
    kinds: tuple[str, ...],
) -> None:
    """Send events from now on to a URL or a command; the secret is shown only once."""
    if (url is None) == (command is None):
        raise click.UsageError("give a URL, or --exec COMMAND")
    owner = find_merchant(shell.db, merchant)
    if url is not None:
        url = receivers.webhook_url(url, shell.settings.network)
    wanted = [KINDS[kind] for kind in kinds]
    added = receivers.add(shell.db, owner.id, url, command, wanted, shell.now)
    shell.answer({"id": added.id, "secret": added.secret}, added.secret)
    say(
        f"added {added.id}; `blocktill webhook test {added.id}` tries it,"
        " `blocktill check` delivers"
    )


@webhook.command("list")
@with_json_shell
def webhook_list(shell: Shell) -> None:
    """All endpoints, how much waits for each, and why one is disabled."""

    def kinds_of(text: str | None) -> Any:
        kinds = json.loads(text or "null")
        if shell.as_json:
            return kinds
        return ", ".join(kinds or ["all"])

    rows = shell.db.rows(LIST)
    shell.show(
        [as_dict(row) | {"kinds": kinds_of(row.kinds)} for row in rows], LIST_COLUMNS
    )


@webhook.command("remove")
@click.argument("webhook_id", metavar="ID")
@with_shell
def webhook_remove(shell: Shell, webhook_id: str) -> None:
    """Remove an endpoint, and what waits for it."""
    receivers.remove(shell.db, webhook_id)
    say(f"removed {webhook_id}")


@webhook.command("rotate")
@click.argument("webhook_id", metavar="ID")
@with_json_shell
def webhook_rotate(shell: Shell, webhook_id: str) -> None:
    """Make a new secret; for a day everything is signed with the old one too."""
    rotated = receivers.rotate(shell.db, webhook_id, shell.now)
    shell.answer({"id": rotated.id, "secret": rotated.secret}, rotated.secret)
    say("for 24 more hours the old secret signs too")


@webhook.command("test")
@click.argument("webhook_id", metavar="ID")
@with_json_shell
def webhook_test(shell: Shell, webhook_id: str) -> None:
    """Send a made-up `invoice.paid` now; exit status 1 if it was not accepted."""
    endpoint = receivers.find_own(shell.db, webhook_id)
    event = sample_event(
        Resources(shell.settings.base_url), endpoint.merchant_id, shell.now
    )
    answer = new_send(shell.settings)(endpoint, event, shell.now)
    row = {"kind": event.kind.value, "event_id": event.id, "answer": answer.text}
    shell.show([row | answer._asdict()], TEST_COLUMNS)
    sys.exit(not answer.is_taken)


@webhook.command("deliveries")
@click.argument("webhook_id", metavar="ID")
@limit_option
@with_json_shell
def webhook_deliveries(shell: Shell, webhook_id: str, limit: int) -> None:
    """The newest deliveries: how often each was tried, and what was answered."""
    receivers.find(shell.db, webhook_id)
    rows = shell.db.rows(deliveries.LIST, receiver_id=webhook_id, limit=limit)
    shell.show(rows, DELIVERY_COLUMNS)


@webhook.command("resend")
@click.argument("webhook_id", metavar="ID")
@click.option("--failed", is_flag=True, help="All that were given up.")
@click.option(
    "--since", type=click.IntRange(0), metavar="NUMBER", help="All after this number."
)
@with_shell
def webhook_resend(
    shell: Shell, webhook_id: str, failed: bool, since: int | None
) -> None:
    """Have the next check send events again, with the same ids; enables a disabled endpoint."""
    if failed == (since is not None):
        raise click.UsageError("give --failed or --since NUMBER")
    if since is not None:
        count = receivers.resend_since(shell.db, webhook_id, since, shell.now)
    else:
        count = receivers.resend_failed(shell.db, webhook_id, shell.now)
    if not count and failed:
        raise CommandError("nothing was given up")
    say(f"the next check sends {count} again")


EVERY_S = 0.5  # between looks at the table of events


@click.command()
@click.option("--merchant", metavar="NAME", help="Only this merchant's.")
@click.option(
    "--since", type=click.IntRange(0), help="Begin after this event; 0: with the first."
)
@click.option(
    "--forward-to", "url", metavar="URL", help="Also send each there, once, signed."
)
@with_json_shell
def listen(
    shell: Shell, merchant: str | None, since: int | None, url: str | None
) -> None:
    """Print events as they come until Ctrl-C: a readable line each, JSON into a pipe."""
    owner_id = find_merchant(shell.db, merchant).id if merchant is not None else None
    forward = _forwarding(shell, url) if url is not None else lambda _event: None
    number = last_number(shell.db) if since is None else since
    resources = Resources(shell.settings.base_url)
    as_json = shell.as_json or not sys.stdout.isatty()
    stop = Stop(signal.SIGTERM, signal.SIGINT)
    say(f"listening after event {number}; Ctrl-C ends it")
    while not stop.wait():
        for event in (events := events_after(shell.db, resources, number)):
            number = event.number
            if owner_id in (None, event.merchant_id) and not stop.wait():
                if as_json:
                    write_data(event.line + b"\n")
                else:
                    click.echo(readable(event))
                forward(event)
        if not events:
            stop.wait(EVERY_S)


def readable(event: Event) -> str:
    """The event in one line for people: number, time, kind, and what it is about."""
    data = event.data
    about = event.data[event.kind.resource]
    words = [
        about["id"],
        data.get("reference"),
        about.get("status"),
        data.get("attention"),
    ]
    if "amount_sats" in about:
        words.append(f"{about['amount_sats']} sats")
    said = " ".join(str(word) for word in words if word)
    return printable(
        f"{event.number:>6}  {event.happened_at}  {event.kind.value:<26}  {said}"
    )


def _forwarding(shell: Shell, url: str) -> Callable[[Event], None]:
    """A function that sends an event, once, and says why when it is not accepted."""
    url = webhook_url(url, shell.settings.network)
    receiver = blank(Receiver, transport=WEBHOOK, url=url, secret=new_secret())
    say(f"forwarded events are signed with {receiver.secret}")
    send = new_send(shell.settings)

    def forward(event: Event) -> None:
        answer = send(receiver, event, shell.now)
        if not answer.is_taken:
            why = answer.text if answer.status is None else f"answered {answer.status}"
            say(f"{event.id} was not taken: {why}")

    return forward

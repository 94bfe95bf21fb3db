"""Command `webhook`: manages the receivers of events, and shows their deliveries."""

import json
import sys

import click

from btcpay.cli.output import say
from btcpay.cli.shell import Shell, limit_option, with_json_shell, with_shell
from btcpay.merchants.merchants import find_merchant
from btcpay.notify import receivers
from btcpay.notify.events import KINDS, sample_event
from btcpay.notify.outbox import new_send
from btcpay.values.errors import CommandError
from schemas.resources import Resources
from storage.queries import deliveries
from storage.queries.receivers import LIST
from storage.statement import as_dict

LIST_COLUMNS = (
    "id merchant url command kinds pending failing_since_at"
    " disabled_at disabled_reason created_at"
)
DELIVERY_COLUMNS = (
    "number event_id kind state attempts status tried_at next_at waits_for answer"
)
TEST_COLUMNS = "kind event_id is_taken status answer"
KIND = click.Choice([*KINDS])  # described in docs/developers/events.md
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
    "--kinds",
    multiple=True,
    type=KIND,
    metavar="KIND",
    help="Only this, or these.",
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
    has_url = url is not None
    has_command = command is not None
    if has_url == has_command:
        raise click.UsageError("give a URL, or --exec COMMAND")
    owner = find_merchant(shell.db, merchant)
    if url is not None:
        url = receivers.webhook_url(url, shell.settings.network)
    wanted_kinds = [KINDS[kind] for kind in kinds]
    row = receivers.add(
        shell.db,
        owner.id,
        url=url,
        command=command,
        kinds=wanted_kinds,
        now=shell.now,
    )
    shell.answer({"id": row.id, "secret": row.secret}, row.secret)
    say(
        f"added {row.id}; `blocktill webhook test {row.id}` tries it."
        " `blocktill run` sends events by itself; beside `serve`, `blocktill check` does"
    )


@webhook.command("list")
@with_json_shell
def webhook_list(shell: Shell) -> None:
    """List all receivers, with the number of waiting events, and why one is disabled."""
    rows = []
    for row in shell.db.rows(LIST):
        kinds = json.loads(row.kinds or "null")
        if not shell.as_json:
            kinds = ", ".join(kinds or ["all"])
        rows.append(as_dict(row) | {"kinds": kinds})
    shell.show(rows, LIST_COLUMNS)


@webhook.command("remove")
@click.argument("webhook_id", metavar="ID")
@with_shell
def webhook_remove(shell: Shell, webhook_id: str) -> None:
    """Remove a receiver, and the events that wait for it."""
    receivers.remove(shell.db, webhook_id)
    say(f"removed {webhook_id}")


@webhook.command("rotate")
@click.argument("webhook_id", metavar="ID")
@with_json_shell
def webhook_rotate(shell: Shell, webhook_id: str) -> None:
    """Make a new secret; for a day, requests are signed with the old one too."""
    row = receivers.rotate(shell.db, webhook_id, shell.now)
    shell.answer({"id": row.id, "secret": row.secret}, row.secret)
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
    cells = {"kind": event.kind.value, "event_id": event.id, "answer": answer.text}
    shell.show([cells | answer._asdict()], TEST_COLUMNS)
    if not answer.is_taken:
        sys.exit(1)
    sys.exit(0)


@webhook.command("deliveries")
@click.argument("webhook_id", metavar="ID")
@limit_option
@with_json_shell
def webhook_deliveries(shell: Shell, webhook_id: str, limit: int) -> None:
    """List the newest deliveries: how often each was tried, and the last response."""
    receivers.find(shell.db, webhook_id)
    rows = shell.db.rows(deliveries.LIST, receiver_id=webhook_id, limit=limit)
    shell.show(rows, DELIVERY_COLUMNS)


@webhook.command("resend")
@click.argument("webhook_id", metavar="ID")
@click.option("--failed", is_flag=True, help="All that were given up.")
@click.option(
    "--since",
    type=click.IntRange(0),
    metavar="NUMBER",
    help="All after this number.",
)
@click.option("--event", "event_id", metavar="ID", help="This one.")
@with_shell
def webhook_resend(
    shell: Shell,
    webhook_id: str,
    failed: bool,
    since: int | None,
    event_id: str | None,
) -> None:
    """Make the next check send events again, with the same ids; enables the receiver."""
    has_since = since is not None
    has_event = event_id is not None
    if [failed, has_since, has_event].count(True) != 1:
        raise click.UsageError("give --failed, --since NUMBER or --event ID")
    count = 1
    if event_id is not None:
        receivers.resend(shell.db, webhook_id, event_id, shell.now)
    elif since is not None:
        count = receivers.resend_since(shell.db, webhook_id, since, shell.now)
    else:
        count = receivers.resend_failed(shell.db, webhook_id, shell.now)
    if not count and failed:
        raise CommandError("nothing was given up")
    say(f"the next check sends {count} again")

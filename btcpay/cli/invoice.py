"""Command `invoice`: creates, lists, shows, cancels, settles and dismisses invoices."""

import json
from typing import Any

import click

from btcpay.check.mempool import next_look
from btcpay.cli.invoice_facts import facts_of_story
from btcpay.cli.operation_options import (
    currency_of,
    order_fields,
    parse_amount_option,
    parse_number,
    validate,
)
from btcpay.cli.output import answer_json, printable, say
from btcpay.cli.shell import Shell, limit_option, with_json_shell, with_shell
from btcpay.invoices import create, manual, orders, quotes
from btcpay.invoices.explain import ADVICE, explanation
from btcpay.invoices.links import greatest_amount
from btcpay.invoices.status import find_invoice, find_story
from btcpay.merchants.account import dust_limit_of_account
from btcpay.merchants.merchants import find_merchant
from btcpay.prices.price import Prices
from btcpay.values.errors import CommandError
from schemas.queries import STATUSES
from schemas.requests import NEW_INVOICE
from schemas.resources import Resources
from storage.queries import merchants, payments
from storage.queries.lists import listings

LIST_COLUMNS = (
    "id merchant status amount_sats received_sats amount_usd_quote created_at"
    " reference description"
)
ATTENTION_COLUMNS = (
    "id merchant status reason amount_sats received_sats since_at reference description"
)
# Options of an order that the request schemas do not have. `order_of` checks them.
UNPRICED_FIELDS = ("reference", "return_url")
invoice = click.Group("invoice", help="Invoices of all merchants.")


@invoice.command("create")
@click.argument("merchant")
@click.option(
    "--usd",
    "amount_usd",
    metavar="AMOUNT",
    callback=parse_number,
    help="In US dollars.",
)
@click.option(
    "--amount",
    metavar="AMOUNT",
    callback=parse_number,
    help="In the merchant's currency.",
)
@click.option(
    "--currency", metavar="EUR", help="Of --amount [default: the merchant's]."
)
@click.option("--description", metavar="TEXT", help="Shown on the page.")
@click.option("--reference", metavar="TEXT", help="Your order number; shown too.")
@click.option(
    "--return",
    "return_url",
    metavar="URL",
    help="A link back to the shop, on its page.",
)
@click.option("--email", "customer_email", metavar="ADDRESS", help="The customer's.")
@click.option(
    "--expires-in-hours",
    metavar="H",
    callback=parse_number,
    help="[default: it never does]",
)
@with_json_shell
def invoice_create(
    shell: Shell,
    merchant: str,
    currency: str | None,
    **options: Any,
) -> None:
    """Make an invoice, like the API's create-invoice; prints its id and the URL of its page."""
    owner = find_merchant(shell.db, merchant)
    unpriced = {name: options.pop(name) for name in UNPRICED_FIELDS}
    currency = currency_of(owner, currency, options)
    if currency:
        fields = order_fields(currency, options)
    else:  # --usd is given
        fields = _dollar_fields(options)
    order = orders.order_of(
        owner.id,
        body=fields | unpriced,
        currency=currency,
        high=greatest_amount(currency or "USD"),
        dust_limit_sats=dust_limit_of_account(owner.descriptor),
        shown_currency=owner.currency,
    )
    quote = quotes.quote(Prices(shell.settings), shell.now, order)
    with shell.db.write():
        row = create.new_invoice(shell.db, shell.settings.network, shell.now, quote)
    answer = Resources(shell.settings.base_url).invoice.dump(row)
    shell.answer(answer, f"{answer['id']}\n{answer['pay_url']}")


def _dollar_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the validated fields of an order whose amount is that of --usd.

    Raises UsageError if a field is invalid.
    """
    amount_usd = parse_amount_option("USD", options["amount_usd"], "--usd")
    return validate(NEW_INVOICE, options | {"amount_usd": amount_usd})


@invoice.command("list")
@click.option("--status", type=click.Choice(STATUSES))
@click.option(
    "--attention",
    is_flag=True,
    help="Those that need attention, oldest first, and why.",
)
@limit_option
@with_json_shell
def invoice_list(shell: Shell, status: str | None, attention: bool, limit: int) -> None:
    """List the newest invoices, with the satoshis received so far, confirmed or not."""
    if attention and status:
        raise click.UsageError("--attention lists invoices of every status")
    if attention:
        _list_attention(shell, limit)
    else:
        shell.show(listings.newest_invoices(shell.db, status, limit), LIST_COLUMNS)


def _list_attention(shell: Shell, limit: int) -> None:
    """Prints the invoices that need attention, and the possible actions for each reason."""
    rows = shell.db.rows(listings.WANTING, limit=limit)
    if shell.as_json:
        shell.show(rows, ATTENTION_COLUMNS)
        return
    if not rows:
        say("no invoice needs attention")
        return
    shell.show(rows, ATTENTION_COLUMNS)
    reasons = {row.reason for row in rows}
    for reason, advice in ADVICE.items():
        if reason in reasons:
            say(f"{reason}: {advice}")


@invoice.command("show")
@click.argument("invoice_id", metavar="ID")
@click.option(
    "--proof", is_flag=True, help="Show the proofs of its payments instead, as JSON."
)
@with_json_shell
def invoice_show(shell: Shell, invoice_id: str, proof: bool) -> None:
    """Show all that is known of an invoice: its payments, its status, and the reasons."""
    if proof:
        _show_proofs(shell, invoice_id)
        return
    story = find_story(shell.db, shell.settings, invoice_id, shell.now)
    next_look_at = next_look(shell.db, shell.settings, story.row, shell.now)
    if shell.as_json:
        rows = shell.db.rows(payments.OF_ADDRESS, invoice_id=invoice_id)
        owner = shell.db.get(merchants.BY_ID, id=story.row.merchant_id)
        facts = facts_of_story(story, owner.name, rows)
        answer_json(facts | {"next_look": next_look_at})
        return
    for heading, sentence in explanation(story, next_look_at):
        click.echo(f"{heading:<11} {printable(sentence)}")


def _show_proofs(shell: Shell, invoice_id: str) -> None:
    """Prints the proofs of the invoice's payments as JSON, even without --json.

    Raises CommandError if the invoice is unknown or no payment has been proven.
    """
    find_invoice(shell.db, invoice_id)
    proofs = shell.db.rows(payments.PROOFS_OF_ADDRESS, invoice_id=invoice_id)
    if not proofs:
        raise CommandError("no payment of this invoice has been proven")
    answer_json([json.loads(proof.document) for proof in proofs])


@invoice.command("cancel")
@click.argument("invoice_id", metavar="ID")
@click.option("--force", is_flag=True, help="Even while money is on its way.")
@with_shell
def invoice_cancel(shell: Shell, invoice_id: str, force: bool) -> None:
    """Cancel an open invoice. If a payment still comes, the invoice needs attention."""
    manual.cancel(shell.db, shell.settings, invoice_id, shell.now, force)
    say(f"canceled {invoice_id}")


@invoice.command("settle")
@click.argument("invoice_id", metavar="ID")
@click.option("--reason", required=True, help="Kept with the invoice.")
@with_shell
def invoice_settle(shell: Shell, invoice_id: str, reason: str) -> None:
    """Accept late or too small payments as full payment of the invoice."""
    manual.settle(shell.db, shell.settings, invoice_id, reason, shell.now)
    say(f"settled {invoice_id}")


@invoice.command("dismiss")
@click.argument("invoice_id", metavar="ID")
@click.option("--reason", required=True, help="Kept in the invoice's history.")
@with_shell
def invoice_dismiss(shell: Shell, invoice_id: str, reason: str) -> None:
    """Take an invoice off the attention list until something new happens to it."""
    attention = manual.dismiss(shell.db, shell.settings, invoice_id, reason, shell.now)
    say(f"dismissed {invoice_id}: {attention}")

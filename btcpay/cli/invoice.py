"""`invoice`: invoices made, listed, explained, and decided on; `verify-proof`: their proofs."""

import json
from typing import Any, BinaryIO

import click

from btcpay.check.mempool import next_look
from btcpay.cli.context import (
    Shell,
    json_option,
    limit_option,
    plain,
    printable,
    say,
    show,
    with_json_shell,
    with_shell,
)
from btcpay.cli.operation_options import (
    currency_of,
    number,
    order_fields,
    parse_amount_option,
    validate,
)
from btcpay.invoices import create, manual
from btcpay.invoices.explain import WAYS_OUT, explanation
from btcpay.invoices.links import most
from btcpay.invoices.status import Story, find_invoice, find_story
from btcpay.merchants.merchants import find_merchant
from btcpay.prices.price import Prices
from btcpay.proofs.document import check_document, parse_documents
from btcpay.values.errors import CommandError, ProofFailed
from btcpay.values.times import iso
from schemas.requests import NEW_INVOICE, STATUSES
from schemas.resources import Resources
from storage.models import Payment
from storage.queries import merchants, payments
from storage.queries.lists import listings

LIST_COLUMNS = (
    "id merchant status amount_sats received_sats amount_usd_quote created_at"
    " reference description"
)
ATTENTION_COLUMNS = (
    "id merchant status reason amount_sats received_sats since_at reference description"
)
SHOW_COLUMNS = (
    "id status currency amount tip price amount_sats amount_usd_quote price_usd reference"
    " description deposit_address address_index payment_link_id return_url tx_hash settled_reason"
    " expires_at paid_at checked_at created_at"
)
STANDING = "reason received_sats unconfirmed_sats missing_sats confirmations"
PAYMENT_COLUMNS = " ".join(field.name for field in Payment.PUBLIC)
OUTPUT_COLUMNS = (
    "txid vout amount_sats first_seen_at block_height block_hash block_time_at spent_height"
    " vanished_at payment_id"
)
invoice = click.Group("invoice", help="Invoices of all merchants.")


@invoice.command("create")
@click.argument("merchant")
@click.option(
    "--usd", "amount_usd", metavar="AMOUNT", callback=number, help="In US dollars."
)
@click.option(
    "--amount", metavar="AMOUNT", callback=number, help="In the merchant's currency."
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
    "--expires-in-hours", metavar="H", callback=number, help="[default: it never does]"
)
@with_json_shell
def invoice_create(
    shell: Shell, merchant: str, currency: str | None, **fields: Any
) -> None:
    """Make an invoice, as create-invoice does; prints its id and its page."""
    owner = find_merchant(shell.db, merchant)
    beside = {name: fields.pop(name) for name in ("reference", "return_url")}
    currency = currency_of(owner, currency, fields)
    if currency:
        wanted = order_fields(currency, fields)
    else:
        usd = parse_amount_option("USD", fields["amount_usd"], "--usd")
        wanted = validate(NEW_INVOICE, fields | {"amount_usd": usd})
    order = create.order_of(
        owner.id, wanted | beside, currency, most(currency or "USD")
    )
    quote = create.quote(shell.db, Prices(shell.settings), shell.now, order)
    with shell.db.write():
        row = create.new_invoice(shell.db, shell.settings.network, shell.now, quote)
    made = Resources(shell.settings.base_url).invoice.dump(row)
    shell.answer(made, f"{made['id']}\n{made['pay_url']}")


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
    """The newest invoices, and what their addresses received, confirmed or not."""
    if attention and status:
        raise click.UsageError("--attention lists invoices of every status")
    if not attention:
        shell.show(listings.newest_invoices(shell.db, status, limit), LIST_COLUMNS)
        return
    rows = shell.db.rows(listings.WANTING, limit=limit)
    if rows or shell.as_json:
        shell.show(rows, ATTENTION_COLUMNS)
    else:
        say("no invoice needs attention")
    reasons = set() if shell.as_json else {row.reason for row in rows}
    for reason in filter(reasons.__contains__, WAYS_OUT):
        say(f"{reason}: {WAYS_OUT[reason]}")


@invoice.command("show")
@click.argument("invoice_id", metavar="ID")
@click.option(
    "--proof", is_flag=True, help="Show the proofs of its payments instead, as JSON."
)
@with_json_shell
def invoice_show(shell: Shell, invoice_id: str, proof: bool) -> None:
    """Show all that is known of an invoice: what was received, its status, and why."""
    if proof:
        find_invoice(shell.db, invoice_id)
        kept = shell.db.rows(payments.PROOFS_OF_ADDRESS, invoice_id=invoice_id)
        if not kept:
            raise CommandError("no payment of this invoice has been proven")
        Shell(shell.settings, True).answer(
            [json.loads(proven.document) for proven in kept], None
        )
        return
    story = find_story(shell.db, shell.settings, invoice_id, shell.now)
    then = next_look(shell.db, shell.settings, story.row, shell.now)
    if shell.as_json:
        received = shell.db.rows(payments.OF_ADDRESS, invoice_id=invoice_id)
        owner = shell.db.only(merchants.BY_ID, id=story.row.merchant_id)
        facts = _all_facts(story, owner.name, received)
        shell.answer(facts | {"next_look": then}, None)
        return
    for heading, sentence in explanation(story, then):
        click.echo(f"{heading:<11} {printable(sentence)}")


def _all_facts(story: Story, merchant: str, received: list[Payment]) -> dict[str, Any]:
    row = story.row
    attention = {"reason": row.attention, "since_at": row.attention_since_at}
    return {
        "invoice": {"merchant": merchant} | plain(row, SHOW_COLUMNS),
        "standing": plain(vars(story.verdict), STANDING)
        | {"confirmations_needed": story.needed},
        "attention": plain(attention, "reason since_at") if row.attention else None,
        "payments": [plain(payment, PAYMENT_COLUMNS) for payment in received],
        "outputs": [plain(output, OUTPUT_COLUMNS) for output in story.outputs],
        "events": [
            plain(event, "happened_at kind") | {"detail": json.loads(event.detail)}
            for event in story.events
        ],
    }


@invoice.command("cancel")
@click.argument("invoice_id", metavar="ID")
@click.option("--force", is_flag=True, help="Even while money is on its way.")
@with_shell
def invoice_cancel(shell: Shell, invoice_id: str, force: bool) -> None:
    """Cancel an open invoice; money that still comes is a payment without an invoice."""
    manual.cancel(shell.db, shell.settings, invoice_id, shell.now, force)
    say(f"canceled {invoice_id}")


@invoice.command("settle")
@click.argument("invoice_id", metavar="ID")
@click.option("--reason", required=True, help="Kept with the invoice.")
@with_shell
def invoice_settle(shell: Shell, invoice_id: str, reason: str) -> None:
    """Accept what was received, late or short, as payment of the invoice."""
    manual.settle(shell.db, shell.settings, invoice_id, reason, shell.now)
    say(f"settled {invoice_id}")


@invoice.command("dismiss")
@click.argument("invoice_id", metavar="ID")
@click.option("--reason", required=True, help="Kept in the invoice's history.")
@with_shell
def invoice_dismiss(shell: Shell, invoice_id: str, reason: str) -> None:
    """Take an invoice off the attention list until something new happens to it."""
    was_wanted = manual.dismiss(shell.db, shell.settings, invoice_id, reason, shell.now)
    say(f"dismissed {invoice_id}: {was_wanted}")


PROOF_COLUMNS = "txid vout amount_sats script block_hash mined_at network"


@click.command("verify-proof")
@click.argument("file", type=click.File("rb"))
@json_option
def verify_proof(file: BinaryIO, as_json: bool) -> None:
    """Check a file of `invoice show --proof` offline, from the file alone.

    Exit status 1 when anything in it is wrong.
    """
    rows = []
    for document in parse_documents(file.read()):
        try:
            proven = check_document(document)
        except ProofFailed as error:
            raise CommandError(f"the proof fails: {error}") from error
        found = document | vars(proven) | {"mined_at": iso(proven.mined_at)}
        for vout, amount_sats in proven.amounts_sats.items():
            rows.append(found | {"vout": vout, "amount_sats": amount_sats})
    show(rows, PROOF_COLUMNS, as_json)

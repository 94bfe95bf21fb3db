"""`refund`: money that goes back, asked for, listed, canceled, and proven."""

import json
from typing import Any

import click

from btcpay.cli.context import Shell, add_list_and_show, answering, say
from btcpay.cli.operation_options import number, priced
from btcpay.invoices.create import live_price
from btcpay.invoices.status import find_invoice
from btcpay.prices.price import Prices
from btcpay.refunds import acts, queries
from btcpay.refunds.kinds import RESOURCE
from btcpay.values.errors import CommandError
from btcpay.values.money import checked_currency

LIST_COLUMNS = "id status invoice_id amount_sats address tx_hash reason created_at sent_at"
refund = click.Group("refund", help="Refunds, which the merchant's own wallet sends.")


@refund.command("create")
@click.argument("invoice_id", metavar="INVOICE")
@click.option("--sats", "amount_sats", type=click.IntRange(1), help="[default: all that is left]")
@click.option(
    "--amount", callback=number, metavar="A", help="An amount of money, at its worth now."
)
@click.option("--currency", metavar="EUR", help="Of --amount [default: the invoice's].")
@click.option("--address", metavar="ADDRESS", help="The payer's address, if you know it.")
@click.option("--reason", metavar="TEXT", help="Shown to the payer.")
@answering
def create(
    shell: Shell,
    invoice_id: str,
    amount_sats: int | None,
    amount: Any,
    currency: str | None,
    **more: str | None,
) -> None:
    """Send money back: makes a refund, and prints its id and its page for the payer."""
    invoice = find_invoice(shell.db, invoice_id)
    if amount is None and currency:
        raise click.UsageError("--currency goes with --amount")
    if amount is not None:
        if amount_sats is not None:
            raise click.UsageError("say --sats or --amount")
        code = checked_currency(currency or invoice.currency)
        wanted = priced(code, {"amount": amount})["amount"]
        price = live_price(Prices(shell.settings), shell.now, code).in_currency
        amount_sats = acts.sats_at(wanted, price)
    order = acts.Order(invoice.merchant_id, invoice.id, amount_sats, **more)
    row = acts.make(shell.db, shell.settings, order, shell.now)
    made = RESOURCE.shown(shell.settings.base_url, row)
    shell.answer(made, f"{row.id}\n{made['refund_url']}")


@refund.command("cancel")
@click.argument("refund_id", metavar="ID")
@answering
def cancel(shell: Shell, refund_id: str) -> None:
    """Cancel a refund that is not sent; what a wallet has sent already cannot be stopped."""
    acts.drop(shell.db, refund_id, acts.CANCELED, shell.now)
    say(f"canceled {refund_id}")


@refund.command("proof")
@click.argument("refund_id", metavar="ID")
@answering
def proof(shell: Shell, refund_id: str) -> None:
    """Print the proof that a refund was sent, as JSON; `verify-proof` checks it."""
    row = RESOURCE.find(shell.db, refund_id)
    if row.tx_hash is None:
        raise CommandError(f"the refund is {row.status}: no block has its transaction")
    kept = shell.db.only(queries.PROOF, txid=row.tx_hash, vout=row.vout or 0)
    Shell(shell.settings, True).answer(json.loads(kept.document), None)


add_list_and_show(refund, RESOURCE, queries.NEWEST, LIST_COLUMNS)
COMMANDS = {"refund": refund}

"""The command group `refund`: creates, lists, cancels and proves refunds."""

import json
from typing import Any

import click

from btcpay import hooks
from btcpay.cli.operation_options import order_fields, parse_number
from btcpay.cli.output import say
from btcpay.cli.resource_commands import add_list_and_show
from btcpay.cli.shell import Shell, with_json_shell
from btcpay.invoices.quotes import live_price
from btcpay.invoices.status import find_invoice
from btcpay.parts.refunds import actions, manual, queries, steps, sums
from btcpay.parts.refunds.kinds import RESOURCE
from btcpay.prices.price import Prices
from btcpay.values.errors import CommandError
from btcpay.values.money import Money, checked_currency, full_btc_text

LIST_COLUMNS = "id merchant status invoice_id amount_sats address tx_hash reason created_at sent_at"
_SATS_HELP = "[default: what was paid too much, else all that came, less other refunds]"
CANDIDATE_COLUMNS = "txid vout amount_sats block_height"
refund = click.Group("refund", help="Refunds, which the merchant's own wallet sends.")


@refund.command("create")
@click.argument("invoice_id", metavar="INVOICE")
@click.option("--sats", "amount_sats", type=click.IntRange(1), help=_SATS_HELP)
@click.option(
    "--amount",
    callback=parse_number,
    metavar="A",
    help="An amount of money, at its worth now.",
)
@click.option("--currency", metavar="EUR", help="Of --amount [default: the invoice's].")
@click.option(
    "--address", metavar="ADDRESS", help="The payer's address, if you know it."
)
@click.option("--reason", metavar="TEXT", help="Shown to the payer.")
@with_json_shell
def create(
    shell: Shell,
    invoice_id: str,
    amount_sats: int | None,
    amount: Any,
    currency: str | None,
    address: str | None,
    reason: str | None,
) -> None:
    """Send money back: makes a refund; prints its id, its page for the payer, and its sum."""
    invoice = find_invoice(shell.db, invoice_id)
    if amount is None and currency:
        raise click.UsageError("--currency goes with --amount")
    asked = None
    if amount is not None:
        if amount_sats is not None:
            raise click.UsageError("say --sats or --amount")
        code = checked_currency(currency or invoice.currency)
        asked = Money(order_fields(code, {"amount": amount})["amount"], code)
        amount_sats = _sats_now(shell, asked)
    request = actions.RefundRequest(
        merchant_id=invoice.merchant_id,
        invoice_id=invoice.id,
        amount_sats=amount_sats,
        reason=reason,
        address=address,
        asked=asked,
    )
    row = actions.make(shell.db, shell.settings, request, shell.now)
    facts = RESOURCE.serialize(shell.settings.base_url, row)
    amount_text = f"{full_btc_text(row.amount_sats)} BTC ({row.amount_sats} sat)"
    shell.answer(facts, f"{row.id}\n{facts['refund_url']}\n{amount_text}")


def _sats_now(shell: Shell, money: Money) -> int:
    """Returns the satoshis that the money is worth at the current price, rounded down."""
    price = live_price(Prices(shell.settings), shell.now, money.currency)
    return sums.sats_at(money.amount, price.in_currency)


@refund.command("sent")
@click.argument("refund_id", metavar="ID")
@click.argument("output", metavar="[TXID:VOUT]", required=False)
@with_json_shell
def confirm_sent(shell: Shell, refund_id: str, output: str | None) -> None:
    """Say that this output was the refund, although it pays another sum.

    Without an output, the command lists the outputs to the refund's address that are no refund
    so far.
    """
    row = RESOURCE.find(shell.db, refund_id)
    if output is None:
        shell.show(manual.candidates(shell.db, row), CANDIDATE_COLUMNS)
        return
    outpoint = manual.read_outpoint(output)
    row = manual.confirm_sent(shell.db, shell.settings, refund_id, outpoint, shell.now)
    facts = RESOURCE.serialize(shell.settings.base_url, row)
    shell.answer(facts, f"{row.id} is sent by {row.tx_hash}:{row.vout}")


@refund.command("cancel")
@click.argument("refund_id", metavar="ID")
@with_json_shell
def cancel(shell: Shell, refund_id: str) -> None:
    """Cancel a refund that is not sent; what a wallet has sent already cannot be stopped."""
    actions.drop(shell.db, refund_id, steps.CANCELED, shell.now)
    say(f"canceled {refund_id}")


@refund.command("proof")
@click.argument("refund_id", metavar="ID")
@with_json_shell
def proof(shell: Shell, refund_id: str) -> None:
    """Print the proof that a refund was sent, as JSON; `verify-proof` checks it."""
    row = RESOURCE.find(shell.db, refund_id)
    if row.tx_hash is None:
        raise CommandError(f"the refund is {row.status}: no block has its transaction")
    transaction = shell.db.get(queries.DOCUMENT, txid=row.tx_hash)
    document = json.loads(transaction.document) | {"script": row.script}
    # A proof is printed as JSON, whether --json was given or not.
    Shell(shell.settings, as_json=True).answer(document, None)


add_list_and_show(refund, RESOURCE, queries.NEWEST, LIST_COLUMNS)

HOOK = hooks.Commands(commands={"refund": refund})

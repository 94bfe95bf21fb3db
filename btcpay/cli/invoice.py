"""`invoice`: what was asked for, where it stands and why, and the owner's last word."""

import json
from datetime import datetime
from typing import BinaryIO

import click

from btcpay.check.explain import explanation, next_scan_of
from btcpay.cli.context import (
    Shell,
    answer_json,
    as_json,
    plain,
    printable,
    say,
    show,
    with_shell,
)
from btcpay.cli.invoice_list import find_invoice, invoice_dismiss, invoice_list
from btcpay.errors import CommandError, ProofFailed
from btcpay.invoices.attention import heed
from btcpay.invoices.events import BY_HAND, finish
from btcpay.invoices.status import rules_for, verdict_of
from btcpay.spv.document import check_document, load
from btcpay.times import iso, iso_ms, utc_now
from storage.database import Row
from storage.queries import attentions, balances, events, payments

SHOW_COLUMNS = (
    "id",
    "status",
    "amount_sats",
    "amount_usd_quote",
    "price_usd",
    "description",
    "deposit_address",
    "address_index",
    "payment_link_id",
    "tx_hash",
    "settled_reason",
    "expires_at",
    "paid_at",
    "checked_at",
    "created_at",
)
PAYMENT_COLUMNS = (
    "id",
    "invoice_id",
    "amount_sats",
    "amount_usd_at_receipt",
    "tx_hash",
    "created_at",
)
PROOF_COLUMNS = ("txid", "vout", "amount_sats", "script", "block_hash", "mined_at", "network")
ATTENTION_COLUMNS = ("reason", "since_at")
OUTPUT_COLUMNS = (
    "txid",
    "vout",
    "amount_sats",
    "first_seen_at",
    "block_height",
    "block_hash",
    "block_time_at",
    "spent_height",
    "vanished_at",
    "payment_id",
)


@click.group()
def invoice() -> None:
    """Invoices of all merchants."""


invoice.add_command(invoice_list)
invoice.add_command(invoice_dismiss)


@invoice.command("show")
@click.argument("invoice_id", metavar="ID")
@click.option("--proof", is_flag=True, help="The proofs of its payments instead, as JSON.")
@as_json
@with_shell
def invoice_show(shell: Shell, invoice_id: str, proof: bool, as_json: bool) -> None:
    """All that is known of an invoice, and why it stands where it stands."""
    row = find_invoice(shell, invoice_id)
    if proof:
        kept = shell.db.rows(payments.PROOFS_OF_ADDRESS, invoice_id=invoice_id)
        if not kept:
            raise CommandError("no payment of this invoice has been proven")
        answer_json([json.loads(proven["document"]) for proven in kept])
        return
    if as_json:
        answer_json(_all_facts(shell, row))
        return
    for heading, sentence in explanation(shell.db, shell.settings, row, utc_now()):
        click.echo(f"{heading:<11} {printable(sentence)}")


def _all_facts(shell: Shell, row: Row) -> dict:
    """The invoice, where it stands and why, its payments, what was seen, what happened."""
    verdict = verdict_of(shell.db, shell.settings, row, utc_now(), vanished_too=True)
    wanted = shell.db.row(attentions.OF_INVOICE, invoice_id=row["id"])
    return {
        "invoice": plain(row, SHOW_COLUMNS),
        "standing": {
            "reason": verdict.reason,
            "received_sats": verdict.received_sats,
            "unconfirmed_sats": verdict.unconfirmed_sats,
            "missing_sats": verdict.missing_sats,
            "confirmations": verdict.confirmations,
            "confirmations_needed": rules_for(shell.settings, row).confirmations,
        },
        "attention": plain(wanted, ATTENTION_COLUMNS) if wanted else None,
        "next_look": next_scan_of(shell.db, shell.settings, row["id"], utc_now()),
        "payments": [
            plain(payment, PAYMENT_COLUMNS)
            for payment in shell.db.rows(payments.OF_ADDRESS, invoice_id=row["id"])
        ],
        "outputs": [
            plain(output, OUTPUT_COLUMNS)
            for output in shell.db.rows(payments.OUTPUTS, invoice_id=row["id"])
        ],
        "events": [
            {
                "happened_at": iso_ms(event["happened_at"]),
                "kind": event["kind"],
                "detail": json.loads(event["detail"]),
            }
            for event in shell.db.rows(events.OF_INVOICE, invoice_id=row["id"])
        ],
    }


@invoice.command("cancel")
@click.argument("invoice_id", metavar="ID")
@click.option("--force", is_flag=True, help="Also while money is on its way.")
@with_shell
def invoice_cancel(shell: Shell, invoice_id: str, force: bool) -> None:
    """Cancel an open invoice; what still comes is a payment without invoice."""
    with shell.db.write():
        balances.lock(shell.db, find_invoice(shell, invoice_id)["merchant_id"])
        row = find_invoice(shell, invoice_id)
        if row["status"] != "open":
            raise CommandError(f"the invoice is {row['status']}; only an open one can be canceled")
        received_sats = verdict_of(shell.db, shell.settings, row, utc_now()).received_sats
        if received_sats and not force:
            raise CommandError(
                f"{received_sats} satoshis are on their way to this invoice; --force cancels it"
            )
        reason = "canceled on the command line"
        finish(shell.db, row, utc_now(), status="canceled", reason=reason)
        heed(shell.db, shell.settings, invoice_id, utc_now())
    say(f"canceled {invoice_id}")


@invoice.command("settle")
@click.argument("invoice_id", metavar="ID")
@click.option("--reason", required=True, help="Kept with the invoice.")
@with_shell
def invoice_settle(shell: Shell, invoice_id: str, reason: str) -> None:
    """Accept what came, late or short, as payment of the invoice."""
    if not reason.strip():
        raise CommandError("a settlement by hand needs a reason: --reason TEXT")
    now = utc_now()
    with shell.db.write():
        balances.lock(shell.db, find_invoice(shell, invoice_id)["merchant_id"])
        row = find_invoice(shell, invoice_id)
        if row["status"] == "paid":
            raise CommandError(f"the invoice is paid already{_or_dismiss(invoice_id)}")
        _settle(shell, row, reason, now)
        heed(shell.db, shell.settings, invoice_id, now)
    say(f"settled {invoice_id}")


def _settle(shell: Shell, row: Row, reason: str, now: datetime) -> None:
    """Every payment to the invoice's address carries its id; the last one completes it."""
    received = shell.db.rows(payments.OF_ADDRESS, invoice_id=row["id"])
    if not received:
        raise CommandError(
            "no confirmed payment has come to this invoice; nothing to accept"
            f"{_or_dismiss(row['id'])}"
        )
    for payment in received:
        shell.db.run(payments.SETTLE, invoice_id=row["id"], tx_hash=payment["tx_hash"])
    finish(
        shell.db,
        row,
        now,
        status="paid",
        tx_hash=received[-1]["tx_hash"],
        paid_at=received[-1]["created_at"],
        settled_reason=reason,
        reason=BY_HAND + reason,
    )


def _or_dismiss(invoice_id: str) -> str:
    return (
        f"; if it wants attention, `btcpay invoice dismiss {invoice_id} --reason TEXT` takes it off"
        " the list"
    )


@click.command("verify-proof")
@click.argument("file", type=click.File("rb"))
@as_json
def verify_proof(file: BinaryIO, as_json: bool) -> None:
    """Check a file of `invoice show --proof` offline, from the file alone.

    Exit status 1 when anything in it does not hold.
    """
    rows = []
    for document in load(file.read()):
        try:
            proven = check_document(document)
        except ProofFailed as error:
            raise CommandError(f"the proof fails: {error}") from error
        rows += [
            {
                "txid": proven.txid,
                "vout": vout,
                "amount_sats": amount_sats,
                "script": document["script"],
                "block_hash": proven.block_hash,
                "mined_at": iso(proven.mined_at),
                "network": document["network"],
            }
            for vout, amount_sats in proven.amounts_sats.items()
        ]
    show(rows, PROOF_COLUMNS, as_json)


COMMANDS = (invoice, verify_proof)

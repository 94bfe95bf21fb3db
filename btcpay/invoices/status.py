"""Where an invoice stands: its rows as values, and the verdict on them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from btcpay.errors import CommandError
from btcpay.settings import Settings
from btcpay.settlement.settle import stored_verdict
from btcpay.settlement.values import Block, Invoice, Output, Rules, SeenOutput, Verdict
from btcpay.times import from_ms, from_ms_or_none
from storage.database import Database, Row
from storage.queries import invoices, meta, payments


def find_invoice(db: Database, invoice_id: str) -> Row:
    """The whole row. Raises CommandError when there is none."""
    row = db.row(invoices.WHOLE, id=invoice_id)
    if row is None:
        raise CommandError(f"there is no invoice {invoice_id!r}")
    return row


def rules_for(settings: Settings, invoice_row: Row) -> Rules:
    """What these settings ask of an invoice of that amount."""
    return Rules(
        settings.confirmations.for_usd(Decimal(invoice_row["amount_usd_quote"])),
        settings.underpayment_tolerance_percent,
    )


def invoice_of(row: Row) -> Invoice:
    """The value that settlement decides about."""
    return Invoice(
        id=row["id"],
        status=row["status"],
        amount_sats=row["amount_sats"],
        created_at=from_ms(row["created_at"]),
        expires_at=from_ms_or_none(row["expires_at"]),
        tx_hash=row["tx_hash"],
        paid_at=from_ms_or_none(row["paid_at"]),
    )


def output_of(row: Row) -> Output:
    """The output as it was last seen."""
    block = None
    if row["block_height"] is not None:
        block = Block(row["block_height"], row["block_hash"], from_ms(row["block_time_at"]))
    return Output(
        txid=row["txid"],
        vout=row["vout"],
        amount_sats=row["amount_sats"],
        first_seen_at=from_ms(row["first_seen_at"]),
        coinbase=bool(row["coinbase"]),
        block=block,
        spent_height=row["spent_height"],
        proven=bool(row["proven"]),
        vanished=row["vanished_at"] is not None,
        credited=row["payment_id"] is not None,
        settles=row["settled_invoice_id"] is not None,
        position=row["position"],
        seen_waiting=bool(row["seen_waiting"]),
    )


def known_outputs(db: Database, invoice_id: str) -> list[Output]:
    """Every output to the invoice's address but what has vanished, which is no money."""
    return [output_of(row) for row in db.rows(payments.ALIVE, invoice_id=invoice_id)]


def come_again(
    db: Database, invoice_id: str, known: Sequence[Output], seen: Iterable[SeenOutput]
) -> list[Output]:
    """What had vanished and is shown again: it was first seen when it was first seen."""
    new = {output.outpoint for output in seen} - {output.outpoint for output in known}
    return [
        output
        for txid in sorted({txid for txid, _ in new})
        for row in db.rows(payments.VANISHED, invoice_id=invoice_id, txid=txid)
        if (output := output_of(row)).outpoint in new
    ]


def verdict_of(
    db: Database, settings: Settings, row: Row, now: datetime, vanished_too: bool = False
) -> Verdict:
    """The verdict on what is stored; with `vanished_too` its reason tells of what has vanished."""
    rows = db.rows(payments.OUTPUTS if vanished_too else payments.ALIVE, invoice_id=row["id"])
    return stored_verdict(
        invoice_of(row),
        [output_of(output) for output in rows],
        meta.tip_height(db) or 0,
        from_ms_or_none(row["checked_at"]),
        rules_for(settings, row),
        now,
    )

"""Stores which outputs in blocks send which refunds. The decision is made in decide.py.

An output sends a refund if it is the merchant's payment to the refund's address.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from btcpay.invoices.attention import try_update_attention
from btcpay.parts.refunds import queries
from btcpay.parts.refunds.decide import decide
from btcpay.parts.refunds.models import Refund, RefundOutput
from btcpay.parts.refunds.steps import SENT, UNDONE, note, step
from btcpay.settings.settings import Settings
from btcpay.values.money import value_of
from storage.database import Database, Values
from storage.queries import merchants
from storage.queries.events import Kind
from storage.queries.totals import balances

log = logging.getLogger(__name__)


def decide_again(
    db: Database,
    settings: Settings,
    scripts: Collection[str],
    now: datetime,
    lost_outputs: Sequence[RefundOutput] = (),
) -> None:
    """Decides again which outputs to these scripts send which refunds, and stores the result.

    `scripts` are in hex. `lost_outputs` are outputs that a reorganisation has removed.
    Call this function in the database transaction that stores or deletes the outputs,
    while `meta.lock` is held.
    """
    merchant_ids: set[int] = set()
    for script in scripts:
        refunds = db.rows(queries.OF_SCRIPT, script=script)
        merchant_ids.update(refund.merchant_id for refund in refunds)
    for merchant_id in sorted(merchant_ids):
        balances.lock(db, merchant_id)
    invoice_ids: set[str | None] = set()
    for script in sorted(scripts):
        lost_to_script = [output for output in lost_outputs if output.script == script]
        changed_refunds = _decide_about(db, script, lost_to_script, now)
        invoice_ids.update(refund.invoice_id for refund in changed_refunds)
    for invoice_id in sorted(filter(None, invoice_ids)):
        try_update_attention(db, settings, invoice_id, now, [])


def _decide_about(
    db: Database,
    script: str,
    lost_outputs: Sequence[RefundOutput],
    now: datetime,
) -> list[Refund]:
    """Stores which refunds to this script are sent now, and which are not sent any more.

    Returns the refunds that have changed. A refund has also changed if an output seems
    to send it a second time now, or no longer does.
    """
    refunds = {row.id: row for row in db.rows(queries.OF_SCRIPT, script=script)}
    outputs = _outputs_to(db, script)
    decision = decide(list(refunds.values()), outputs)
    changed_refunds = []
    for row in refunds.values():
        if not _is_sent_by(row, decision.sent.get(row.id)):
            changed_refunds.append(row)
    changed_outputs = []
    for output in (*lost_outputs, *outputs):
        if output.again_of != decision.repeated.get(output):
            changed_outputs.append(output)
    # This comes first, since an output can only send a refund whose status is `ready`.
    _undo(db, refunds, changed_refunds, changed_outputs, now)
    for row in changed_refunds:
        if row.id in decision.sent:
            _send(db, row, decision.sent[row.id], now)
    _store_repeats(db, refunds, changed_outputs, decision.repeated, now)
    repeated_ids = _repeated_ids(changed_outputs, decision.repeated)
    return changed_refunds + [refunds[id] for id in repeated_ids]


def _outputs_to(db: Database, script: str) -> list[RefundOutput]:
    """Returns the stored outputs to this script on which a decision depends, each once."""
    exact_outputs = db.rows(queries.EXACT, script=script)
    named_outputs = db.rows(queries.NAMED, script=script)
    return list(dict.fromkeys([*exact_outputs, *named_outputs]))


def _repeated_ids(
    outputs: Iterable[RefundOutput],
    repeated: Mapping[RefundOutput, str],
) -> set[str]:
    """Returns the ids of the refunds that these outputs seem to send a second time.

    They are the ids that are stored with the outputs, and the new ones in `repeated`.
    """
    ids: set[str] = set()
    for output in outputs:
        if output.again_of is not None:
            ids.add(output.again_of)
        if output in repeated:
            ids.add(repeated[output])
    return ids


def _is_sent_by(refund: Refund, output: RefundOutput | None) -> bool:
    """True if the refund is stored as sent by this output; for None, as not sent."""
    if output is None:
        return refund.tx_hash is None
    return (refund.tx_hash, refund.vout) == (output.txid, output.vout)


def _undo(
    db: Database,
    refunds: Mapping[str, Refund],
    changed_refunds: Iterable[Refund],
    changed_outputs: Iterable[RefundOutput],
    now: datetime,
) -> None:
    """Takes back what is stored about the changed refunds and outputs.

    Marks the refunds as not sent. Records in the history that the outputs do not send
    their refunds a second time.
    """
    for output in changed_outputs:
        if output.again_of:
            outpoint = (output.txid, output.vout)
            note(db, refunds[output.again_of], Kind.REFUND_UNDONE, now, by=outpoint)
    for row in changed_refunds:
        if row.tx_hash:
            log.error(
                "reorganised: refund %s of %s satoshis is ready",
                row.id,
                row.amount_sats,
            )
            step(db, row, UNDONE, now, by=(row.tx_hash, row.vout))


def _store_repeats(
    db: Database,
    refunds: Mapping[str, Refund],
    changed_outputs: Iterable[RefundOutput],
    repeated: Mapping[RefundOutput, str],
    now: datetime,
) -> None:
    """Stores for each changed output which refund it seems to send a second time, if any.

    `repeated` has the id of this refund, by output.
    """
    for output in changed_outputs:
        id = repeated.get(output)
        db.run(queries.SET_AGAIN, txid=output.txid, vout=output.vout, again_of=id)
        if id:
            log.error("refund %s was sent again, by %s", id, output.txid)
            outpoint = (output.txid, output.vout)
            note(db, refunds[id], Kind.REFUND_AGAIN, now, by=outpoint)


def _send(db: Database, row: Refund, output: RefundOutput, now: datetime) -> None:
    """Stores that the output sends the refund, and the output's value in currencies.

    The value is computed with the exchange rates stored when a block with the
    transaction was first processed. So it does not depend on the order in which blocks
    are processed.
    """
    currency = db.get(merchants.CURRENCY, id=row.merchant_id).currency
    prices = json.loads(db.get(queries.PRICES, txid=output.txid).prices)
    columns: Values = {
        "tx_hash": output.txid,
        "vout": output.vout,
        "sent_height": output.block_height,
        "sent_ms": output.block_time_ms,
        "sent_sats": output.amount_sats,
        "currency": currency,
        "value_at_sending": _worth(output, prices, currency),
        "usd_at_sending": _worth(output, prices, "USD"),
    }
    step(db, row, SENT, now, columns, by=(output.txid, output.vout))


def _worth(
    output: RefundOutput,
    prices: Mapping[str, str],
    currency: str,
) -> str | None:
    """Returns the output's value in the currency as text; None if the price is unknown."""
    price = prices.get(currency)
    if price is None:
        return None
    return f"{value_of(output.amount_sats, Decimal(price), currency):f}"

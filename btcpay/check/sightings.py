"""What a look has shown of an address: proven, doubted or gone; and its way into the database."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from btcpay.invoices.events import record
from btcpay.settlement.values import Output, SeenOutput
from btcpay.spv.verify import Proven
from btcpay.times import to_ms
from storage.database import Database, Row
from storage.queries import merchants, payments
from storage.queries.events import Kind


@dataclass(frozen=True)
class Proof:
    """What was proven of a transaction, the document that proves it again, and who showed it."""

    proven: Proven
    document: str
    explorer: str | None = None


@dataclass(frozen=True)
class Look:
    """A complete answer about one address, and when the question was put, by our clock.

    `ahead`: how far that clock is ahead of the explorers'. It puts off an end, and nothing else.
    `proofs` by txid: a confirmed output without one is doubted, and never becomes a payment.
    `unproven`: a proof was wanted and could not be had; `short`: for want of budget. `explorer`:
    the host that was asked.
    """

    asked_at: datetime
    tip_height: int
    outputs: list[SeenOutput]
    price_usd: Decimal | None
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    unproven: bool = False
    short: bool = False
    explorer: str | None = None
    ahead: timedelta = timedelta()

    @property
    def ends_at(self) -> datetime:
        """The time by which deadlines are judged: nothing ends that has not ended by both."""
        return self.asked_at - self.ahead


def believe_spends(
    seen: Sequence[SeenOutput], known: Sequence[Output], tip_height: int
) -> list[SeenOutput]:
    """What was seen, with a spend only from the coin's proven block to the tip.

    Outside of them it is as it was known: since the tip was asked a block may have come.
    """
    before = {(output.txid, output.vout): output for output in known}
    return [
        output
        if _may_be_spent(output.spent_height, before.get((output.txid, output.vout)), tip_height)
        else replace(output, spent_height=_spent_height(before, output))
        for output in seen
    ]


def _may_be_spent(height: int | None, known: Output | None, tip_height: int) -> bool:
    first = known.block.height if known and known.block and known.proven else 0
    return height is None or first <= height <= tip_height


def _spent_height(known: Mapping[tuple[str, int], Output], seen: SeenOutput) -> int | None:
    output = known.get((seen.txid, seen.vout))
    return output.spent_height if output else None


def note_proofs(outputs: list[Output], proofs: Mapping[str, Proof]) -> list[Output]:
    """The outputs, with those marked that this look has proven: a block's first is its coinbase."""
    borne_out = _borne_out(outputs, proofs)
    return [
        _proven(output, proofs[output.txid].proven.position)
        if output.txid in borne_out and is_where(proofs[output.txid].proven, output)
        else output
        for output in outputs
    ]


def _proven(output: Output, position: int) -> Output:
    return replace(output, proven=True, position=position, coinbase=position == 0)


def doubt_unproven(outputs: list[Output], proofs: Mapping[str, Proof]) -> list[Output]:
    """The outputs, with those doubted whose block, time or amount no proof bears out."""
    borne_out = _borne_out(outputs, proofs)
    return [
        output
        if output.credited
        or not output.block
        or (output.txid in borne_out and is_where(proofs[output.txid].proven, output))
        else replace(output, doubted=True)
        for output in outputs
    ]


def _borne_out(outputs: Iterable[Output], proofs: Mapping[str, Proof]) -> set[str]:
    """The transactions whose amounts are proven; each is compared once, however many there are."""
    known = amounts_of(outputs)
    return {txid for txid, proof in proofs.items() if pays(proof.proven, known.get(txid, {}))}


def amounts_of(outputs: Iterable[Output]) -> dict[str, dict[int, int]]:
    """By txid: satoshis by output index, of what has not vanished."""
    known: dict[str, dict[int, int]] = {}
    for output in outputs:
        if not output.vanished:
            known.setdefault(output.txid, {})[output.vout] = output.amount_sats
    return known


def pays(proven: Proven, known: Mapping[int, int]) -> bool:
    """Whether the transaction pays us exactly the outputs that we know of it."""
    return {vout: sats for vout, sats in proven.amounts_sats.items() if sats} == known


def is_where(proven: Proven, output: Output) -> bool:
    """Whether the output's block, height and time are those that were proven."""
    return output.block is not None and (
        proven.height == output.block.height
        and proven.block_hash == output.block.hash
        and proven.mined_at == output.block.mined_at
    )


def some_vanished(known: list[Output], outputs: list[Output]) -> bool:
    """Whether this look misses money that waited: then it does not expire the invoice as well.

    An explorer may be behind, or change its list between two pages; the next look decides.
    """
    waiting = {(output.txid, output.vout) for output in known if not output.vanished}
    return any(output.vanished and (output.txid, output.vout) in waiting for output in outputs)


def write_outputs(
    db: Database, row: Row, known: list[Output], outputs: list[Output], look: Look, now: datetime
) -> None:
    before = {(output.txid, output.vout): output for output in known}
    for output in outputs:
        old = before.get((output.txid, output.vout))
        if output == old or output.doubted:
            continue
        block = output.block
        values = {
            "txid": output.txid,
            "vout": output.vout,
            "invoice_id": row["id"],
            "first_seen_at": to_ms(output.first_seen_at),
            "amount_sats": output.amount_sats,
            "coinbase": int(output.coinbase),
            "vanished_at": to_ms(now) if output.vanished else None,
            "block_height": block.height if block else None,
            "block_hash": block.hash if block else None,
            "block_time_at": to_ms(block.mined_at) if block else None,
            "spent_height": output.spent_height,
            "proven": int(output.proven),
            "position": output.position,
            "seen_waiting": int(output.seen_waiting),
        }
        if old:
            db.run(payments.UPDATE_OUTPUT, **values)
        else:
            db.run(payments.ADD_OUTPUT, **values, merchant_id=row["merchant_id"])
        _note_spend(db, row, old, output, look)
        _note_output(db, row["id"], old, output, look, now)


def _note_spend(db: Database, row: Row, old: Output | None, output: Output, look: Look) -> None:
    """Has the merchant's other coins asked for when one has moved, or has not after all."""
    was_spent, is_spent = (
        one is not None and one.spent_height is not None for one in (old, output)
    )
    if was_spent == is_spent:
        return
    at = {"at": to_ms(look.ends_at), "checked_at": row["checked_at"] or 0}
    db.run(merchants.SWEPT if is_spent else merchants.UNSPENT, id=row["merchant_id"], **at)
    if is_spent:
        key = {"invoice_id": row["id"], "txid": output.txid, "vout": output.vout}
        db.run(payments.SPENT, **key, at=to_ms(look.ends_at))


def _note_output(
    db: Database, invoice_id: str, old: Output | None, output: Output, look: Look, now: datetime
) -> None:
    block = output.block and {"height": output.block.height, "hash": output.block.hash}
    detail = {
        "txid": output.txid,
        "vout": output.vout,
        "amount_sats": output.amount_sats,
        "explorer": look.explorer,
    }
    if old is None:
        record(db, invoice_id, Kind.SEEN, detail | {"block": block}, now)
    elif output.vanished:
        record(db, invoice_id, Kind.VANISHED, detail, now)
    elif old.vanished:
        record(db, invoice_id, Kind.SEEN_AGAIN, detail | {"block": block}, now)
    elif old.block != output.block:
        record(db, invoice_id, Kind.MOVED, detail | {"block": block}, now)
    elif output.spent_height is None and old.spent_height is not None:
        record(db, invoice_id, Kind.UNSPENT, detail, now)
    elif old.spent_height != output.spent_height:
        record(db, invoice_id, Kind.SPENT, detail | {"height": output.spent_height}, now)

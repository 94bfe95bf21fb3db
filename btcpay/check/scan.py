"""One look at an address: its history from an explorer, and the proof of what would count."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from btcpay.check.room import Room
from btcpay.check.sightings import Look, Proof, amounts_of, believe_spends, is_where, pays
from btcpay.errors import ExplorerError, OutOfQuota, ProofFailed
from btcpay.explorers.pool import Explorers
from btcpay.invoices.status import known_outputs, rules_for, verdict_on
from btcpay.price import Prices
from btcpay.settings import Settings
from btcpay.settlement.decide import merge
from btcpay.settlement.values import Output
from btcpay.spv.document import to_document
from btcpay.spv.verify import Evidence, prove
from btcpay.wallet.account import script_of
from storage.database import Database, Row
from storage.queries import invoices, merchants

log = logging.getLogger(__name__)

# In one look, ten or a part of the calls that the hour has left: who sends a hundred small amounts
# to one address must not use up everybody's.
LEAST_PROOFS, SHARE_OF_LEFT = 10, 8
# With whatever budget: what one look has proven is written in one transaction, and others wait.
MOST_PROOFS = 500


@dataclass(frozen=True)
class Subject:
    """An invoice, its address's scriptPubKey, and what was known before this look."""

    row: Row
    script: bytes
    known: list[Output]
    tip_height: int


def subject_of(db: Database, invoice_id: str, tip_height: int) -> Subject:
    """Reads what a look needs to know, so that it needs no database."""
    row = db.only(invoices.WHOLE, id=invoice_id)
    account = db.only(merchants.BY_ID, id=row["merchant_id"])
    script = script_of(row["deposit_address"], account["script_type"])
    return Subject(row, script, known_outputs(db, invoice_id), tip_height)


@dataclass(frozen=True)
class Looker:
    """What a look asks: explorers, and the price when something was received. Thread safe.

    `calls_left`: of the hour's budget when the run began. `room`: for the run's proofs.
    """

    settings: Settings
    explorers: Explorers
    prices: Prices
    calls_left: int
    room: Room = field(default_factory=Room)

    @property
    def most_proofs(self) -> int:
        """How many transactions one look proves; the others are for the next."""
        return min(MOST_PROOFS, max(LEAST_PROOFS, self.calls_left // SHARE_OF_LEFT))

    def look(self, subject: Subject, clock: Callable[[], datetime]) -> Look:
        """Everything that has to be asked of the world about one invoice. Raises ExplorerError."""
        now, read_s = clock(), time.monotonic()
        history = self.explorers.history(subject.row["deposit_address"], subject.script)
        ahead = self.explorers.clock_skew.ahead(now, read_s)
        seen = believe_spends(history.outputs, subject.known, subject.tip_height)
        outputs = merge(subject.known, seen, now)
        wanted = self._to_be_proven(subject, outputs, now)
        proofs, short = self._prove_all(wanted[: self.most_proofs], outputs, subject.script)
        return Look(
            now,
            subject.tip_height,
            seen,
            price_usd=self.prices.current_or_none() if proofs else None,
            proofs=proofs,
            unproven=len(proofs) < len(wanted),
            short=short or len(wanted) > self.most_proofs,
            explorer=history.explorer,
            ahead=ahead,
        )

    def _prove_all(
        self, wanted: Sequence[tuple[Output, int]], outputs: Sequence[Output], script: bytes
    ) -> tuple[dict[str, Proof], bool]:
        """The proofs that could be had, by txid, and whether the budget ended before all."""
        proofs: dict[str, Proof] = {}
        known = amounts_of(outputs)
        for output, confirmations in wanted:
            try:
                proof = self._prove(output, known[output.txid], script, confirmations)
            except OutOfQuota:
                return proofs, True
            if proof:
                proofs[output.txid] = proof
        return proofs, False

    def _to_be_proven(
        self, subject: Subject, outputs: Sequence[Output], now: datetime
    ) -> list[tuple[Output, int]]:
        """One output of each transaction to be proven, and with how many headers; largest first.

        What would become a payment, with as many as the invoice asks for; what is in a block for
        the first time, with its own: so that an invention cannot keep an invoice open.
        """
        verdict = verdict_on(self.settings, subject.row, outputs, subject.tip_height, now)
        due = {receipt.txid for receipt in verdict.receipts}
        confirmations = rules_for(self.settings, subject.row).confirmations
        waiting = {o.txid: o for o in outputs if o.block and not o.credited and not o.vanished}
        return sorted(
            (
                (output, confirmations if txid in due else 1)
                for txid, output in waiting.items()
                if txid in due or not output.proven
            ),
            key=lambda wanted: -wanted[0].amount_sats,
        )

    def _prove(
        self, output: Output, known: Mapping[int, int], script: bytes, confirmations: int
    ) -> Proof | None:
        """The proof of a payment; None, with an error in the log, when no explorer has it.

        Raises OutOfQuota before it begins what could not be ended.
        """
        network = self.settings.network

        assert output.block is not None  # as _to_be_proven chose it

        def judge(evidence: Evidence, explorer: str) -> Proof:
            proven = prove(evidence, output.txid, script, network.max_target_bits, confirmations)
            if not (pays(proven, known) and is_where(proven, output)):
                raise ProofFailed("the proof contradicts what the explorer said before")
            document = self.room.put(
                lambda: to_document(evidence, output.txid, script, network.name, confirmations)
            )
            return Proof(proven, document, explorer)

        try:
            self.room.require()
            return self.explorers.evidence(output.txid, output.block, confirmations, judge)
        except OutOfQuota:
            raise
        except ExplorerError as error:
            log.error("payment %s is not proven: %s", output.txid, error)
            return None

"""One scan of an address: its history from an explorer, and the proof of what would count."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from btcpay.check.room import Room
from btcpay.errors import ExplorerError, OutOfQuota, ProofFailed
from btcpay.explorers.pool import Explorers
from btcpay.invoices.status import known_outputs, rules_for
from btcpay.price import Prices
from btcpay.settings import Settings
from btcpay.settlement.proofs import Unproven, bears_out, to_prove
from btcpay.settlement.values import Output, Proof, Scan
from btcpay.spv.document import to_document
from btcpay.spv.verify import Evidence, prove
from btcpay.wallet.account import script_of
from storage.database import Database, Row
from storage.queries import invoices, merchants

log = logging.getLogger(__name__)

# One scan may prove ten, or a part of the calls that the hour has left: whoever sends a hundred
# small amounts to one address must not use up everybody's calls.
LEAST_PROOFS, SHARE_OF_LEFT = 10, 8
# Whatever the budget: what one scan has proven is written in one transaction, while others wait.
MOST_PROOFS = 500


@dataclass(frozen=True)
class ScanJob:
    """An invoice to be scanned for, its address's scriptPubKey, and what was known before."""

    row: Row
    script: bytes
    known: list[Output]
    tip_height: int


def scan_job(db: Database, invoice_id: str, tip_height: int) -> ScanJob:
    """Reads what a scan needs to know, so that it needs no database."""
    row = db.only(invoices.WHOLE, id=invoice_id)
    account = db.only(merchants.BY_ID, id=row["merchant_id"])
    script = script_of(row["deposit_address"], account["script_type"])
    return ScanJob(row, script, known_outputs(db, invoice_id), tip_height)


@dataclass(frozen=True)
class Scanner:
    """What a scan asks: explorers, and the price when something was received. Thread safe.

    `calls_left`: of the hour's budget when the run began. `room`: for the run's proofs.
    """

    settings: Settings
    explorers: Explorers
    prices: Prices
    calls_left: int
    room: Room = field(default_factory=Room)

    @property
    def most_proofs(self) -> int:
        """How many transactions one scan proves; the others are for the next."""
        return min(MOST_PROOFS, max(LEAST_PROOFS, self.calls_left // SHARE_OF_LEFT))

    def scan(self, job: ScanJob, clock: Callable[[], datetime]) -> Scan:
        """Everything that has to be asked of the world about one invoice. Raises ExplorerError."""
        now, read_s = clock(), time.monotonic()
        history = self.explorers.history(job.row["deposit_address"], job.script)
        ahead = self.explorers.clock_skew.ahead(now, read_s)
        rules = rules_for(self.settings, job.row)
        wanted = to_prove(job.known, history.outputs, job.tip_height, rules, now)
        proofs, is_short = self._prove_all(wanted[: self.most_proofs], job.script)
        return Scan(
            now,
            job.tip_height,
            history.outputs,
            price_usd=self.prices.current_or_none() if proofs else None,
            proofs=proofs,
            unproven=len(proofs) < len(wanted),
            short=is_short or len(wanted) > self.most_proofs,
            explorer=history.explorer,
            ahead=ahead,
        )

    def _prove_all(
        self, wanted: Sequence[Unproven], script: bytes
    ) -> tuple[dict[str, Proof], bool]:
        """The proofs that could be had, by txid, and whether the budget ended before all."""
        proofs: dict[str, Proof] = {}
        for unproven in wanted:
            try:
                proof = self._prove(unproven, script)
            except OutOfQuota:
                return proofs, True
            if proof:
                proofs[unproven.txid] = proof
        return proofs, False

    def _prove(self, unproven: Unproven, script: bytes) -> Proof | None:
        """The proof of a payment; None, with an error in the log, when no explorer has it.

        Raises OutOfQuota before it begins what could not be ended.
        """
        network, txid, depth = self.settings.network, unproven.txid, unproven.confirmations

        def judge(evidence: Evidence, explorer: str) -> Proof:
            proven = prove(evidence, txid, script, network.max_target_bits, depth)
            if not bears_out(proven, unproven.block, unproven.amounts_sats):
                raise ProofFailed("the proof contradicts what the explorer said before")
            document = self.room.put(
                lambda: to_document(evidence, txid, script, network.name, depth)
            )
            return Proof(proven, document, explorer)

        try:
            self.room.require()
            return self.explorers.evidence(txid, unproven.block, depth, judge)
        except OutOfQuota:
            raise
        except ExplorerError as error:
            log.error("payment %s is not proven: %s", txid, error)
            return None

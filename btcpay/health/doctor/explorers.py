"""Every explorer: does it answer, on the right network, at the tip, and can it prove?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.client import SERVICE_UNAVAILABLE

from btcpay.bitcoin.header import parse_header
from btcpay.bitcoin.wire import Malformed
from btcpay.chain.explorers.esplora import Esplora, OtherNetwork
from btcpay.chain.explorers.open import open_one
from btcpay.chain.explorers.pool import MAX_BLOCKS_BEHIND
from btcpay.chain.explorers.quota import Quota, QuotaSpent
from btcpay.health.doctor.finding import GREEN, RED, YELLOW, Finding, Patient
from btcpay.http import http_client
from btcpay.http.clock_skew import told_time
from btcpay.proofs.block import prove_block
from btcpay.values.errors import ProofFailed
from btcpay.values.networks import SANDBOX_PORT, SANDBOX_URL, Network
from btcpay.values.times import from_unix_s

# Two hours without a block happen once in 160,000 blocks (exp(-12)), which is every three years.
TIP_AGE = timedelta(hours=2)
OF_SANDBOX = "is `btcpay sandbox` still running?"
REMEDY = "see whether it works in a browser; else name another one in BTCPAY_EXPLORERS"


@dataclass
class Visit:
    """What an explorer showed; `trouble` says what is wrong with it, "" when nothing is.

    `ahead` is its clock minus ours, None when it told no time.
    """

    url: str
    host: str
    trouble: str = ""
    remedy: str = REMEDY
    is_foreign: bool = False
    is_spent: bool = False
    height: int | None = None
    tip_at: datetime | None = None
    ahead: timedelta | None = None


def visit_all(patient: Patient, quota: Quota | None, known_height: int) -> list[Visit]:
    """Visits each explorer, with three calls at most; a `quota` counts them.

    `known_height` is the highest block that a check has proven.
    """
    visits = [_visit(url, patient, quota) for url in patient.settings.explorers]
    best = max([known_height, *(visit.height or 0 for visit in visits if not visit.is_foreign)])
    for visit in visits:
        if not visit.trouble:
            judge_tip(visit, best, patient.settings.network, patient.now())
    return visits


def findings(visits: Sequence[Visit]) -> Iterator[Finding]:
    """One of several in trouble is yellow. All of them are red: nothing would ever be paid."""
    all_bad = all(visit.trouble for visit in visits if not visit.is_spent)
    for visit in visits:
        name = f"explorer {visit.host}"
        if not visit.trouble:
            yield Finding(name, GREEN, f"at block {visit.height}, with whole blocks")
        else:
            red = (all_bad or visit.is_foreign) and not visit.is_spent
            yield Finding(name, RED if red else YELLOW, visit.trouble, visit.remedy)


def _visit(url: str, patient: Patient, quota: Quota | None) -> Visit:
    times: list[timedelta] = []

    def note_time(headers: Mapping[str, str]) -> None:
        if told := told_time(headers):
            times.append(told - patient.now())

    explorer = open_one(patient.settings, url, quota, note_time)
    visit = Visit(url, explorer.host)
    try:
        _ask(visit, explorer)
    except (http_client.FetchError, ProofFailed, Malformed) as error:
        explorer.failed(error)
        visit.is_spent = isinstance(error, QuotaSpent)
        if isinstance(error, OtherNetwork):
            visit.is_foreign, visit.remedy = True, "correct BTCPAY_EXPLORERS, or BTCPAY_NETWORK"
        visit.trouble = visit.trouble or str(error)
        if url == SANDBOX_URL:
            visit.trouble, visit.remedy = of_sandbox(error) or (visit.trouble, visit.remedy)
    else:
        explorer.succeeded()
    visit.ahead = min(times, key=abs, default=None)
    return visit


def of_sandbox(error: Exception) -> tuple[str, str] | None:
    """What is wrong with the sandbox's explorer, and what helps; None for any other fault."""
    if isinstance(error, http_client.Unreachable):
        return f"nothing answers at port {SANDBOX_PORT}", OF_SANDBOX
    if isinstance(error, http_client.BadStatus) and error.status == SERVICE_UNAVAILABLE:
        return str(error), 'press "explorer up" on the sandbox\'s page'
    return None


def _ask(visit: Visit, explorer: Esplora) -> None:
    """Fills in the visit. Raises at the first fault; `trouble` is set where it says more."""
    explorer.require_network()
    tip = explorer.headers(None)[-1]
    header = parse_header(tip.raw)
    visit.height, visit.tip_at = tip.height, from_unix_s(header.time)
    try:
        prove_block(explorer.raw_block(header.hash), header.hash)
    except QuotaSpent:
        raise
    except (http_client.FetchError, ProofFailed) as error:
        visit.trouble = f"cannot show its last block, so it never settles: {error}"
        visit.remedy = "name an Esplora root with /block/:hash/raw in BTCPAY_EXPLORERS"
        raise


def judge_tip(visit: Visit, best: int, network: Network, now: datetime) -> None:
    """Notes trouble when the tip is MAX_BLOCKS_BEHIND below `best`, or older than TIP_AGE."""
    behind = best - (visit.height or 0)
    if behind > MAX_BLOCKS_BEHIND:
        visit.trouble = f"is {behind} blocks behind, at {visit.height}"
    elif network.name != "regtest" and visit.tip_at and now - visit.tip_at > TIP_AGE:
        minutes = (now - visit.tip_at) // timedelta(minutes=1)
        visit.trouble = f"has shown no block for {minutes} minutes; its last is {visit.height}"

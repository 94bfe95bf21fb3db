"""Every explorer: reachable, of the right network, at the tip, with the paths that prove."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from marshmallow import ValidationError

from btcpay import http_client
from btcpay.bitcoin.header import parse_header
from btcpay.bitcoin.wire import Malformed
from btcpay.clock_skew import told_time
from btcpay.doctor.finding import GREEN, RED, YELLOW, Finding, Patient
from btcpay.errors import ProofFailed
from btcpay.explorers.endpoint import Root
from btcpay.explorers.evidence import OtherNetwork, block_hash, header, prove_at, require_network
from btcpay.explorers.pool import MAX_BLOCKS_BEHIND, tip_height
from btcpay.explorers.quota import Budget, BudgetSpent
from btcpay.networks import Network
from btcpay.times import from_unix_s

CALLS = 7  # that a visit makes at most
# Two hours without a block happen once in 160,000 blocks (exp(-12)), which is every three years.
TIP_AGE = timedelta(hours=2)
REMEDY = "see what it is up to; name another one in BTCPAY_EXPLORERS"


@dataclass
class Visit:
    """What an explorer showed; `trouble` is what the visit ended with, "" when nothing was wrong.

    `ahead` is its clock's time less ours, None when it did not tell the time.
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


def visit_all(patient: Patient, budget: Budget | None, known_height: int) -> list[Visit]:
    """Asks each explorer CALLS questions at most, which count in the budget when there is one.

    `known_height` is the highest that was proven to a check.
    """
    visits = [_visit(url, patient, budget) for url in patient.settings.explorers]
    best = max([known_height, *(visit.height or 0 for visit in visits if not visit.is_foreign)])
    for visit in visits:
        if not visit.trouble:
            judge_tip(visit, best, patient.settings.network, patient.now())
    return visits


def findings(visits: Sequence[Visit]) -> Iterator[Finding]:
    """One of several may be in trouble for a while; when all are, nothing is ever paid."""
    all_bad = all(visit.trouble for visit in visits if not visit.is_spent)
    for visit in visits:
        name = f"explorer {visit.host}"
        if not visit.trouble:
            yield Finding(name, GREEN, f"at block {visit.height}, with proofs")
        else:
            red = (all_bad or visit.is_foreign) and not visit.is_spent
            yield Finding(name, RED if red else YELLOW, visit.trouble, visit.remedy)


def _visit(url: str, patient: Patient, budget: Budget | None) -> Visit:
    times: list[timedelta] = []

    def note_time(headers: Mapping[str, str]) -> None:
        if told := told_time(headers):
            times.append(told - patient.now())

    root = Root(url, http_client.new_session(), budget, note_time)
    visit = Visit(url, root.host)
    try:
        _ask(visit, root, patient.settings.network)
    except (http_client.FetchError, ValidationError, ProofFailed, Malformed) as error:
        root.failed(error)
        visit.is_spent = isinstance(error, BudgetSpent)
        if isinstance(error, OtherNetwork):
            visit.is_foreign, visit.remedy = True, "correct BTCPAY_EXPLORERS, or BTCPAY_NETWORK"
        visit.trouble = visit.trouble or _brief(error)
    else:
        root.succeeded()
    visit.ahead = min(times, key=abs, default=None)
    return visit


def _ask(visit: Visit, root: Root, network: Network) -> None:
    """Fills in the visit; what cannot be had raises, with `trouble` set where it says more."""
    require_network(root, network)
    visit.height = tip_height(root)
    tip_hash = block_hash(root, visit.height)
    visit.tip_at = from_unix_s(parse_header(header(root.keep, tip_hash)).time)
    if visit.height:  # the first block's coinbase is no transaction that nodes can show
        _prove(visit, root, tip_hash, network)


def _prove(visit: Visit, root: Root, tip_hash: str, network: Network) -> None:
    """Whether the paths are there by which a payment would be proven, tried on the tip."""
    try:
        prove_at(root, tip_hash, visit.height or 0, network)
    except BudgetSpent:
        raise
    except (http_client.FetchError, ValidationError, ProofFailed) as error:
        visit.trouble = f"cannot prove its tip, so it never settles: {_brief(error)}"
        visit.remedy = "name an Esplora root with proof paths in BTCPAY_EXPLORERS"
        raise


def judge_tip(visit: Visit, best: int, network: Network, now: datetime) -> None:
    """Notes trouble when the tip is more than MAX_BLOCKS_BEHIND below `best`, or TIP_AGE old."""
    behind = best - (visit.height or 0)
    if behind > MAX_BLOCKS_BEHIND:
        visit.trouble = f"is {behind} blocks behind, at {visit.height}"
    elif network.name != "regtest" and visit.tip_at and now - visit.tip_at > TIP_AGE:
        minutes = (now - visit.tip_at) // timedelta(minutes=1)
        visit.trouble = f"shows no block since {minutes} minutes, its last is {visit.height}"


def _brief(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"answered what Esplora does not: {str(error.messages)[:200]}"
    return str(error)

"""The first header that a shop keeps: two hours before its first invoice."""

from datetime import datetime, timedelta

from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.headers import ShownHeader
from btcpay.chain.explorers.pool import FAILURES, Explorers
from btcpay.chain.headers import check_header
from btcpay.chain.kept import add_header
from btcpay.values.errors import ExplorerError, FetchError
from btcpay.values.networks import Network
from btcpay.values.times import from_ms, from_unix_s
from storage.database import Database
from storage.queries import blocks, meta

# How far a block's time may be off. A payment may be mined before cron first runs.
BEFORE = timedelta(hours=2)
PAGE = 10
# So many headers below it are kept too: after a quiet time on a test network the first one may be
# the tip itself, and a reorganisation is followed from a block that both chains have.
BELOW = 12


def begin(db: Database, network: Network, explorers: Explorers) -> bool:
    """Keeps a first header, if there is none and the shop has an invoice; whether there is one.

    Two explorers must agree where two are set. Raises ExplorerError.
    """
    if db.row(blocks.TOP):
        return True
    first_ms = db.only(blocks.FIRST_INVOICE)["at"]
    if first_ms is None:
        return False
    kept = _agreed(network, explorers, from_ms(first_ms) - BEFORE)
    with db.write():
        meta.lock(db)
        if db.row(blocks.TOP) is None:
            for shown in kept:
                add_header(db, shown.height, shown.raw, is_read=True)
    return True


def _agreed(network: Network, explorers: Explorers, at: datetime) -> list[ShownHeader]:
    """The first header, and those below it, which it commits to; ascending."""

    def question(one: Esplora) -> tuple[Esplora, list[ShownHeader]]:
        one.require_network()
        return one, _with_those_below(one, last_before(network, one, at))

    teller, kept = explorers.ask(question)
    shown = kept[-1]
    hash = check_header(network, shown.raw).hash
    if explorers.is_alone:
        return kept
    for one in explorers.others(teller):  # one that rests or is given up agrees to nothing
        try:
            if one.block_hash(shown.height) == hash:
                return kept
        except FAILURES as error:
            one.failed(error)
    told = f"no second explorer has block {shown.height} {hash}, with which reading would begin"
    raise ExplorerError(told)


def _with_those_below(one: Esplora, first: ShownHeader) -> list[ShownHeader]:
    kept = [first]
    while kept[0].height > max(0, first.height - BELOW):
        page = one.headers(kept[0].height)
        if page[-1] != kept[0] or len(page) < 2:
            raise FetchError("shows no header below one that it has shown")
        kept = page[:-1] + kept
    return kept


def last_before(network: Network, one: Esplora, at: datetime) -> ShownHeader:
    """The last header of this explorer's chain that is not younger; the first there is if all are.

    Goes back in steps that double, then halves what is left: some twenty calls for a year.
    """

    def is_older(shown: ShownHeader) -> bool:
        return from_unix_s(check_header(network, shown.raw).time) <= at

    page, step = one.headers(None), 1
    above = page[-1].height + 1
    while page[0].height > 0 and not is_older(page[0]):
        above = page[0].height
        page = one.headers(max(above - step, min(PAGE, above) - 1))
        step = max(PAGE, 2 * step)
    while page[-1].height + 1 < above and is_older(page[-1]):
        # It is above this page, and below `above`.
        middle = (page[-1].height + above) // 2
        found = one.headers(min(middle + PAGE - 1, above - 1))
        found = [shown for shown in found if shown.height > page[-1].height]
        if is_older(found[0]):
            page = found
        else:
            above = found[0].height
    return [page[0], *filter(is_older, page)][-1]

"""The first header that a shop keeps: two hours before its first invoice."""

from datetime import datetime, timedelta

from btcpay.chain.follow import add_header
from btcpay.chain.headers import check_header
from btcpay.chain.sources import FAILURES, BlockSource, BlockSources
from btcpay.values.errors import ExplorerError
from btcpay.values.networks import Network
from btcpay.values.times import from_ms
from storage.database import Database
from storage.queries import blocks, meta

# How far a block's time may be off. A payment may be mined before cron first runs.
BEFORE = timedelta(hours=2)
# So many headers below it are kept too: after a quiet time on a test network the first one may be
# the tip itself, and a reorganisation is followed from a block that both chains have.
BELOW = 12


def begin(db: Database, network: Network, sources: BlockSources) -> bool:
    """Keeps a first header, if there is none and the shop has an invoice; whether there is one.

    Two sources must agree where two are set. Raises ExplorerError.
    """
    if db.row(blocks.TOP):
        return True
    first_ms = db.only(blocks.FIRST_INVOICE)["at"]
    if first_ms is None:
        return False
    top, headers = _agreed(network, sources, from_ms(first_ms) - BEFORE)
    with db.write():
        meta.lock(db)
        if db.row(blocks.TOP) is None:
            for height, raw in enumerate(headers, top - len(headers) + 1):
                add_header(db, height, raw, is_read=True)
    return True


def _agreed(network: Network, sources: BlockSources, at: datetime) -> tuple[int, list[bytes]]:
    """The height of the first header, and that with those below it, which it commits to."""

    def question(one: BlockSource) -> tuple[BlockSource, int, list[bytes]]:
        return one, *one.headers_before(at, BELOW)

    said_by, height, headers = sources.ask(question)
    if sources.is_alone:
        return height, headers
    for one in sources.others(said_by):  # one that rests or is given up agrees to nothing
        try:
            if one.header_at(height) == headers[-1]:
                return height, headers
        except FAILURES as error:
            one.failed(error)
    block = f"{height} {check_header(network, headers[-1]).hash}"
    raise ExplorerError(f"no second explorer has block {block}, with which reading would begin")

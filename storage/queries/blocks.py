"""The headers of the best chain, with a mark on blocks that are read; our scripts and coins."""

from collections.abc import Iterable
from typing import NamedTuple

import orjson
from peewee import SQL, Case, ColumnBase, Expression, Select, fn

from storage.database import Database
from storage.models import Balance, Block, Invoice, Output
from storage.queries import pauses
from storage.queries.invoices import MAY_BE_PAID
from storage.statement import every, same, shaped, slot

_HEADER = (Block.height, Block.hash, Block.header, Block.mined_ms)

TOP = Block.select(*_HEADER).order_by(Block.height.desc()).limit(1)
FIRST = Block.select(*_HEADER).order_by(Block.height).limit(1)
LAST_BEFORE = TOP.where(Block.mined_ms <= slot("mined_before"))
OF_HASH = Block.select(*_HEADER).where(same(Block.hash))
AT = Block.select(*_HEADER).where(same(Block.height))
ABOVE = (
    Block.select(*_HEADER).where(Block.height > slot("height")).order_by(Block.height)
)
# The headers that follow a block's: so many of them, as a proof keeps them.
FOLLOWING = ABOVE.limit(slot("limit"))

ADD = Block.insert(every(Block))
# A chain with more work goes on from this height.
CUT = Block.delete().where(Block.height > slot("height"))

NEVER = 0  # in place of the time of reading: the block is passed over
_UNREAD = Block.read_ms.is_null()
# Blocks to be read now; one that no source could show is passed over for a while.
_DUE = Block.select(*_HEADER, Block.not_before).where(
    _UNREAD, Block.not_before.is_null() | pauses.is_over(Block.not_before)
)
NEWEST = _DUE.order_by(Block.height.desc()).limit(slot("limit"))
OLDEST = _DUE.order_by(Block.height).limit(slot("limit"))
PASS_OVER = Block.update({Block.not_before: slot("until")}).where(
    _UNREAD, same(Block.hash)
)
# The number of them, and the first.
UNREAD = shaped(
    tuple[int, int | None],
    Block.select(fn.COUNT(Block.height), fn.MIN(Block.height)).where(_UNREAD),
)
# Succeeds once: whoever comes second changes nothing.
READ = Block.update({Block.read_ms: slot("at"), Block.spends: slot("spends")}).where(
    _UNREAD, same(Block.hash)
)
# Marks blocks unread that were read before we knew that coins spent in them are ours.
READ_AGAIN = Block.update({Block.read_ms: None, Block.spends: None}).where(
    same(Block.height)
)
SPENDS = Block.select(Block.height, Block.spends).where(
    Block.spends.is_null(False), Block.height > slot("height")
)
# Once no block below is unread, the spends kept for these blocks have been looked up.
FORGET_SPENDS = Block.update({Block.spends: None}).where(
    Block.spends.is_null(False), Block.height < slot("height")
)
# Blocks from a time when nothing was at stake are not read.
SKIP = Block.update({Block.read_ms: NEVER}).where(
    _UNREAD, Block.mined_ms <= slot("mined_before")
)


_HEIGHT = shaped(tuple[int | None], Block.select(fn.MAX(Block.height)))


def tip_height(db: Database) -> int | None:
    """Height of the best block that we know; None before the first one."""
    return db.only(_HEIGHT)[0]


def given(texts: Iterable[str]) -> str:
    """Several texts as a single value of a statement: the names of a JSON object."""
    return orjson.dumps(dict.fromkeys(texts)).decode()


def is_given(column: ColumnBase, name: str = "texts") -> Expression:
    """True for each of the texts in the slot of this name, a value that `given` has made."""
    return column.in_(
        Select([fn.json_each(slot(name)).alias(name)], [SQL(f"{name}.key")])
    )


# The invoices whose addresses have the given scripts, in hex.
OF_SCRIPTS = Invoice.select(Invoice.id, Invoice.merchant_id, Invoice.script).where(
    is_given(Invoice.script)
)
_COIN = Output.select(Output.invoice_id, Output.merchant_id, Output.txid, Output.vout)
# The unspent ones of the given transactions.
COINS = _COIN.where(
    is_given(Output.txid),
    Output.block_height.is_null(False),
    Output.spent_height.is_null(),
)

# Rows that a reorganisation takes back, above the last block that both chains have.
PAID_ABOVE = (
    Output.select(Output)
    .where(Output.block_height > slot("height"))
    .order_by(Output.merchant_id, Output.invoice_id)
)
SPENT_ABOVE = _COIN.where(
    Output.spent_height > slot("height"), Output.block_height <= slot("height")
).order_by(Output.merchant_id, Output.invoice_id)
UNSPEND = Output.update({Output.spent_height: None}).where(
    Output.spent_height > slot("height")
)
UNREPLACE = Output.update({Output.replaced_height: None}).where(
    Output.replaced_height > slot("height")
)
# The output waits again, in no block. It still counts as seen when that block came, so money that
# came in time stays in time.
WAITS_AGAIN = Output.update(
    {
        Output.first_seen_ms: Case(
            None,
            [(Output.block_time_ms < Output.first_seen_ms, Output.block_time_ms)],
            Output.first_seen_ms,
        ),
        Output.payment_id: None,
        Output.block_height: None,
        Output.block_hash: None,
        Output.block_time_ms: None,
        Output.spent_height: None,
        Output.position: None,
        Output.coinbase: 0,
    }
).where(Output.block_height > slot("height"))

# A new beginning gives up the blocks and keeps the payments: their outputs get a height that no
# reorganisation takes back.
KEEP_PROVEN = Output.update(
    {
        Output.block_height: slot("height"),
        Output.spent_height: Case(
            None, [(Output.spent_height.is_null(), None)], slot("height")
        ),
    }
).where(Output.payment_id.is_null(False))

# Anything is at stake: an invoice open or lately finished, money on its way, a coin.
_AT_STAKE = (
    fn.EXISTS(Invoice.select(Invoice.id).where(MAY_BE_PAID))
    | fn.EXISTS(Balance.select(Balance.merchant_id).where(Balance.total_sats > 0))
).alias("is_at_stake")
AT_STAKE = shaped(tuple[bool], Select(columns=[_AT_STAKE]))
# The best block that we know, with the answers of UNREAD and AT_STAKE.
BEST = Block.alias()
IS_BEST = BEST.height == Block.select(fn.MAX(Block.height))


class Known(NamedTuple):
    height: int
    mined_ms: int
    behind: int
    is_at_stake: bool


KNOWN = (
    BEST.height,
    BEST.mined_ms,
    Block.select(fn.COUNT(Block.height)).where(_UNREAD).alias("behind"),
    _AT_STAKE,
)
PROGRESS = shaped(Known, BEST.select(*KNOWN).where(IS_BEST))
FIRST_INVOICE = shaped(tuple[int | None], Invoice.select(fn.MIN(Invoice.created_ms)))
LAST_INVOICE = shaped(tuple[int | None], Invoice.select(fn.MAX(Invoice.created_ms)))

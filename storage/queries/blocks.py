"""The best chain's headers, which blocks are read, and the scripts and coins to find."""

from collections.abc import Iterable
from typing import NamedTuple

import orjson
from peewee import SQL, Case, ColumnBase, Expression, Select, fn

from storage.database import Database
from storage.models import Balance, Block, Invoice, Output
from storage.queries import pauses
from storage.queries.invoices import MAY_BE_PAID
from storage.statement import all_columns, eq, param, rows_as

_HEADER = (Block.height, Block.hash, Block.header, Block.mined_ms)

TOP = Block.select(*_HEADER).order_by(Block.height.desc()).limit(1)
FIRST = Block.select(*_HEADER).order_by(Block.height).limit(1)
LAST_BEFORE = TOP.where(Block.mined_ms <= param("mined_before"))
OF_HASH = Block.select(*_HEADER).where(eq(Block.hash))
AT = Block.select(*_HEADER).where(eq(Block.height))
ABOVE = (
    Block.select(*_HEADER).where(Block.height > param("height")).order_by(Block.height)
)
# The next headers after a block, as many as a proof stores.
FOLLOWING = ABOVE.limit(param("limit"))

ADD = Block.insert(all_columns(Block))
# Deletes the blocks that a chain with more work replaces.
CUT = Block.delete().where(Block.height > param("height"))

NEVER = 0  # the value of `read_ms` for a block that is never read
_UNREAD = Block.read_ms.is_null()
# Blocks to read now. A block that no source could deliver is skipped for a while.
_DUE = Block.select(*_HEADER, Block.not_before).where(
    _UNREAD, Block.not_before.is_null() | pauses.is_over(Block.not_before)
)
NEWEST = _DUE.order_by(Block.height.desc()).limit(param("limit"))
OLDEST = _DUE.order_by(Block.height).limit(param("limit"))
PASS_OVER = Block.update({Block.not_before: param("until")}).where(
    _UNREAD, eq(Block.hash)
)
# The number of unread blocks, and the lowest height.
UNREAD = rows_as(
    tuple[int, int | None],
    Block.select(fn.COUNT(Block.height), fn.MIN(Block.height)).where(_UNREAD),
)
# Marks a block as read. A second process changes nothing.
READ = Block.update({Block.read_ms: param("at"), Block.spends: param("spends")}).where(
    _UNREAD, eq(Block.hash)
)
# Marks blocks as unread that were read before the coins spent in them were known.
READ_AGAIN = Block.update({Block.read_ms: None, Block.spends: None}).where(
    eq(Block.height)
)
SPENDS = Block.select(Block.height, Block.spends).where(
    Block.spends.is_null(False), Block.height > param("height")
)
# Deletes stored spends of blocks below which every block is read: they have been looked up.
FORGET_SPENDS = Block.update({Block.spends: None}).where(
    Block.spends.is_null(False), Block.height < param("height")
)
# Marks old blocks as not to be read: when they were mined, there was nothing to be paid.
SKIP = Block.update({Block.read_ms: NEVER}).where(
    _UNREAD, Block.mined_ms <= param("mined_before")
)


_HEIGHT = rows_as(tuple[int | None], Block.select(fn.MAX(Block.height)))


def tip_height(db: Database) -> int | None:
    """Returns the height of the best known block; None before the first one."""
    return db.get(_HEIGHT)[0]


def json_keys(texts: Iterable[str]) -> str:
    """Returns a JSON object with the texts as its keys, as `is_given` needs it."""
    return orjson.dumps(dict.fromkeys(texts)).decode()


def is_given(column: ColumnBase, name: str = "texts") -> Expression:
    """Returns the condition that `column` is one of the texts in the parameter `name`.

    `json_keys` makes the value of this parameter from the texts.
    """
    table = fn.json_each(param(name)).alias(name)
    texts = Select([table], [SQL(f"{name}.key")])
    return column.in_(texts)


# The invoices whose addresses have the given scripts (scriptPubKeys in hex).
OF_SCRIPTS = Invoice.select(Invoice.id, Invoice.merchant_id, Invoice.script).where(
    is_given(Invoice.script)
)
_COIN = Output.select(Output.invoice_id, Output.merchant_id, Output.txid, Output.vout)
# The unspent coins of the given transactions.
COINS = _COIN.where(
    is_given(Output.txid),
    Output.block_height.is_null(False),
    Output.spent_height.is_null(),
)

# Outputs that a reorganisation affects, above the last block that both chains share.
PAID_ABOVE = (
    Output.select(Output)
    .where(Output.block_height > param("height"))
    .order_by(Output.merchant_id, Output.invoice_id)
)
SPENT_ABOVE = _COIN.where(
    Output.spent_height > param("height"), Output.block_height <= param("height")
).order_by(Output.merchant_id, Output.invoice_id)
UNSPEND = Output.update({Output.spent_height: None}).where(
    Output.spent_height > param("height")
)
UNREPLACE = Output.update({Output.replaced_height: None}).where(
    Output.replaced_height > param("height")
)
# The output is unconfirmed again. Its first-seen time becomes the old block's time if that is
# earlier, so that a payment that was in time stays in time.
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
).where(Output.block_height > param("height"))

# A restart from another first block deletes the blocks and keeps the payments. Their outputs get a
# height that no reorganisation reaches.
KEEP_PROVEN = Output.update(
    {
        Output.block_height: param("height"),
        Output.spent_height: Case(
            None, [(Output.spent_height.is_null(), None)], param("height")
        ),
    }
).where(Output.payment_id.is_null(False))

# True if blocks must be read: an invoice is open or recently finished, or a balance is not 0.
_AT_STAKE = (
    fn.EXISTS(Invoice.select(Invoice.id).where(MAY_BE_PAID))
    | fn.EXISTS(Balance.select(Balance.merchant_id).where(Balance.total_sats > 0))
).alias("is_at_stake")
AT_STAKE = rows_as(tuple[bool], Select(columns=[_AT_STAKE]))
# The best known block, with the results of UNREAD and AT_STAKE.
BEST = Block.alias()
IS_BEST = BEST.height == Block.select(fn.MAX(Block.height))


class BestBlock(NamedTuple):
    """The best known block, and how many blocks were not read yet.

    `behind` is the number of unread blocks. `is_at_stake` is True if they must be read:
    an invoice may be paid, or a merchant has a balance.
    """

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
PROGRESS = rows_as(BestBlock, BEST.select(*KNOWN).where(IS_BEST))
FIRST_INVOICE = rows_as(tuple[int | None], Invoice.select(fn.MIN(Invoice.created_ms)))
LAST_INVOICE = rows_as(tuple[int | None], Invoice.select(fn.MAX(Invoice.created_ms)))

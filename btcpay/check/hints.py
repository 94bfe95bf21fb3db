"""Hints: which unread blocks concern us, as explorers say it. Followed first, and hardly believed.

After a pause they bring forward what is waited for. With BTCPAY_BLOCKS=named nothing else is read:
then an explorer can hide a payment or a spend, and never invent one.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from btcpay.bitcoin.header import parse_header
from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.headers import ShownHeader
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.kept import add_header
from btcpay.chain.progress import LATELY
from btcpay.settings.settings import Settings
from btcpay.values.errors import ExplorerError, OutOfQuota, ProofFailed
from btcpay.values.times import to_ms
from storage.database import Database, Row
from storage.queries import blocks, hints, looked_for, meta

log = logging.getLogger(__name__)
Question = tuple[str, Callable[[], None]]  # of an invoice

GAP = 12  # so many unread blocks are read in order: two hours of them
ASK_AGAIN = timedelta(hours=6)  # while a gap is read, an address is asked once
NAMED_AGAIN = timedelta(minutes=10)  # where nothing else tells of blocks
PART_OF_LEFT = 3  # of the calls that are left, hints of one run take at most a third
MOST_OLD_HEADERS = 4032  # a month of them: so far below the first header an old spend is followed


class Hints:
    """Asks explorers where addresses and coins are, and names the blocks that they answer."""

    def __init__(
        self, db: Database, settings: Settings, explorers: Explorers, now: datetime
    ) -> None:
        self._db, self._settings, self._explorers, self._now = db, settings, explorers, now
        self._is_named = settings.blocks == "named"

    def ask(self, unread: int, missed: Sequence[str]) -> list[str]:
        """Asks as far as the calls allow: within a gap, where nothing else is read, and once for
        each coin that is older than our first header.

        `missed`: invoices whose money is in a block now, or gone. Returns the invoices of which
        nothing is known because nobody could be asked; none where every block is read anyway.
        """
        failed: list[str] = []
        left = self._explorers.allowance().left // PART_OF_LEFT
        for invoice_id, question in self._questions(unread, missed, min(left, 200)):
            if left <= 0 or not self._explorers.is_usable:
                break
            made = self._explorers.calls
            try:
                question()
            except OutOfQuota:
                break
            except ExplorerError as error:  # the next is somebody's money too
                log.warning("where invoice %s was paid could not be asked: %s", invoice_id, error)
                failed.append(invoice_id)
            left -= max(1, self._explorers.calls - made)  # a history has pages
        return failed if self._is_named else []

    def _questions(self, unread: int, missed: Sequence[str], limit: int) -> Iterator[Question]:
        for invoice_id in missed if self._is_named else ():
            row = self._db.only(looked_for.ADDRESS, id=invoice_id)
            yield invoice_id, partial(self._ask_history, row)
        if self._is_named or unread > GAP:
            again = NAMED_AGAIN if self._is_named else ASK_AGAIN
            before = {
                "asked_before": to_ms(self._now - again),
                "finished_after": to_ms(self._now - LATELY),
            }
            for row in self._db.rows(hints.HISTORIES, limit=limit, **before):
                yield row["id"], partial(self._ask_history, row)
        if self._is_named:
            asked_before = to_ms(self._now - NAMED_AGAIN)
            coins = self._db.rows(hints.COINS, limit=limit, asked_before=asked_before)
        else:
            coins = self._db.rows(hints.OLD_COINS, limit=limit)
        for coin in coins:
            yield coin["invoice_id"], partial(self._ask_spend, coin)

    def _ask_history(self, row: Row) -> None:
        """It counts as asked when nothing is left open, or nothing depends on it."""
        address, asked = row["deposit_address"], {"id": row["id"], "at": to_ms(self._now)}
        if not self._is_named:
            self._db.run(hints.HISTORY_ASKED, **asked)
        named = self._explorers.ask(lambda one: one.blocks_of(address))
        for height, hash in named:
            self._db.run(blocks.NAME, height=height, hash=hash)
        if self._is_named and not any(self._is_to_come(*block) for block in named):
            self._db.run(hints.HISTORY_ASKED, **asked)

    def _is_to_come(self, height: int, hash: str) -> bool:
        """Whether a block may be on the chain before long, whose header we do not have yet."""
        first = self._db.only(blocks.FIRST)["height"]
        return height > first and self._db.row(blocks.OF_HASH, hash=hash) is None

    def _ask_spend(self, coin: Row) -> None:
        txid, vout = coin["txid"], coin["vout"]
        found = self._explorers.ask(lambda one: one.outspend(txid, vout))
        if found:
            self._name_old(*found)
            height, hash = found
            coin_height = coin["block_height"]
            self._db.run(blocks.SPENDS_KNOWN_NOW, height=height, hash=hash, coin_height=coin_height)
        key = {"invoice_id": coin["invoice_id"], "txid": txid, "vout": vout}
        self._db.run(hints.ASKED, **key, at=to_ms(self._now))

    def _name_old(self, height: int, hash: str) -> None:
        """Names a block, also one below our first header: then headers down to it are added.

        They need no proof but the hash that the header above them names.
        """
        first = self._db.only(blocks.FIRST)
        if first["height"] - height > MOST_OLD_HEADERS:
            log.warning("a coin is said to be spent in block %d, which is not read", height)
            return
        while height < first["height"]:
            self._add_below(first)
            first = self._db.only(blocks.FIRST)
        self._db.run(blocks.NAME, height=height, hash=hash)

    def _add_below(self, first: Row) -> None:
        """The headers of a page below the first that we keep, which they are linked to."""

        def page(one: Esplora) -> list[ShownHeader]:
            shown = one.headers(first["height"])
            if parse_header(shown[-1].raw).hash != first["hash"]:
                raise ProofFailed(f"its chain has not our block {first['height']}")
            if len(shown) < 2:
                raise ProofFailed(f"shows nothing below block {first['height']}")
            return shown[:-1]

        found = self._explorers.ask(page)
        with self._db.write():
            meta.lock(self._db)
            if self._db.only(blocks.FIRST)["hash"] != first["hash"]:
                return  # another run was here
            for shown in found:
                add_header(self._db, shown.height, shown.raw, is_read=True)

"""The headers that we keep: rows of the database, and what they say."""

from btcpay.bitcoin.header import Header, parse_header
from btcpay.values.times import from_unix_s, to_ms
from storage.database import Database, Row
from storage.queries import blocks


def header_of(row: Row) -> Header:
    """The header that a row of the chain holds."""
    return parse_header(bytes(row["header"]))


def add_header(db: Database, height: int, raw: bytes, is_read: bool = False) -> None:
    """Adds a header to the chain. `is_read`: its block is passed over."""
    header = parse_header(raw)
    db.run(
        blocks.ADD,
        height=height,
        hash=header.hash,
        header=raw,
        mined_at=to_ms(from_unix_s(header.time)),
        read_at=blocks.NEVER if is_read else None,
        spends=None,
    )

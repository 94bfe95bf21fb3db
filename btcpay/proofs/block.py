"""A whole block, proven by its header: all its payments and spends, with none left out.

Witnesses are not proven, since neither an id nor a payment depends on one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from btcpay.bitcoin.block import NULL_OUTPOINT, BlockContents, scan_block
from btcpay.bitcoin.header import (
    HEADER_BYTES,
    is_mutated,
    merkle_branch,
    merkle_rows,
    parse_header,
)
from btcpay.bitcoin.wire import DecodeError, hash256, hash_to_hex
from btcpay.proofs.verify import NODE_BYTES, Branch, Evidence, require
from btcpay.values.errors import ProofFailed
from btcpay.values.money import MAX_MONEY_SATS
from btcpay.values.times import from_unix_s


@dataclass(frozen=True)
class ProvenBlock:
    """A block that its header proves; `hash` in reversed hex, `mined_at` as its header says.

    `contents`: the block as it was read; `rows`: its Merkle tree, from the ids up.
    """

    hash: str
    mined_at: datetime
    contents: BlockContents
    rows: Sequence[Sequence[bytes]]

    def txid(self, position: int) -> str:
        """The id of the transaction at `position`, in reversed hex; position 0 is the coinbase."""
        return hash_to_hex(self.contents.txids[position])

    def evidence(self, position: int) -> Evidence:
        """The proof of the transaction at `position`, with this block's header alone.

        `verify.prove` refuses the evidence of a transaction of 64 bytes, which a block may have.
        None of these pays us: a transaction with an output of ours has at least 82.
        """
        payment = self._branch(position)
        coinbase = self._branch(0)
        return Evidence(payment, coinbase, [self.contents.header])

    def _branch(self, position: int) -> Branch:
        raw_tx = self.contents.tx_without_witness(position)
        siblings = [hash_to_hex(node) for node in merkle_branch(self.rows, position)]
        return Branch(raw_tx, position, siblings)


def prove_block(raw: bytes, hash: str) -> ProvenBlock:
    """Checks that `raw` is the whole block of this hash. Raises ProofFailed with the first flaw.

    The caller has proven that a header of this hash exists, and its work.

    1. It begins with the header, and its transactions decode, up to its last byte.
    2. Their ids, in this order, lead to the root in the header. The last ones are not repeated,
       which would lead to the same root (CVE-2012-2459).
    3. The first, and no other, is a coinbase, and is not 64 bytes long. Inner nodes of the tree
       could pose as transactions of 64 bytes (CVE-2017-12842). Checking the first one is enough: it
       would be a node too, and no node can be made to begin like a coinbase.
    4. No output pays more than there is. On a test network anybody may mine such a block.
    """
    raw_header = raw[:HEADER_BYTES]
    is_header = hash_to_hex(hash256(raw_header)) == hash
    require(is_header, "the block has another header")
    try:
        header = parse_header(raw_header)
        contents = scan_block(raw)
    except DecodeError as error:
        raise ProofFailed(f"the block does not decode: {error}") from error
    rows = merkle_rows(contents.txids)
    is_root = hash_to_hex(rows[-1][0]) == header.merkle_root
    require(is_root, "the block's transactions do not lead to the header's root")
    require(not is_mutated(rows), "the block's last transactions are duplicated")
    _check_coinbase(contents)
    amounts_sats = [
        sats
        for outputs in contents.outputs_by_script.values()
        for _, _, sats in outputs
    ]
    is_possible = max(amounts_sats, default=0) <= MAX_MONEY_SATS
    require(is_possible, "the block pays more than there is")
    return ProvenBlock(hash, from_unix_s(header.time), contents, rows)


def _check_coinbase(contents: BlockContents) -> None:
    """Raises ProofFailed unless the first transaction, and no other, is a coinbase."""
    first = contents.tx_without_witness(0)
    # One input, which spends nothing.
    is_coinbase = first[4:41] == b"\x01" + NULL_OUTPOINT
    require(is_coinbase, "the block's first transaction is not a coinbase")
    require(len(first) != NODE_BYTES, "the coinbase is as long as a Merkle node")
    is_alone = NULL_OUTPOINT not in contents.spent_outpoints
    require(is_alone, "the block has a second coinbase")

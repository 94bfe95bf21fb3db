"""Verifies a complete block against its hash, so that all its payments are proven.

Witnesses are not verified, since txids and payments do not depend on them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from btcpay.bitcoin.block import NULL_OUTPOINT, BlockContents, scan_block
from btcpay.bitcoin.header import HEADER_BYTES, parse_header
from btcpay.bitcoin.merkle import is_mutated, merkle_branch, merkle_rows
from btcpay.bitcoin.wire import DecodeError, hash256, hash_to_hex
from btcpay.proofs.verify import NODE_BYTES, Branch, Evidence, require
from btcpay.values.errors import ProofFailed
from btcpay.values.money import MAX_MONEY_SATS
from btcpay.values.times import from_unix_s


@dataclass(frozen=True)
class ProvenBlock:
    """A complete block whose transactions are verified against its header.

    `hash`: the block hash in reversed hex.
    `mined_at`: the time in the header.
    `contents`: the parsed block.
    `rows`: the rows of its Merkle tree, from the txids to the root.
    """

    hash: str
    mined_at: datetime
    contents: BlockContents
    rows: Sequence[Sequence[bytes]]

    def txid(self, position: int) -> str:
        """Returns the txid at `position` of the block, in reversed hex.

        Position 0 is the coinbase.
        """
        return hash_to_hex(self.contents.txids[position])

    def evidence(self, position: int) -> Evidence:
        """Returns the proof of the transaction at `position`, with one confirmation.

        The block may contain transactions of 64 bytes, which `verify.prove` rejects.
        None of them pays us, since a transaction with one of our scripts has at least
        82 bytes.
        """
        payment = self._branch(position)
        coinbase = self._branch(0)
        return Evidence(payment, coinbase, [self.contents.header])

    def _branch(self, position: int) -> Branch:
        raw_tx = self.contents.tx_without_witness(position)
        siblings = [hash_to_hex(node) for node in merkle_branch(self.rows, position)]
        return Branch(raw_tx, position, siblings)


def prove_block(raw: bytes, hash: str) -> ProvenBlock:
    """Verifies that `raw` is the complete block with this hash, and parses it.

    The caller must have verified the work of the header with this hash. Raises
    ProofFailed with the first failure.

    1. The block starts with this header, and its transactions decode without surplus
       bytes.
    2. The txids lead to the Merkle root in the header. The last txids are not repeated:
       a repetition would not change the root (CVE-2012-2459).
    3. Only the first transaction is a coinbase, and it is not 64 bytes long. Otherwise a
       source could present the inner nodes of the Merkle tree, which have 64 bytes, as
       transactions (CVE-2017-12842). Then the first transaction would be an inner node
       too. So it is enough to check this one: nobody can make a node that starts like a
       coinbase.
    4. No output pays more than 21 million bitcoin to an address. On a test network
       anybody can mine a block with such an output.
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
    _check_amounts(contents)
    return ProvenBlock(hash, from_unix_s(header.time), contents, rows)


def _check_coinbase(contents: BlockContents) -> None:
    """Raises ProofFailed if the first transaction is not the block's only coinbase.

    Also raises ProofFailed if the coinbase is as long as a Merkle node.
    """
    first = contents.tx_without_witness(0)
    # The bytes after the version: one input, with the null outpoint.
    is_coinbase = first[4:41] == b"\x01" + NULL_OUTPOINT
    require(is_coinbase, "the block's first transaction is not a coinbase")
    require(len(first) != NODE_BYTES, "the coinbase is as long as a Merkle node")
    is_alone = NULL_OUTPOINT not in contents.spent_outpoints
    require(is_alone, "the block has a second coinbase")


def _check_amounts(contents: BlockContents) -> None:
    """Raises ProofFailed if an output pays more than 21 million bitcoin to an address."""
    for outputs in contents.outputs_by_script.values():
        for _position, _vout, amount_sats in outputs:
            if amount_sats > MAX_MONEY_SATS:
                raise ProofFailed("the block pays more than there is")

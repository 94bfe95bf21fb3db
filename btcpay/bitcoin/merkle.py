"""Merkle trees as Bitcoin builds them: the last node of an odd row is paired with itself."""

from collections.abc import Sequence
from operator import eq

from btcpay.bitcoin.wire import hash256


def merkle_rows(leaves: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Every row of the tree over 32-byte leaves, at least one, from the leaves up to the root."""
    rows = [leaves]
    while len(row := rows[-1]) > 1:
        paired = [*row, row[-1]] if len(row) % 2 else row
        pairs = zip(paired[::2], paired[1::2], strict=True)
        rows.append([hash256(left + right) for left, right in pairs])
    return rows


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """The root over 32-byte leaves in their order; at least one leaf."""
    return merkle_rows(leaves)[-1][0]


def merkle_branch(rows: Sequence[Sequence[bytes]], position: int) -> list[bytes]:
    """The siblings of the leaf at `position`, from the leaves up; empty for a single leaf."""
    return [row[min(position >> level ^ 1, len(row) - 1)] for level, row in enumerate(rows[:-1])]


def has_twins(rows: Sequence[Sequence[bytes]]) -> bool:
    """True where two neighbours that are hashed together are equal, in any row.

    A block whose last transactions are repeated has such a tree, and the same root (CVE-2012-2459).
    """
    return any(any(map(eq, row[::2], row[1::2])) for row in rows)


def root_above(leaf: bytes, branch: Sequence[bytes], position: int) -> bytes:
    """The root that a leaf at `position` has with these siblings, given from the leaves up."""
    node = leaf
    for level, sibling in enumerate(branch):
        right = position >> level & 1
        node = hash256(sibling + node if right else node + sibling)
    return node

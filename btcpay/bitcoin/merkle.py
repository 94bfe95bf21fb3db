"""Merkle trees of transactions."""

from collections.abc import Sequence
from operator import eq

from btcpay.bitcoin.wire import hash256


def merkle_rows(leaves: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Returns all rows of the Merkle tree over 32-byte leaves, from the leaves to the root.

    There must be at least one leaf. If a row has an odd number of nodes, its last node
    is hashed with itself, but appears only once in the returned row.
    """
    row = leaves
    rows = [row]
    while len(row) > 1:
        if len(row) % 2:
            row = [*row, row[-1]]
        pairs = zip(row[::2], row[1::2], strict=True)
        row = [hash256(left + right) for left, right in pairs]
        rows.append(row)
    return rows


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """Returns the Merkle root over 32-byte leaves in their order.

    There must be at least one leaf.
    """
    return merkle_rows(leaves)[-1][0]


def merkle_branch(rows: Sequence[Sequence[bytes]], position: int) -> list[bytes]:
    """Returns the siblings on the path from the leaf at `position` to the root.

    `rows` is the result of `merkle_rows`. The list starts with the leaf's sibling. The
    list is empty if the tree has only one leaf.
    """
    branch = []
    for row in rows[:-1]:
        sibling = position ^ 1
        last = len(row) - 1
        # A last node without a sibling is hashed with itself.
        branch.append(row[min(sibling, last)])
        position = position >> 1
    return branch


def is_mutated(rows: Sequence[Sequence[bytes]]) -> bool:
    """True if two sibling nodes are equal in any row (CVE-2012-2459).

    `rows` is the result of `merkle_rows`. A block whose last transactions are repeated
    has equal siblings, and the same root as the original block.
    """
    return any(any(map(eq, row[::2], row[1::2])) for row in rows)


def merkle_root_from_branch(
    leaf: bytes,
    branch: Sequence[bytes],
    position: int,
) -> bytes:
    """Returns the Merkle root that follows from a leaf and its branch.

    `branch` contains the siblings on the path to the root, the leaf's sibling first.
    """
    node = leaf
    for sibling in branch:
        is_right = position & 1
        if is_right:
            node = hash256(sibling + node)
        else:
            node = hash256(node + sibling)
        position = position >> 1
    return node

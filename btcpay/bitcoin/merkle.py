"""Merkle trees as Bitcoin builds them: the last node of an odd row is paired with itself."""

from collections.abc import Sequence

from btcpay.bitcoin.wire import hash256


def merkle_root(leaves: list[bytes]) -> bytes:
    """The root over 32-byte leaves in their order; at least one leaf."""
    row = leaves
    while len(row) > 1:
        row = _parents(row)
    return row[0]


def merkle_branch(leaves: list[bytes], position: int) -> list[bytes]:
    """The siblings of the leaf at `position`, from the leaves up; empty for a single leaf."""
    branch, row = [], leaves
    while len(row) > 1:
        branch.append(row[min(position ^ 1, len(row) - 1)])
        row, position = _parents(row), position // 2
    return branch


def _parents(row: list[bytes]) -> list[bytes]:
    paired = row + row[-1:] if len(row) % 2 else row
    return [hash256(paired[i] + paired[i + 1]) for i in range(0, len(paired), 2)]


def root_above(leaf: bytes, branch: Sequence[bytes], position: int) -> bytes:
    """The root that a leaf at `position` has with these siblings, given from the leaves up."""
    node = leaf
    for level, sibling in enumerate(branch):
        right = position >> level & 1
        node = hash256(sibling + node if right else node + sibling)
    return node

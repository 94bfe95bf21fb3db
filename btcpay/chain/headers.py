"""Verifies chains of headers by the consensus rules. Pure."""

from collections.abc import Callable, Iterable

from btcpay.bitcoin.header import Header, required_bits
from btcpay.proofs.verify import check_header
from btcpay.values.errors import ProofFailed
from btcpay.values.networks import Network

# Returns the header at a height of the chain. It is called once for each 2016 blocks.
HeaderAt = Callable[[int], Header]


def check_headers(
    network: Network,
    raws: Iterable[bytes],
    last: Header,
    height: int,
    header_at: HeaderAt,
) -> list[Header]:
    """Parses and verifies consecutive headers.

    `last` is the header before the first one, and `height` the height of `last`.
    `header_at` returns an earlier header of the chain by its height.

    Each header must refer to the one before it and have the work that it claims. On a
    network with difficulty rules its target must be the required one. Timestamps are
    not verified. Raises ProofFailed if a header breaks one of these rules.
    """
    headers = []
    for raw in raws:
        height += 1
        header = check_header(raw, network.max_target_bits)
        if header.previous != last.hash:
            raise ProofFailed(f"header {height} does not follow the one before it")
        # On a test network work is cheap, so the target is not checked.
        if network.pow_limit_bits is not None:
            bits = required_bits(height, last, header_at, network.pow_limit_bits)
            if header.bits != bits:
                raise ProofFailed(
                    f"header {height} has another target than consensus asks for"
                )
        headers.append(header)
        last = header
    return headers


def work_of(headers: Iterable[Header]) -> int:
    return sum(header.work for header in headers)

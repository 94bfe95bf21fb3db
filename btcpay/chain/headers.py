"""Checks of headers that are to follow ours: links, work and difficulty. Pure."""

from collections.abc import Callable, Iterable, Sequence

from btcpay.bitcoin.header import Header, parse_header, target_of
from btcpay.bitcoin.wire import Malformed
from btcpay.proofs.difficulty import RETARGET_INTERVAL, required_bits
from btcpay.values.errors import ProofFailed
from btcpay.values.networks import Network

# The header at a height of the chain that is being followed; asked for once in a fortnight of it.
Lookup = Callable[[int], Header]


def check_headers(
    network: Network, raws: Iterable[bytes], last: Header, height: int, period_first: Lookup
) -> list[Header]:
    """The headers in `raws`; the first is to follow `last`, at `height`. Raises ProofFailed."""
    headers = []
    for raw in raws:
        height += 1
        header = check_header(network, raw)
        if header.previous != last.hash:
            raise ProofFailed(f"header {height} does not follow the one before it")
        if network.pow_limit_bits is not None:  # on a test network work is cheap, of any target
            begins = height - RETARGET_INTERVAL
            first = period_first(begins) if height % RETARGET_INTERVAL == 0 else None
            needed = required_bits(height, last, first, network.pow_limit_bits)
            if header.bits != needed:
                raise ProofFailed(f"header {height} has another target than consensus asks for")
        headers.append(header)
        last = header
    return headers


def check_header(network: Network, raw: bytes) -> Header:
    """The header, checked by itself: it has its work, and is as hard as its network demands."""
    try:
        header = parse_header(raw)
    except Malformed as error:
        raise ProofFailed(f"the header does not decode: {error}") from error
    if header.target > target_of(network.max_target_bits):
        raise ProofFailed("a header claims too little difficulty")
    if not header.has_work:
        raise ProofFailed("a header lacks the work that it claims")
    return header


def work_of(headers: Sequence[Header]) -> int:
    return sum(header.work for header in headers)

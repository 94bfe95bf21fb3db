"""Which headers may follow ours: linked, with work, of the difficulty that is asked for. Pure.

On mainnet each header has exactly the target that Bitcoin Core asks of it. On a test network it
has the work that it claims, which anybody can do.
"""

from collections.abc import Callable, Sequence

from btcpay.bitcoin.header import Header, parse_header, target_of
from btcpay.bitcoin.wire import Malformed
from btcpay.proofs.difficulty import RETARGET_INTERVAL, required_bits
from btcpay.values.errors import ProofFailed
from btcpay.values.networks import Network

# The header at a height of the chain that is being followed, of which it needs one in a fortnight.
Lookup = Callable[[int], Header]


def check_headers(
    network: Network, raws: Sequence[bytes], last: Header, height: int, period_first: Lookup
) -> list[Header]:
    """The headers in `raws`, the first of which is to follow `last`, which is at `height`.

    `period_first` answers the header at the height that a retarget begins from. Raises ProofFailed.
    """
    headers = []
    for raw in raws:
        height += 1
        header = check_header(network, raw)
        if header.previous != last.hash:
            raise ProofFailed(f"header {height} does not follow the one before it")
        if network.pow_limit_bits is not None:
            first = None
            if height % RETARGET_INTERVAL == 0:
                first = period_first(height - RETARGET_INTERVAL)
            needed = required_bits(height, last, first, network.pow_limit_bits)
            if header.bits != needed:
                raise ProofFailed(f"header {height} has another target than consensus asks for")
        headers.append(header)
        last = header
    return headers


def check_header(network: Network, raw: bytes) -> Header:
    """A header by itself: with its work, and not easier than its network allows."""
    try:
        header = parse_header(raw)
    except Malformed as error:
        raise ProofFailed(f"the header does not decode: {error}") from error
    if header.target > target_of(network.max_target_bits):
        raise ProofFailed("a header claims too little difficulty")
    if not header.has_work:
        raise ProofFailed("a header has not the work that it claims")
    return header


def work_of(headers: Sequence[Header]) -> int:
    """The work that was done on them, as Bitcoin Core counts it."""
    return sum(header.work for header in headers)

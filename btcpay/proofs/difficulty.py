"""The difficulty that mainnet's consensus prescribes for a block: a new one every two weeks."""

from btcpay.bitcoin.header import Header, bits_of, target_of

RETARGET_INTERVAL = 2016  # blocks
_PERIOD_S = 14 * 24 * 60 * 60  # the time that these blocks should take


def required_bits(
    height: int, last: Header, period_first: Header | None, max_target_bits_of_consensus: int
) -> int:
    """The compact target that the block at `height` on top of `last` must have, on mainnet.

    `period_first`: the header at `height` - 2016, needed where `height` is a multiple of 2016.
    `max_target_bits_of_consensus`: mainnet's powLimit, 0x1d00ffff; not the easiest target that we
    accept in a proof. Source: Bitcoin Core's CalculateNextWorkRequired. Raises ValueError when a
    header is missing.
    """
    if height % RETARGET_INTERVAL:
        return last.bits
    if period_first is None:
        raise ValueError(f"block {height} needs the header at {height - RETARGET_INTERVAL}")
    # Consensus measures one block too few: from the first block's time, not its predecessor's.
    took_s = last.time - period_first.time
    took_s = min(max(took_s, _PERIOD_S // 4), _PERIOD_S * 4)
    target = last.target * took_s // _PERIOD_S
    return bits_of(min(target, target_of(max_target_bits_of_consensus)))

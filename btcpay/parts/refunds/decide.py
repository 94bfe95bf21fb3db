"""Decides which outputs in the chain are the merchant's payments of which refunds.

Each decision is about the refunds to one address. All functions compute their result
from their arguments alone.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from btcpay.parts.refunds.models import Refund, RefundOutput

# A week of blocks. A second payment of a refund is noticed if its block is within this
# distance of the first payment's block.
WATCHED_BLOCKS = 1008
# For each sum, the maximum number of outputs of one block that are stored although no
# refund of exactly that sum needs them. Further outputs are not the merchant's, who pays
# about this sum once, or a few times by mistake. Anybody can pay to a public address.
MOST_UNUSED = 5
# The height that `keep_blocks` stores when the stored chain is deleted.
KEPT_HEIGHT = 0
_IN_CHAIN = attrgetter("block_height", "position", "vout", "txid")
# An output of a block: the transaction's position in the block, the vout, the satoshis.
Paid = tuple[int, int, int]


class Decision(NamedTuple):
    """The result of a decision about the refunds to one address.

    - `sent`: the output that sends each sent refund, by the refund's id.
    - `repeated`: the id of the refund that an output seems to send a second time, by
      the output.
    """

    sent: dict[str, RefundOutput]
    repeated: dict[RefundOutput, str]


def worth_keeping(sums_sats: Iterable[int], outputs: Sequence[Paid]) -> list[Paid]:
    """Selects from a block's outputs to one script those that refunds may need.

    `sums_sats` has the sum of each refund to this script. The result is in block order.
    It contains, for each sum:

    1. one output per refund of exactly this sum, and up to MOST_UNUSED more outputs of
       this sum, which may be repeated payments;
    2. up to MOST_UNUSED outputs with the nearest lower sums, and as many with the
       nearest higher sums, since the merchant may name one of them as the refund.
    """
    by_sats = sorted(outputs, key=_sats_of)
    sats = [_sats_of(output) for output in by_sats]
    selection: set[Paid] = set()
    for sum_sats, refund_count in Counter(sums_sats).items():
        start = bisect_left(sats, sum_sats)
        end = bisect_right(sats, sum_sats)
        exact = by_sats[start:end]
        nearest_lower = by_sats[max(0, start - MOST_UNUSED) : start]
        nearest_higher = by_sats[end : end + MOST_UNUSED]
        selection.update(exact[: refund_count + MOST_UNUSED])
        selection.update(nearest_lower)
        selection.update(nearest_higher)
    return sorted(selection)


def _sats_of(output: Paid) -> int:
    _position, _vout, sats = output
    return sats


def decide(refunds: Sequence[Refund], outputs: Iterable[RefundOutput]) -> Decision:
    """Decides which outputs send which of the refunds to one address.

    `refunds` are sorted oldest first. `outputs` are the stored outputs to the address,
    all of them in blocks.

    1. If the merchant has named an output for a refund, this output sends the refund as
       soon as a block contains the output.
    2. The other outputs are processed in chain order. Each output sends the oldest
       refund of exactly its sum that is not sent yet. Its block must be above
       `above_height`, the height of the tip when the payer gave the address.
    3. An output to which neither rule applies seems to send a refund a second time if
       its sum is exactly that of a refund that another output sends, and its block is at
       most a week of blocks above that other output's block.
    4. Outputs to which no rule applies count only if the merchant names them.
    """
    in_order = sorted(outputs, key=_IN_CHAIN)
    outputs_by_refund = _outputs_named(refunds, in_order)
    named_outputs = set(outputs_by_refund.values())
    unused: list[RefundOutput] = []
    for output in in_order:
        if output in named_outputs:
            continue
        same_sum = _refunds_of_sum(refunds, output)
        waiting = [row for row in same_sum if row.id not in outputs_by_refund]
        if waiting:
            oldest = waiting[0]
            outputs_by_refund[oldest.id] = output
        else:
            unused.append(output)
    # Only now is it known which output sends each refund, as rule 3 requires.
    repeated: dict[RefundOutput, str] = {}
    for output in unused:
        refund_id = _id_of_repeated(refunds, output, outputs_by_refund)
        if refund_id:
            repeated[output] = refund_id
    return Decision(outputs_by_refund, repeated)


def _outputs_named(
    refunds: Sequence[Refund],
    outputs: Iterable[RefundOutput],
) -> dict[str, RefundOutput]:
    """Returns the outputs that the merchant has named, by the refund's id.

    After the stored chain was deleted and built anew, the output that sent a refund
    before counts as named until a block of the new chain contains it.
    """
    by_outpoint = {(output.txid, output.vout): output for output in outputs}
    outputs_by_refund: dict[str, RefundOutput] = {}
    for refund in refunds:
        named = by_outpoint.get((refund.named_txid or "", refund.named_vout or 0))
        previous = by_outpoint.get((refund.tx_hash or "", refund.vout or 0))
        if named:
            outputs_by_refund[refund.id] = named
        elif previous and previous.block_height == KEPT_HEIGHT:
            outputs_by_refund[refund.id] = previous
    return outputs_by_refund


def _refunds_of_sum(refunds: Sequence[Refund], output: RefundOutput) -> list[Refund]:
    """Returns the refunds of exactly the output's sum, which the output may send.

    Their addresses were given before the output's block was known.
    """
    matching = []
    for refund in refunds:
        is_later = output.block_height > (refund.above_height or 0)
        is_same_sum = output.amount_sats == refund.amount_sats
        if is_later and is_same_sum:
            matching.append(refund)
    return matching


def _id_of_repeated(
    refunds: Sequence[Refund],
    output: RefundOutput,
    outputs_by_refund: dict[str, RefundOutput],
) -> str | None:
    """Returns the id of the refund that `output` seems to send a second time.

    It is a refund of exactly this sum that another output sends. The block of `output`
    is at most WATCHED_BLOCKS above the block of that other output. Returns None if
    there is no such refund.
    """
    for refund in _refunds_of_sum(refunds, output):
        first = outputs_by_refund.get(refund.id)
        if first and output.block_height <= first.block_height + WATCHED_BLOCKS:
            return refund.id
    return None

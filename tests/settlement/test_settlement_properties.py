"""Properties of all facts: the order of arrival does not matter, and no satoshi counts twice."""

from dataclasses import replace
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from test_settlement_life import CREATED, TIP, Life, at

from btcpay.settlement.decide import decide, is_deep, required_sats
from btcpay.settlement.merge import merge
from btcpay.settlement.values import Block, Invoice, Output, Rules, Scan, SeenOutput

DEADLINE = at(60)
NOW = at(95)


def block_at(height):
    """One block for a height; ten minutes apart, the tip an hour and a half after creation."""
    return Block(height, f"block{height}", at(90 - 10 * (TIP - height)))


@st.composite
def facts(draw):
    """Outputs of up to five transactions; those of one transaction share their fate."""
    outputs: list[Output] = []
    for position, txid in enumerate(
        draw(st.lists(st.sampled_from("abcde"), unique=True))
    ):
        height = draw(st.none() | st.integers(TIP - 9, TIP + 1))
        credited = height is not None and height <= TIP and draw(st.booleans())
        vanished = height is None and draw(st.booleans())
        whole = Output(
            txid=txid,
            vout=0,
            amount_sats=1,
            first_seen_at=at(draw(st.integers(0, 95))),
            block=None if height is None else block_at(height),
            position=None if height is None else position,
            spent_height=draw(st.none() | st.just(TIP)) if height else None,
            vanished_at=at(draw(st.integers(0, 95))) if vanished else None,
            replaced_height=draw(st.none() | st.just(TIP)) if vanished else None,
            credited=credited,
            settles=credited and draw(st.booleans()),
        )
        for vout in range(draw(st.integers(1, 3))):
            sats = draw(st.integers(1, 1_000))
            outputs.append(replace(whole, vout=vout, amount_sats=sats))
    return outputs


invoices = st.builds(
    Invoice,
    id=st.just("inv"),
    status=st.sampled_from(["open", "paid", "expired", "canceled"]),
    amount_sats=st.integers(1, 2_000),
    created_at=st.just(CREATED),
    expires_at=st.none() | st.just(DEADLINE),
)
rules = st.builds(
    Rules,
    confirmations=st.integers(1, 6),
    tolerance_percent=st.sampled_from([Decimal(0), Decimal("0.5"), Decimal(5)]),
)
ends = st.none() | st.integers(0, 95).map(at)


@given(invoices, facts(), rules, ends, st.randoms(use_true_random=False))
def test_the_order_in_which_parts_are_told_does_not_matter(
    invoice, outputs, asked, end, random
):
    shuffled = list(outputs)
    random.shuffle(shuffled)
    told = decide(invoice, outputs, TIP, end, asked, NOW)
    assert decide(invoice, shuffled, TIP, end, asked, NOW) == told


@given(invoices, facts(), rules, ends)
def test_sums_add_up_and_no_satoshi_counts_twice(invoice, outputs, asked, end):
    verdict = decide(invoice, outputs, TIP, end, asked, NOW)
    alive_sats = sum(output.amount_sats for output in outputs if not output.vanished_at)
    assert 0 <= verdict.unconfirmed_sats <= verdict.received_sats <= alive_sats
    needed = required_sats(invoice.amount_sats, asked.tolerance_percent)
    enough = verdict.status == "paid" or verdict.received_sats >= needed
    assert verdict.missing_sats == (
        0 if enough else invoice.amount_sats - verdict.received_sats
    )
    deep_sats = sum(
        output.amount_sats
        for output in outputs
        if output.credited or (output.block and is_deep(output, TIP, asked))
    )
    receipts = verdict.receipts
    assert sum(receipt.amount_sats for receipt in receipts) == deep_sats
    assert len({receipt.txid for receipt in receipts}) == len(receipts)
    assert all(invoice.created_at <= receipt.received_at <= NOW for receipt in receipts)


@given(invoices, facts(), rules, ends)
def test_only_an_open_invoice_changes_and_only_a_paid_one_has_receipts_of_its_own(
    invoice, outputs, asked, end
):
    verdict = decide(invoice, outputs, TIP, end, asked, NOW)
    assert invoice.status == "open" or verdict.status == invoice.status
    assert verdict.status == "paid" or not any(
        receipt.settles for receipt in verdict.receipts
    )


@given(invoices, facts(), rules, ends)
def test_an_open_invoice_is_paid_exactly_when_enough_came_in_time_and_deep(
    invoice, outputs, asked, end
):
    invoice = replace(invoice, status="open")
    verdict = decide(invoice, outputs, TIP, end, asked, NOW)
    needed = required_sats(invoice.amount_sats, asked.tolerance_percent)
    settled_sats = sum(r.amount_sats for r in verdict.receipts if r.settles)
    assert (verdict.status == "paid") == (
        verdict.received_sats - verdict.unconfirmed_sats >= needed
    )
    assert (verdict.status == "paid") == (verdict.tx_hash is not None)
    if verdict.status == "paid":
        last = [r for r in verdict.receipts if r.settles][-1]
        assert last.txid == verdict.tx_hash
        assert settled_sats >= needed > settled_sats - last.amount_sats


# Of news that comes, in whatever order.


@st.composite
def chains(draw):
    """Three blocks with up to four transactions: payments, spends, replacements."""
    news: dict[int, Scan] = {}
    for height in (998, 999, 1000):
        news[height] = Scan(block_at(height).mined_at, TIP, spent={}, replaced={})
    for position, txid in enumerate(
        draw(st.lists(st.sampled_from("abcd"), unique=True))
    ):
        height = draw(st.integers(998, 1000))
        if draw(st.booleans()):
            news[height].replaced[txid] = height  # type: ignore[index]
            continue
        for vout in range(draw(st.integers(1, 2))):
            sats = draw(st.integers(1, 1_000))
            paid = SeenOutput(txid, vout, sats, block_at(height), position)
            confirmed = [*news[height].confirmed, paid]
            news[height] = replace(news[height], confirmed=confirmed)
            spent_height = draw(st.none() | st.integers(height, 1000))
            if spent_height:
                news[spent_height].spent[txid, vout] = spent_height  # type: ignore[index]
    return list(news.values())


@st.composite
def looks(draw):
    """Looks at a mempool, whatever the blocks say: even with invented outputs, or other sums.

    It sees nothing in time but at once, and nothing expires by it.
    """
    shown = [
        SeenOutput(txid, draw(st.integers(0, 1)), draw(st.integers(1, 1_000)))
        for txid in draw(st.lists(st.sampled_from("abcde"), unique=True))
    ]
    asked_at = at(draw(st.integers(1, 59)))
    return Scan(asked_at, TIP, waiting=shown, absent_is_gone=draw(st.booleans()))


def in_blocks(outputs):
    """The outputs that blocks have proven."""
    return {
        one.outpoint: (one.amount_sats, one.block, one.position, one.spent_height)
        for one in outputs
        if one.block
    }


def merged(known, scans):
    outputs = list(known)
    for scan in scans:
        outputs = merge(outputs, scan, NOW)
    return outputs


def spends_after_payments(scans):
    """As blocks are read: one that spends a coin is read again once the coin is known."""
    return [*scans, *(Scan(NOW, TIP, spent=scan.spent) for scan in scans)]


@given(chains(), st.lists(looks(), max_size=4), st.randoms(use_true_random=False))
def test_in_whatever_order_blocks_and_looks_come_the_same_is_proven(
    chain, seen, random
):
    mixed = [*chain, *seen]
    random.shuffle(mixed)
    assert in_blocks(merged([], spends_after_payments(mixed))) == in_blocks(
        merged([], chain)
    )


@given(facts(), chains(), st.lists(looks(), max_size=3))
def test_the_same_news_twice_is_no_news(known, chain, seen):
    for scan in [*chain, *seen]:
        once = merge(known, scan, NOW)
        assert merge(once, scan, NOW) == once
        known = once


@given(facts(), st.one_of(looks(), chains().map(lambda scans: scans[0])))
def test_nothing_that_was_known_is_forgotten_and_nothing_is_seen_later(known, scan):
    after = {one.outpoint: one for one in merge(known, scan, NOW)}
    for before in known:
        assert after[before.outpoint].first_seen_at <= before.first_seen_at
    told = {one.outpoint for one in (*scan.confirmed, *(scan.waiting or ()))}
    assert after.keys() == {one.outpoint for one in known} | told


@given(
    invoices,
    rules,
    chains(),
    st.lists(looks(), max_size=4),
    st.randoms(use_true_random=False),
)
def test_in_whatever_order_they_come_the_same_is_paid(
    invoice, asked, chain, seen, random
):
    """Of two payments that are each enough, the one that is read first completes the sum."""
    invoice = replace(invoice, status="open")
    mixed = [*chain, *seen]
    random.shuffle(mixed)
    one = paid_after(invoice, asked, [*chain, *seen])
    assert paid_after(invoice, asked, mixed) == one


def paid_after(invoice, asked, scans):
    """The status, and every payment that was made, when all of it was settled one by one."""
    life = Life(asked, invoice)
    for scan in scans:
        life.settle(scan, NOW)
    assert len(life.made) == len(set(life.made))
    return life.invoice.status, sorted(life.made)

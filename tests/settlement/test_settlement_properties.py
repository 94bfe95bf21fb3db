"""What holds for all facts: the order of arrival does not matter, and no satoshi counts twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from btcpay.settlement.decide import decide, required_sats
from btcpay.settlement.values import Block, Invoice, Output, Rules

CREATED = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
TIP = 1000
DEADLINE = CREATED + timedelta(minutes=60)
STATUSES = ("open", "paid", "expired", "canceled")


def block_at(height: int) -> Block:
    """One block for a height; ten minutes apart, the tip an hour and a half after creation."""
    return Block(height, f"block{height}", CREATED + timedelta(minutes=90 - 10 * (TIP - height)))


@st.composite
def facts(draw: st.DrawFn) -> list[Output]:
    """Outputs of up to five transactions; those of one transaction share their fate."""
    outputs: list[Output] = []
    for txid in draw(st.lists(st.sampled_from("abcde"), unique=True, max_size=5)):
        height = draw(st.none() | st.integers(TIP - 9, TIP + 1))
        seen = CREATED + timedelta(minutes=draw(st.integers(0, 95)))
        credited = height is not None and height <= TIP and draw(st.booleans())
        whole = Output(
            txid=txid,
            vout=0,
            amount_sats=1,
            first_seen_at=seen,
            block=None if height is None else block_at(height),
            spent_height=draw(st.none() | st.just(TIP)),
            vanished=height is None and draw(st.booleans()),
            doubted=height is not None and not credited and draw(st.booleans()),
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
    status=st.sampled_from(STATUSES),
    amount_sats=st.integers(1, 2_000),
    created_at=st.just(CREATED),
    expires_at=st.none() | st.just(DEADLINE),
)
rules = st.builds(
    Rules,
    confirmations=st.integers(1, 6),
    tolerance_percent=st.sampled_from([Decimal(0), Decimal("0.5"), Decimal(5)]),
)
looks = st.none() | st.integers(0, 95).map(lambda minute: CREATED + timedelta(minutes=minute))
NOW = CREATED + timedelta(minutes=95)


@given(invoices, facts(), rules, looks, st.randoms(use_true_random=False))
def test_the_order_in_which_parts_are_told_does_not_matter(invoice, outputs, asked, looked, random):
    shuffled = list(outputs)
    random.shuffle(shuffled)
    told = decide(invoice, outputs, TIP, looked, asked, NOW)
    assert decide(invoice, shuffled, TIP, looked, asked, NOW) == told


@given(invoices, facts(), rules, looks)
def test_receipts_sum_to_the_deep_living_outputs_and_no_satoshi_counts_twice(
    invoice, outputs, asked, looked
):
    receipts = decide(invoice, outputs, TIP, looked, asked, NOW).receipts
    deep_sats = sum(
        output.amount_sats
        for output in outputs
        if output.credited
        or (
            output.block
            and not output.doubted
            and TIP - output.block.height + 1 >= asked.confirmations
        )
    )
    assert sum(receipt.amount_sats for receipt in receipts) == deep_sats
    assert len({receipt.txid for receipt in receipts}) == len(receipts)


@given(invoices, facts(), rules, looks)
def test_receipts_carry_the_invoice_only_when_it_is_paid(invoice, outputs, asked, looked):
    verdict = decide(invoice, outputs, TIP, looked, asked, NOW)
    assert verdict.status == "paid" or not any(receipt.settles for receipt in verdict.receipts)


@given(invoices, facts(), rules, looks)
def test_an_open_invoice_is_paid_exactly_when_enough_came_in_time_and_deep(
    invoice, outputs, asked, looked
):
    invoice = replace(invoice, status="open")
    verdict = decide(invoice, outputs, TIP, looked, asked, NOW)
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


@given(invoices, facts(), rules, looks)
def test_only_an_open_invoice_changes_its_status(invoice, outputs, asked, looked):
    verdict = decide(invoice, outputs, TIP, looked, asked, NOW)
    assert invoice.status == "open" or verdict.status == invoice.status


@given(invoices, facts(), rules)
def test_without_a_look_after_the_deadline_nothing_expires(invoice, outputs, asked):
    invoice = replace(invoice, status="open", expires_at=DEADLINE)
    before = DEADLINE - timedelta(milliseconds=1)
    for looked in (None, before):
        assert decide(invoice, outputs, TIP, looked, asked, NOW).status != "expired"


@given(invoices, facts(), rules, looks)
def test_a_receipt_is_neither_before_the_creation_nor_after_now(invoice, outputs, asked, looked):
    for receipt in decide(invoice, outputs, TIP, looked, asked, NOW).receipts:
        assert invoice.created_at <= receipt.received_at <= NOW

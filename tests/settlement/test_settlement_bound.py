"""The bound on a mempool's sightings: it keeps the payer's payment, and everything in a block."""

import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_settlement_life import ASKED, TIP, Life, at

from btcpay.settlement.bound import MOST_KEPT, bound_outputs
from btcpay.settlement.values import Block, Output, Rules, Scan, SeenOutput

DUST = 330
PART = ASKED // MOST_KEPT
RULES = Rules(1, Decimal(0))
OURS = SeenOutput("ours", 0, ASKED)


def invented(count, sats, name="no", seed=0):
    some = [SeenOutput(f"{name}{number}", 0, sats + number) for number in range(count)]
    random.Random(seed).shuffle(some)
    return some


def looked(*looks):
    """After looks, a minute each, whose lists may be cut."""
    life = Life(RULES)
    for minute, shown in enumerate(looks):
        life.settle(
            Scan(
                at(minute),
                TIP,
                waiting=shown,
                absent_is_gone=True,
                is_cut=len(shown) >= 25,
            )
        )
    return life


def waiting(life):
    return {output.txid: output for output in life.known if not output.vanished_at}


LIES = {
    "much more than is asked for": 10 * ASKED,
    "a little more": ASKED + 1,
    "almost as much": ASKED - MOST_KEPT * 2,
    "what matters": PART,
    "dust": DUST,
}


@pytest.mark.parametrize("sats", LIES.values(), ids=LIES)
@pytest.mark.parametrize("place", [0, 1, 74, 147, 148])
def test_the_payers_output_among_148_is_kept_wherever_it_stands(sats, place):
    shown = invented(148, sats)
    shown.insert(place, OURS)
    kept = waiting(looked(shown))
    assert len(kept) == MOST_KEPT and "ours" in kept


@pytest.mark.parametrize("sats", [*LIES.values(), ASKED])
def test_what_is_invented_after_it_does_not_push_it_out(sats):
    looks = [[OURS, *invented(148, sats, f"of{look}-")] for look in range(1, 20)]
    kept = waiting(looked([OURS], *looks))
    assert len(kept) == MOST_KEPT and kept["ours"].first_seen_at == at(0)


def test_dust_that_filled_the_list_before_makes_room_for_it():
    dust = invented(148, DUST)
    life = looked(dust, dust, [*dust, OURS], [*dust, OURS])
    assert len(waiting(life)) == MOST_KEPT and waiting(life)[
        "ours"
    ].first_seen_at == at(2)


def test_parts_that_pay_the_invoice_are_kept_beside_dust():
    parts = [SeenOutput(f"part{number}", 0, PART) for number in range(MOST_KEPT)]
    kept = waiting(looked(invented(148, DUST), invented(148, DUST) + parts))
    assert sum(output.amount_sats for output in kept.values()) == ASKED


def test_of_what_vanished_lately_a_hundred_are_kept_and_the_payers_holds_the_end():
    whole = [invented(24 * 6, ASKED, f"of{look}-") for look in range(1, 58)]
    life = Life(RULES)
    for minute, shown in enumerate([[OURS], *whole]):
        life.settle(Scan(at(minute), TIP, waiting=shown, absent_is_gone=True))
    assert len(life.known) == 2 * MOST_KEPT
    assert "ours" in {output.txid for output in life.known if output.vanished_at}


outputs = st.lists(
    st.builds(
        Output,
        txid=st.integers(0, 10_000).map(str),
        vout=st.just(0),
        amount_sats=st.integers(1, 3 * ASKED),
        first_seen_at=st.integers(0, 60).map(at),
        vanished_at=st.none() | st.just(at(60)),
        block=st.none() | st.just(Block(TIP, "block", at(30))),
    ),
    unique_by=lambda output: output.txid,
    max_size=250,
)


@given(outputs, st.integers(1, 3 * ASKED))
def test_few_are_all_kept_and_of_many_enough_to_pay_where_there_is_enough(
    found, amount_sats
):
    kept = bound_outputs(found, amount_sats)
    for is_vanished in (False, True):
        seen = [
            one
            for one in found
            if not one.block and bool(one.vanished_at) == is_vanished
        ]
        left = [
            one
            for one in kept
            if not one.block and bool(one.vanished_at) == is_vanished
        ]
        assert len(left) == min(len(seen), MOST_KEPT)
        if len(seen) > MOST_KEPT and all(
            100 * one.amount_sats >= amount_sats for one in left
        ):
            assert sum(one.amount_sats for one in left) >= amount_sats
    assert [one for one in kept if one.block] == [one for one in found if one.block]
    assert bound_outputs(kept, amount_sats) == kept

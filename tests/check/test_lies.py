"""Lies about blocks: nothing wrong is stored, the second explorer is asked, the run says what was.

Each with and without an honest explorer behind the liar. What is proven is in tests/proofs; here it
is that nothing which is not proven comes into the database.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from btcpay.bitcoin.header import target_of
from btcpay.bitcoin.wire import ser_compact_size
from btcpay.chain.explorers import esplora
from btcpay.sandbox.node.block import BITS, Block
from storage.queries import blocks
from tests.support.builders import dump
from tests.support.fake_esplora import Reply, dropped, say, silent
from tests.support.rival import Rival


def paid_twice(till):
    """An invoice paid in a block of three transactions, whose header alone is known by now."""
    invoice = till.shop.invoice()
    other = till.shop.invoice()
    assert till.check().complete
    till.pay(invoice)
    till.pay(other)
    till.mine()
    till.liar.instead = about_raw(say("not now", 404))
    assert not till.check().complete
    return invoice, till.sandbox.chain.ledger.tip


def about_raw(reply):
    return lambda path: reply if path.endswith("/raw") else None


def raw_of(block, txs):
    return block.header + ser_compact_size(len(txs)) + b"".join(tx.raw for tx in txs)


def another(till, block):
    """A rival block at the same height, on the same parent, with work of its own."""
    return (
        Rival(till, till.sandbox.chain.ledger.height - 1)
        .add(1, block.txs[1:])
        .blocks[-1]
        .raw
    )


OTHER = "the block has another header"
DECODES_NOT = "does not decode"
NO_ROOT = "do not lead to the header's root"
# One of each kind: the others are in tests/proofs and tests/chain/explorers.
LIES: dict[str, tuple[Callable[[Block], bytes | Reply], str]] = {
    "a transaction less": (lambda block: raw_of(block, block.txs[:-1]), NO_ROOT),
    "half of it": (lambda block: block.raw[: len(block.raw) // 2], DECODES_NOT),
    "nothing": (lambda block: b"", OTHER),
    "too many bytes": (lambda block: block.raw.ljust(4_000_001, b"\0"),
        "answered more than 4000000 bytes"),
    "down": (lambda block: say(block.raw, 503), "answered HTTP 503"),
    "hung up": (lambda block: dropped, "could not be asked"),
}  # fmt: skip


def nothing_is_stored(till, reply, caplog):
    """The run's report, after which nothing is stored."""
    before = dump(till.shop)
    till.liar.instead = about_raw(reply)
    caplog.clear()
    report = till.check()
    assert not report.complete and report.chain_failed and report.blocks_behind == 1
    assert (
        report.blocks_read == 0
        and report.new_statuses == {}
        and dump(till.shop) == before
    )
    return caplog.text


def the_second_is_asked(till, invoice, caplog):
    """The report of a run with an honest explorer behind the liar."""
    caplog.clear()
    report = till.check(till.liar.root, till.liar.honest)
    assert (
        report.complete
        and report.blocks_read == 1
        and report.new_statuses[invoice["id"]] == "paid"
    )
    txids = {tx.txid for tx in till.sandbox.chain.ledger.tip.txs[1:]}
    assert {payment["tx_hash"] for payment in till.payments()} == txids
    return caplog.text


@pytest.mark.parametrize("name", [*LIES, "another block"])
def test_a_block_that_is_not_the_one_is_not_stored_and_the_next_explorer_has_it(
    till, name, caplog
):
    invoice, block = paid_twice(till)
    lie, why = LIES.get(name, (partial(another, till), OTHER))
    answer = lie(block)
    said = nothing_is_stored(till, answer if callable(answer) else say(answer), caplog)
    assert why in said and "could not follow the chain" in said
    assert why in the_second_is_asked(till, invoice, caplog)


def test_a_block_that_never_comes_is_not_waited_for_for_ever(
    till, released, monkeypatch, caplog
):
    monkeypatch.setattr(esplora, "RAW_BLOCK_TIMEOUT_S", 0.5)
    invoice, _ = paid_twice(till)
    assert "took longer than 0.5 s" in nothing_is_stored(till, silent(released), caplog)
    the_second_is_asked(till, invoice, caplog)


def test_witnesses_may_be_anything_and_change_nothing(till):
    """They are not proven, and nothing that is stored depends on one."""
    invoice, block = paid_twice(till)
    changed = bytearray(block.raw)
    signatures = [tx.inputs[0].witness[0] for tx in block.txs[1:]]
    for signature in signatures:
        at = block.raw.index(signature)
        changed[at : at + len(signature)] = bytes(len(signature))
    till.liar.instead = about_raw(say(bytes(changed)))
    assert till.check().new_statuses[invoice["id"]] == "paid"
    documents = [
        document
        for (document,) in till.shop.sql("SELECT document FROM proof").fetchall()
    ]
    assert len(documents) == 2
    for signature in signatures:
        assert signature.hex() in block.raw.hex()
        assert all(signature.hex() not in document for document in documents)


def no_work(block):
    others = (replace(block, nonce=nonce) for nonce in range(1000))
    return next(other for other in others if int(other.hash, 16) > target_of(BITS))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("honest_too", [False, True], ids=["alone", "an honest second"])
def test_a_header_that_may_not_follow_is_not_kept(lied_to, count, honest_too, caplog):
    """Every kind of such a header is in tests/chain/test_headers.py."""
    till = lied_to(honest_too=honest_too)
    invoice = till.shop.invoice()
    assert till.check().complete
    till.pay(invoice)
    rival = Rival(till)
    till.mine()
    rival.blocks[-1] = no_work(rival.add().blocks[-1])
    rival.add(count - 1)
    till.liar.instead = rival
    report = till.check()
    assert "lacks the work that it claims" in caplog.text
    top = till.shop.service.db.get(blocks.TOP)
    if honest_too:
        assert report.complete and report.new_statuses == {invoice["id"]: "paid"}
        assert top.hash == till.sandbox.chain.ledger.tip.hash
    else:
        assert (
            report.chain_failed and top.height == till.sandbox.chain.ledger.height - 1
        )

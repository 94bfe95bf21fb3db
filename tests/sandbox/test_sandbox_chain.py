"""The sandbox's chain: accepting, refusing, replacing, reorganising, and remembering."""

import contextlib
import random
import shutil
from copy import deepcopy

import pytest

from btcpay.bitcoin.tx import Outpoint, TxOut
from btcpay.sandbox.errors import BadRequest, JournalError
from btcpay.sandbox.node.block import subsidy_sats
from btcpay.sandbox.node.ledger import Ledger
from btcpay.sandbox.payer.coins import Spendable
from btcpay.sandbox.payer.wallet import double_spends, replace
from btcpay.sandbox.state import open_sandbox
from tests.support.fake_esplora import ADDRESS, SCRIPT

NOW = 1_800_000_000


@pytest.fixture
def sandbox(tmp_path):
    opened = open_sandbox(tmp_path, lambda: NOW)
    yield opened
    opened.close()


def child_of(sandbox, txid):
    """A payment from the change of one that waits."""
    change = sandbox.chain.mempool.entries[txid].tx.outputs[1]
    coins = [Spendable(Outpoint(txid, 1), change.value_sats, True)]
    return sandbox.chain.accept(
        sandbox.wallet.build(coins, [TxOut(7_000, SCRIPT)], 500), NOW
    )


class TestReplacing:
    def test_each_of_many_replacements_evicts_what_was_built_on_the_old_one(
        self, sandbox
    ):
        old = sandbox.wallet.pay(ADDRESS, 10_000, NOW)
        child_of(sandbox, old)
        new = [
            replace(sandbox.wallet, NOW, old),
            *(replace(sandbox.wallet, NOW) for _ in "1234"),
        ]
        assert list(sandbox.chain.mempool.entries) == new[-1:]
        assert (
            TxOut(10_000, SCRIPT) in sandbox.chain.mempool.entries[new[-1]].tx.outputs
        )

    def test_a_child_is_replaced_alone(self, sandbox):
        parent = sandbox.wallet.pay(ADDRESS, 10_000, NOW)
        replaced = replace(sandbox.wallet, NOW, child_of(sandbox, parent))
        assert list(sandbox.chain.mempool.entries) == [parent, replaced]

    @pytest.mark.parametrize("away", [False, True])
    @pytest.mark.parametrize(
        "sats", [10_000, 4_999_995_000], ids=["with change", "all of a coin"]
    )
    def test_a_replacement_keeps_the_rules_of_bip125(self, sandbox, sats, away):
        """Opted in to; no further waiting coin; above the fees it evicts, and at a higher rate."""
        entries = sandbox.chain.mempool.entries
        old = sandbox.wallet.pay(ADDRESS, sats, NOW)
        evicted = [entries[old]]
        if len(entries[old].tx.outputs) == 2:
            evicted.append(entries[child_of(sandbox, old)])
        new = entries[replace(sandbox.wallet, NOW, old, away)]
        assert all(
            txin.sequence < 0xFFFFFFFE for entry in evicted for txin in entry.tx.inputs
        )
        assert all(
            txin.outpoint in sandbox.chain.ledger.coins for txin in new.tx.inputs
        )
        assert new.fee_sats >= sum(entry.fee_sats for entry in evicted) + new.tx.vsize
        assert new.fee_sats * evicted[0].tx.vsize > evicted[0].fee_sats * new.tx.vsize


class TestReorganising:
    def test_a_chain_of_payments_falls_with_its_first(self, sandbox):
        child_of(sandbox, sandbox.wallet.pay(ADDRESS, 10_000, NOW))
        sandbox.chain.mine(1, NOW)
        sandbox.chain.reorganise(1, NOW, double_spends(sandbox.wallet, 1))
        assert not sandbox.chain.mempool.entries
        assert SCRIPT not in {
            out.script for out in outputs(sandbox.chain.ledger).values()
        }

    def test_a_refused_double_spend_leaves_everything_as_it_was(self, sandbox):
        sandbox.wallet.pay(ADDRESS, 10_000, NOW)
        sandbox.chain.mine(1, NOW)
        before = deepcopy(sandbox.chain.ledger)
        with pytest.raises(BadRequest):
            sandbox.chain.reorganise(1, NOW, [sandbox.chain.ledger.tip.txs[0].raw])
        assert sandbox.chain.ledger == before


@pytest.mark.parametrize("seed", range(3))
def test_on_a_random_walk_coins_are_kept_and_spent_once_and_what_is_undone_leaves_no_trace(
    sandbox, seed
):
    """After each step the chain is what its best branch alone leads to, from the first block."""
    dice = random.Random(seed)
    chain = sandbox.chain
    wallet = sandbox.wallet

    def reorganise():
        depth = dice.randint(1, 6)
        instead = double_spends(wallet, depth) if dice.random() < 0.5 else []
        chain.reorganise(depth, NOW, instead)

    happens = {
        lambda: wallet.pay(ADDRESS, dice.choice([10_000, 7_000_000_000]), NOW): 5,
        lambda: replace(
            wallet, NOW, dice.choice(wallet.payments() or [""]), dice.random() < 0.5
        ): 2,
        lambda: chain.mine(dice.randint(1, 3), NOW): 3,
        reorganise: 2,
    }
    for _ in range(60):
        (event,) = dice.choices(list(happens), list(happens.values()))
        with contextlib.suppress(BadRequest):  # nothing waits, for one
            event()
        ledger = chain.ledger
        unspent = {}
        branch = [ledger.blocks[block_hash] for block_hash in ledger.hashes]
        for tx in (tx for block in branch[1:] for tx in block.txs):
            spend(tx, unspent)
        spendable = {
            where: out for where, out in unspent.items() if out.script[:1] != b"\x6a"
        }
        assert outputs(ledger) == spendable
        mined_sats = sum(subsidy_sats(height) for height in range(1, ledger.height + 1))
        assert sum(output.value_sats for output in unspent.values()) == mined_sats
        fresh = Ledger()
        for block in branch:
            fresh.connect(block)
        assert (fresh.coins, fresh.confirmed) == (ledger.coins, ledger.confirmed)
        for entry in chain.mempool.entries.values():
            spend(entry.tx, unspent)
    assert len(chain.ledger.blocks) > len(chain.ledger.hashes)  # blocks were undone


def outputs(ledger):
    """The unspent outputs, by where they are."""
    return {
        where: found.tx.outputs[where.vout] for where, found in ledger.coins.items()
    }


def spend(tx, unspent):
    """Raises KeyError for a coin that was spent before, or never was."""
    for spending in () if tx.is_coinbase else tx.inputs:
        del unspent[spending.outpoint]
    unspent |= {
        Outpoint(tx.txid, vout): output for vout, output in enumerate(tx.outputs)
    }


class TestRemembering:
    def test_after_a_kill_amid_anything_it_goes_on_where_it_was(self, tmp_path):
        """The files as they lie there while it runs, after both kinds of reorganisation."""
        sandbox = open_sandbox(tmp_path / "one", lambda: NOW)
        copy = tmp_path / "copy"
        wallet = sandbox.wallet
        chain = sandbox.chain
        for double_spend in (False, True):
            wallet.pay(ADDRESS, 10_000, NOW)
            replace(wallet, NOW)
            wallet.pay(ADDRESS, 20_000, NOW)
            chain.mine(2, NOW)
            wallet.pay(ADDRESS, 30_000, NOW)
            chain.reorganise(2, NOW, double_spends(wallet, 2) if double_spend else [])
        shutil.copytree(tmp_path / "one", copy)
        again = open_sandbox(copy, lambda: NOW)
        assert again.chain.ledger == chain.ledger
        assert again.chain.mempool == chain.mempool
        assert again.wallet.address == wallet.address
        again.wallet.pay(ADDRESS, 10_000, NOW)
        for each in (again, sandbox):
            each.close()

    @pytest.mark.parametrize("place", [0, 5_000])
    def test_a_spoilt_file_stops_the_start_and_is_named(self, tmp_path, place):
        open_sandbox(tmp_path, lambda: NOW).close()
        raw = (tmp_path / "chain.db").read_bytes()
        (tmp_path / "chain.db").write_bytes(
            raw[:place] + b"spoilt" * 2_000 + raw[place + 12_000 :]
        )
        with pytest.raises(JournalError, match=r"chain\.db: .*; remove it"):
            open_sandbox(tmp_path, lambda: NOW)

    def test_a_second_sandbox_on_the_same_directory_is_refused(self, sandbox, tmp_path):
        with pytest.raises(JournalError, match="another sandbox"):
            open_sandbox(tmp_path, lambda: NOW)

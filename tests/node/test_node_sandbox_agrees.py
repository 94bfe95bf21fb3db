"""The sandbox against a full node: what one takes, the other does, and both show the same chain.

Both get the same blocks and the same transactions; DIFFERENCES says where they differ, and why.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
import requests
from bitcoin_node import FINAL_SEQUENCE, NOBODY, BitcoinNode, Coin, Refused, sign
from builders import Clock
from fake_esplora import serving_sandbox
from node_esplora import NodeEsplora

from btcpay.bitcoin.tx import NO_TXID, NO_VOUT, Outpoint, Tx, TxIn, TxOut
from btcpay.bitcoin.wire import Malformed, hash160
from btcpay.sandbox.errors import Rejected
from btcpay.sandbox.node.acceptance import MAX_CHAIN_TXS
from btcpay.sandbox.node.rules import COINBASE_MATURITY_BLOCKS, MAX_SATS_PER_VB
from btcpay.sandbox.node.script import address_of, p2pkh, p2sh, script_of
from btcpay.sandbox.payer.key import Key, open_key
from btcpay.sandbox.payer.misbehave import double_spends
from btcpay.sandbox.state import Sandbox
from btcpay.values.money import MAX_MONEY_SATS

COIN_SATS = 1_000_000
FEE_SATS = 1_000
COINS_OF_EACH_KIND = 60
TO_NOBODY = script_of(NOBODY)
ANYONE = p2sh(hash160(b"\x51"))  # whoever pushes the script OP_TRUE may spend it


@dataclass
class Pair:
    """A sandbox and a node with the same blocks, and a payer whose coins no wallet picks."""

    sandbox: Sandbox
    root: str
    node: BitcoinNode
    clock: Clock
    miner: Key
    payer: Key = field(default_factory=Key.new)
    coins: dict[str, list[Coin]] = field(default_factory=dict)

    @property
    def now(self) -> int:
        return int(self.clock().timestamp())

    @property
    def next_height(self) -> int:
        return self.sandbox.chain.ledger.height + 1

    @property
    def median_time(self) -> int:
        ledger = self.sandbox.chain.ledger
        return ledger.median_time_past(ledger.tip.hash)

    def feed(self, *hashes: str) -> None:
        """Gives the node blocks of the sandbox; it must take them and come to the same tip."""
        ledger = self.sandbox.chain.ledger
        for block_hash in hashes:
            self.node.submit(ledger.blocks[block_hash])
        assert self.node.tip() == (ledger.height, ledger.tip.hash)

    def mine(self, count: int = 1) -> list[str]:
        hashes = self.sandbox.chain.mine(count, self.now)
        self.feed(*hashes)
        return hashes

    def provide(self) -> None:
        """Confirms 60 coins of the payer's, and 60 of anyone's."""
        program = b"\x00\x14" + hash160(self.payer.public_key)
        scripts = {"p2wpkh": program, "anyone": ANYONE}
        for name, script in scripts.items():
            output = TxOut(COIN_SATS, script)
            wallet = self.sandbox.wallet
            raw = wallet.build(wallet.coins()[:1], [output] * COINS_OF_EACH_KIND, 10_000)
            txid = self.sandbox.chain.accept(raw, self.now)
            vouts = range(COINS_OF_EACH_KIND)
            self.coins[name] = [Coin(Outpoint(txid, vout), output, 0) for vout in vouts]
        self.mine()

    def coin(self, kind: str = "p2wpkh") -> Coin:
        """One that no other test spends."""
        return self.coins[kind].pop()

    def spend(self, *coins: Coin, fee_sats: int = FEE_SATS, **options: int) -> Tx:
        """Everything to nobody."""
        total_sats = sum(coin.output.value_sats for coin in coins)
        return sign(self.payer, coins, [TxOut(total_sats - fee_sats, TO_NOBODY)], **options)

    def pay_out(self, *outputs: TxOut) -> Tx:
        """A coin for these outputs, and change."""
        coin = self.coin()
        rest_sats = COIN_SATS - FEE_SATS - sum(output.value_sats for output in outputs)
        return sign(self.payer, [coin], [*outputs, TxOut(rest_sats, coin.output.script)])

    def reward(self, height: int) -> Coin:
        """The coinbase of a block of the sandbox."""
        ledger = self.sandbox.chain.ledger
        coinbase = ledger.blocks[ledger.hashes[height]].txs[0]
        return Coin(Outpoint(coinbase.txid, 0), coinbase.outputs[0], height)

    def verdicts(self, raw: bytes) -> tuple[str, str]:
        """ "taken" or the reason for refusing, of the sandbox and of the node."""
        answers = []
        for take in (lambda: self.sandbox.chain.accept(raw, self.now), lambda: self.node.send(raw)):
            try:
                take()
                answers.append("taken")
            except (Rejected, Malformed, Refused) as error:
                answers.append(str(error))
        return answers[0], answers[1]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    clock, folder = Clock(), tmp_path_factory.mktemp("chain")
    with BitcoinNode() as node, serving_sandbox(folder, clock) as (sandbox, root):
        pair = Pair(sandbox, root, node, clock, open_key(folder / "wallet.wif"))
        pair.feed(*sandbox.chain.ledger.hashes[1:])
        pair.provide()
        yield pair


# One transaction, or several of which the last is judged.
Build = Callable[[Pair], Tx | list[Tx]]


def double_spend_in_mempool(pair: Pair) -> list[Tx]:
    coin = pair.coin()
    first = pair.spend(coin, sequence=FINAL_SEQUENCE)
    return [first, pair.spend(coin, fee_sats=9 * FEE_SATS)]


def replacement(pair: Pair) -> list[Tx]:
    coin = pair.coin()
    return [pair.spend(coin), pair.spend(coin, fee_sats=9 * FEE_SATS)]


def spent_in_a_block(pair: Pair) -> Tx:
    coin = pair.coin()
    pair.sandbox.chain.accept(pair.spend(coin).raw, pair.now)
    pair.mine()
    return pair.spend(coin, fee_sats=9 * FEE_SATS)


def confirmed_already(pair: Pair) -> Tx:
    tx = pair.spend(pair.coin())
    pair.sandbox.chain.accept(tx.raw, pair.now)
    pair.mine()
    return tx


def twice(pair: Pair) -> list[Tx]:
    tx = pair.spend(pair.coin())
    return [tx, tx]


def from_nowhere(pair: Pair) -> Tx:
    return pair.spend(pair.coin()._replace(outpoint=Outpoint("ab" * 32, 0)))


def same_input_twice(pair: Pair) -> Tx:
    coin = pair.coin()
    return pair.spend(coin, coin)


def coinbase_spend(pair: Pair, depth: int) -> Tx:
    """`depth`: how deep the coinbase is when the next block comes; 100 is ripe."""
    reward = pair.reward(pair.next_height - depth)
    return sign(pair.miner, [reward], [TxOut(reward.output.value_sats - FEE_SATS, TO_NOBODY)])


def with_feerate(pair: Pair, sats_per_vb: int, more_sats: int) -> Tx:
    """From a P2PKH coin of a reward's size, so that the highest fee can be paid too."""
    reward = pair.reward(pair.next_height - COINBASE_MATURITY_BLOCKS)
    value_sats = reward.output.value_sats

    def paying(fee_sats: int, number: int) -> Tx:
        output = TxOut(value_sats - fee_sats, p2pkh(number.to_bytes(20, "big")))
        return sign(pair.miner, [reward], [output])

    # Signatures vary by a byte: the larger of the two usual sizes is tried for.
    vsize = max(paying(0, number).vsize for number in range(20))
    fee_sats = vsize * sats_per_vb + more_sats
    txs = (paying(fee_sats, number) for number in range(100))
    return next(tx for tx in txs if tx.vsize == vsize)


def chain_of(length: int) -> Build:
    def build(pair: Pair) -> list[Tx]:
        txs, coin = [], pair.coin()
        for _ in range(length):
            output = TxOut(coin.output.value_sats - FEE_SATS, coin.output.script)
            txs.append(sign(pair.payer, [coin], [output]))
            coin = Coin(Outpoint(txs[-1].txid, 0), output, -1)
        return txs

    return build


def with_outputs(*sats: int) -> Build:
    """Signed, whatever their sum."""
    outputs = [TxOut(each, TO_NOBODY) for each in sats]
    return lambda pair: sign(pair.payer, [pair.coin()], outputs)


def with_version(version: int) -> Build:
    """From a key whose signature does not cover it: the verdict must come from the version."""

    def build(pair: Pair) -> Tx:
        coin = pair.coin("anyone")
        spend = TxIn(coin.outpoint, b"\x01\x51", FINAL_SEQUENCE)
        return Tx(version, (spend,), (TxOut(COIN_SATS - FEE_SATS, TO_NOBODY),), 0)

    return build


def of_64_bytes(pair: Pair) -> Tx:
    tx = sign(pair.payer, [pair.coin()], [TxOut(COIN_SATS - FEE_SATS, b"\x6a\x02hi")])
    assert len(tx.stripped) == 64
    return tx


def a_coinbase(pair: Pair) -> Tx:
    spend = TxIn(Outpoint(NO_TXID, NO_VOUT), b"\x51\x51", FINAL_SEQUENCE)
    return Tx(2, (spend,), (TxOut(1_000, TO_NOBODY),), 0)


def locked(pair: Pair, until: int, sequence: int = 0xFFFFFFFE) -> Tx:
    return pair.spend(pair.coin(), locktime=until, sequence=sequence)


P2TR = b"\x51\x20" + bytes(range(32))
MATURE = COINBASE_MATURITY_BLOCKS

# Bitcoin Core's dust limit of each script that the service has addresses of, and of two others.
LEAST = {
    b"\x00\x14" + bytes(20): 294,
    p2sh(bytes(20)): 540,
    p2pkh(bytes(20)): 546,
    b"\x00\x20" + bytes(32): 330,
    b"\x6a\x05hello": 0,
}
TAKEN: dict[str, Build] = {
    "outputs of every common kind": lambda p: p.pay_out(
        TxOut(10_000, p2pkh(bytes(20))),
        TxOut(10_000, ANYONE),
        TxOut(10_000, b"\x00\x20" + bytes(32)),
        TxOut(10_000, b"\x21" + p.payer.public_key + b"\xac"),
        TxOut(0, b"\x6a\x05hello"),
    ),
    "the least to an address of each kind": lambda p: p.pay_out(
        *(TxOut(sats, script) for script, sats in LEAST.items())
    ),
    "a coinbase in its hundredth block": lambda p: coinbase_spend(p, MATURE),
    "one satoshi per virtual byte": lambda p: with_feerate(p, 1, 0),
    "10,000 satoshis per virtual byte": lambda p: with_feerate(p, MAX_SATS_PER_VB, 0),
    "a lock that ended with the last block": lambda p: locked(p, p.next_height - 1),
    "a lock in time that has ended": lambda p: locked(p, p.median_time - 1),
    "a lock that final sequences lift": lambda p: locked(p, 9_999_999, FINAL_SEQUENCE),
    "a parent and its child": chain_of(2),
    "the 25th of a waiting chain": chain_of(MAX_CHAIN_TXS),
}
# With the sandbox's reason, in Bitcoin Core's words.
AGAINST_POLICY: dict[str, tuple[Build, str]] = {
    "a double spend of what does not signal": (double_spend_in_mempool, "txn-mempool-conflict"),
    **{
        f"dust to {address_of(script)}": (
            lambda p, sats=sats, script=script: p.pay_out(TxOut(sats - 1, script)),
            "dust",
        )
        for script, sats in LEAST.items()
        if sats
    },
    "two OP_RETURN outputs": (
        lambda p: p.pay_out(TxOut(0, b"\x6a\x01a"), TxOut(0, b"\x6a\x01b")),
        "multi-op-return",
    ),
    "an OP_RETURN of 84 bytes": (
        lambda p: p.pay_out(TxOut(0, b"\x6a\x4c\x51" + bytes(81))),
        "scriptpubkey",
    ),
    "an output script of no kind": (lambda p: p.pay_out(TxOut(1_000, b"\x51")), "scriptpubkey"),
    "one satoshi less than one per virtual byte": (
        lambda p: with_feerate(p, 1, -1),
        "min relay fee not met",
    ),
    "a fee above 10,000 satoshis per virtual byte": (
        lambda p: with_feerate(p, MAX_SATS_PER_VB, 1),
        "max-fee-exceeded",
    ),
    "version 0": (with_version(0), "version"),
    "the 26th of a waiting chain": (chain_of(MAX_CHAIN_TXS + 1), "too-long-mempool-chain"),
}
AGAINST_CONSENSUS: dict[str, tuple[Build, str]] = {
    "a coin that is spent in a block": (spent_in_a_block, "bad-txns-inputs-missingorspent"),
    "a coin that never was": (from_nowhere, "bad-txns-inputs-missingorspent"),
    "a transaction that is in a block": (
        confirmed_already,
        "Transaction outputs already in utxo set",
    ),
    "the same coin twice": (same_input_twice, "bad-txns-inputs-duplicate"),
    "a coinbase one block too young": (
        lambda p: coinbase_spend(p, MATURE - 1),
        "bad-txns-premature-spend-of-coinbase",
    ),
    "one satoshi more than came in": (with_outputs(COIN_SATS + 1), "bad-txns-in-belowout"),
    "more money than there is": (with_outputs(MAX_MONEY_SATS + 1), "bad-txns-vout-toolarge"),
    "outputs whose sum is more than there is": (
        with_outputs(MAX_MONEY_SATS, MAX_MONEY_SATS),
        "bad-txns-txouttotal-toolarge",
    ),
    "a negative amount": (with_outputs((1 << 64) - 1), "bad-txns-vout-negative"),
    "no output": (with_outputs(), "bad-txns-vout-empty"),
    "a lock until after the next block": (lambda p: locked(p, p.next_height), "non-final"),
    "a lock in time that ends at the median": (lambda p: locked(p, p.median_time), "non-final"),
    "a relative lock that has not passed": (
        lambda p: p.spend(p.coin(), sequence=60_000),
        "non-BIP68-final",
    ),
    "a coinbase outside a block": (a_coinbase, "coinbase"),
}
# Does the sandbox take it? The name says why the two differ.
DIFFERENCES: dict[str, tuple[Build, bool]] = {
    "a replacement with a higher fee: bcoin has no replace-by-fee (BIP125)": (replacement, True),
    "a transaction that waits already: sendrawtransaction accepts it again": (twice, True),
    "a payment to a Taproot address: bcoin relays to no unknown witness version": (
        lambda p: p.pay_out(TxOut(10_000, P2TR)),
        True,
    ),
    "a transaction of 64 bytes: Core relays none (CVE-2017-12842), bcoin all": (of_64_bytes, False),
    "a relative lock that has passed: rules.py keeps no times of coins": (
        lambda p: p.spend(p.coin(), sequence=1),
        False,
    ),
}


def judged(pair: Pair, build: Build) -> tuple[Tx, str, str]:
    """The transaction, and what sandbox and node say of it."""
    built = build(pair)
    txs = built if isinstance(built, list) else [built]
    for tx in txs[:-1]:
        assert pair.verdicts(tx.raw) == ("taken", "taken")
    return txs[-1], *pair.verdicts(txs[-1].raw)


@pytest.mark.parametrize("build", TAKEN.values(), ids=TAKEN)
def test_both_take_and_the_node_takes_a_block_of_the_sandbox_with(pair: Pair, build: Build) -> None:
    tx, *verdicts = judged(pair, build)
    assert verdicts == ["taken", "taken"]
    pair.mine()
    assert tx.txid in pair.sandbox.chain.ledger.confirmed


@pytest.mark.parametrize("what", AGAINST_POLICY | AGAINST_CONSENSUS)
def test_both_refuse(pair: Pair, what: str) -> None:
    build, reason = (AGAINST_POLICY | AGAINST_CONSENSUS)[what]
    tx, by_sandbox, by_node = judged(pair, build)
    assert by_sandbox.startswith(reason) and by_node != "taken"
    if what in AGAINST_CONSENSUS:
        with pytest.raises(Refused):
            pair.node.mine_conflict(tx.raw)
    pair.mine()
    assert pair.node.mempool() == []


@pytest.mark.parametrize(("build", "sandbox_takes"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_they_differ_as_listed(pair: Pair, build: Build, sandbox_takes: bool) -> None:
    tx, by_sandbox, by_node = judged(pair, build)
    node_takes = not sandbox_takes
    assert (by_sandbox == "taken", by_node == "taken") == (sandbox_takes, node_takes)
    pair.mine()  # whatever the sandbox took, the node takes in a block
    if node_takes:
        pair.node.drop(tx.txid)


def test_neither_takes_bytes_that_are_no_transaction(pair: Pair) -> None:
    raw, empty = pair.spend(pair.coin()).raw, bytes.fromhex("0200000000010000000000")
    for wrong in (*(raw[:cut] for cut in (0, 1, 10, 60, -1)), empty):
        assert "taken" not in pair.verdicts(wrong)


def test_a_byte_too_many_is_refused_by_the_sandbox_and_not_read_by_bcoin(pair: Pair) -> None:
    tx = pair.spend(pair.coin())
    by_sandbox, by_node = pair.verdicts(tx.raw + b"\x00")  # Core: TX decode failed
    assert (by_sandbox != "taken", by_node) == (True, "taken")
    pair.node.drop(tx.txid)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7])
def test_the_node_takes_a_block_of_so_many_payments(pair: Pair, count: int) -> None:
    for number in range(count):
        pair.sandbox.wallet.pay(NOBODY, 10_000 + number, pair.now)
    (block_hash,) = pair.mine()
    assert len(pair.node.block(block_hash).txs) == count + 1


def test_the_node_follows_a_reorganisation_that_takes_payments_back(pair: Pair) -> None:
    pair.sandbox.wallet.pay(NOBODY, 20_000, pair.now)
    kept = pair.mine()
    lost = pair.sandbox.wallet.pay(NOBODY, 30_000, pair.now)
    pair.mine(2)
    chain = pair.sandbox.chain
    pair.feed(*chain.reorganise(2, pair.now, double_spends(pair.sandbox.wallet, 2)))
    txids = {tx.txid for tx, _ in pair.node.history(TO_NOBODY)}
    assert lost not in txids and lost not in chain.ledger.confirmed
    assert pair.node.rpc("getblockheader", kept[0])["confirmations"] == 4


def test_after_a_reorganisation_both_confirm_what_waits_again(pair: Pair) -> None:
    txid = pair.sandbox.wallet.pay(NOBODY, 40_000, pair.now)
    (lost,) = pair.mine()
    pair.feed(*pair.sandbox.chain.reorganise(1, pair.now))
    assert txid in pair.sandbox.chain.mempool.entries
    (found,) = pair.mine()
    assert lost != found
    assert txid in [tx.txid for tx in pair.node.block(found).txs]


def test_the_node_takes_blocks_beyond_the_second_halving(pair: Pair) -> None:
    pair.mine(max(1, 301 - pair.sandbox.chain.ledger.height))
    assert pair.reward(300).output.value_sats == 1_250_000_000
    assert pair.node.coins(pair.reward(300).output.script, coinbases=True)


def test_both_count_the_same_coins(pair: Pair) -> None:
    coins = pair.sandbox.chain.ledger.coins
    found = pair.node.rpc("gettxoutsetinfo")
    total_sats = sum(coin.output.value_sats for coin in coins.values())
    assert found["txouts"] == len(coins)
    assert round(found["total_amount"] * 100_000_000) == total_sats


@pytest.fixture(scope="module")
def esplora(pair: Pair) -> Iterator[NodeEsplora]:
    """Beside the sandbox's."""
    with NodeEsplora(pair.node) as served:
        yield served


UNKNOWN = "ab" * 32
BLOCK_PATHS = ("/header", "/raw")
ADDRESS_PATHS = ("/txs", "/txs/mempool")


def get(root: str, path: str) -> tuple[int, object]:
    answer = requests.get(root + path, timeout=60)
    json = "json" in answer.headers["Content-Type"] and answer.status_code == 200
    return answer.status_code, answer.json() if json else answer.content


def test_both_explorers_answer_the_same(pair: Pair, esplora: NodeEsplora) -> None:
    wallet, chain = pair.sandbox.wallet, pair.sandbox.chain
    address = address_of(Key.new().script_code)
    (lost,) = pair.mine()
    pair.feed(*chain.reorganise(1, pair.now))
    for n in range(27):
        wallet.pay(address, 10_000 + n, pair.now)
    pair.mine()
    waiting = wallet.pay(address, 5_000, pair.now)
    pair.node.send(chain.mempool.entries[waiting].tx.raw)
    blocks = (lost, chain.ledger.hashes[0], chain.ledger.tip.hash, UNKNOWN)
    paths = [
        *("/blocks", "/blocks/tip/height", "/blocks/tip/hash", "/nothing"),
        *(f"/block-height/{height}" for height in (0, 150, 99_999)),
        *(f"/blocks/{height}" for height in (0, 3, 150, 99_999)),
        *(f"/block/{each}{rest}" for each in blocks for rest in BLOCK_PATHS),
        *(f"/address/{address}{rest}" for rest in ADDRESS_PATHS),
        *(f"/address/{wallet.address}/txs", "/address/nonsense/txs"),
    ]
    differing = [path for path in paths if get(pair.root, path) != get(esplora.root, path)]
    assert differing == []

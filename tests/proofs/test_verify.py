"""Proofs of payment: true evidence holds, and every forgery fails for its own reason."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcpay.bitcoin.header import build_header, parse_header, target_of
from btcpay.bitcoin.merkle import merkle_branch, merkle_root, merkle_rows
from btcpay.bitcoin.tx import (
    NULL_TXID,
    NULL_VOUT,
    Outpoint,
    Tx,
    TxIn,
    TxOut,
    coinbase_height,
)
from btcpay.bitcoin.wire import hash256, hash_from_hex, hash_to_hex, ser_uint32
from btcpay.proofs.verify import MAX_BRANCH, Branch, Evidence, ProvenPayment, prove
from btcpay.sandbox.node.block import GENESIS
from btcpay.values.errors import ProofFailed
from btcpay.values.networks import NETWORKS
from btcpay.values.times import from_unix_s
from tests.support.blocks import coinbase, flipped, real_headers

NOW = 1_800_000_000
SCRIPT = b"\x00\x14" + b"\xab" * 20
OTHER_SCRIPT = b"\x00\x14" + b"\xcd" * 20
SATS = 25_000
EASY = 0x207FFFFF  # regtest: every second hash meets it
# every 65,536th: changed headers that meet it do not happen by chance
HARD = 0x1F00FFFF
HARDER = 0x1E7FFFFF


def payment(script=SCRIPT, sats=SATS, number=1):
    spent = TxIn(
        Outpoint(f"{number:064x}", 0), b"", 0xFFFFFFFD, (b"\x30" * 71, b"\x02" * 33)
    )
    return Tx(2, (spent,), (TxOut(7_000, OTHER_SCRIPT), TxOut(sats, script)), 0)


def header(root, previous=NULL_TXID, bits=EASY):
    """A header with its work done."""
    start = build_header(4, previous, hash_to_hex(root), NOW, bits, nonce=0)[:76]
    raws = (start + ser_uint32(nonce) for nonce in itertools.count())
    target = target_of(bits)
    return next(raw for raw in raws if int.from_bytes(hash256(raw), "little") <= target)


def followers(first, count, bits=EASY):
    """This header and `count` that follow it."""
    headers = [first]
    for number in range(count):
        headers.append(
            header(bytes([number]) * 32, parse_header(headers[-1]).hash, bits)
        )
    return headers


def leaves_of(txs):
    return [hash_from_hex(tx.txid) for tx in txs]


def branch(tx, leaves, position):
    return Branch(
        tx.raw,
        position,
        [hash_to_hex(node) for node in merkle_branch(merkle_rows(leaves), position)],
    )


def evidence_of(txs, position, following=0, bits=EASY):
    leaves = leaves_of(txs)
    first = header(merkle_root(leaves), bits=bits)
    return Evidence(
        branch(txs[position], leaves, position),
        branch(txs[0], leaves, 0),
        followers(first, following, bits),
    )


TXS = (coinbase(), *(payment(number=number) for number in range(1, 7)))
PAID = TXS[4]
VALID = evidence_of(TXS, 4, following=2)


def check(evidence, txid=PAID.txid, script=SCRIPT, bits=EASY, confirmations=1):
    return prove(evidence, txid, script, bits, confirmations)


def test_what_is_proven_is_what_the_block_and_the_transaction_say():
    first = parse_header(VALID.headers[0])
    expected = ProvenPayment(PAID.txid, first.hash, from_unix_s(NOW), {1: SATS})
    assert check(VALID) == expected
    assert check(VALID, confirmations=3) == expected


def test_all_outputs_to_the_script_are_proven_and_no_others():
    several = Tx(
        2, PAID.inputs, (TxOut(1, SCRIPT), TxOut(2, OTHER_SCRIPT), TxOut(3, SCRIPT)), 0
    )
    txs = (coinbase(), several)
    assert check(evidence_of(txs, 1), several.txid).amounts_sats == {0: 1, 2: 3}


def test_the_last_of_an_odd_row_is_its_own_sibling_on_either_side_with_one_result():
    evidence = evidence_of(TXS, 6)
    mirrored = replace(evidence, payment=replace(evidence.payment, position=7))
    assert check(mirrored, TXS[6].txid) == check(evidence, TXS[6].txid)


def with_payment(**changes):
    return replace(VALID, payment=replace(VALID.payment, **changes))


def with_coinbase(**changes):
    return replace(VALID, coinbase=replace(VALID.coinbase, **changes))


def with_headers(*headers):
    return replace(VALID, headers=list(headers))


def without_work(raw):
    """The header with a nonce that its target does not forgive."""
    raws = (raw[:76] + ser_uint32(nonce) for nonce in itertools.count())
    return next(each for each in raws if not parse_header(each).has_work)


def with_bits(raw, bits):
    return raw[:72] + ser_uint32(bits) + raw[76:]


FIRST, SECOND, THIRD = VALID.headers
ROOT = hash_from_hex(parse_header(FIRST).merkle_root)
MERKLE = list(VALID.payment.merkle)
GENESIS_MAINNET, MAINNET_1 = real_headers()[:2]
INVENTED = payment(number=99)
RICHER = replace(PAID, outputs=(PAID.outputs[0], TxOut(SATS + 1, SCRIPT)))
DECODES_NOT = "does not decode"
NO_BRANCH = "branch of the transaction does not lead"

FORGERIES: dict[str, tuple[Evidence, str]] = {
    "an invented transaction under a real id": (with_payment(raw_tx=INVENTED.raw), "another id"),
    "a changed amount": (with_payment(raw_tx=RICHER.raw), "another id"),
    "a changed script": (with_payment(raw_tx=payment(OTHER_SCRIPT, number=4).raw), "another id"),
    "a byte after the transaction": (with_payment(raw_tx=PAID.raw + b"\0"), DECODES_NOT),
    "a transaction that ends too early": (with_payment(raw_tx=PAID.raw[:-1]), DECODES_NOT),
    "no transaction": (with_payment(raw_tx=b""), DECODES_NOT),
    "a number of inputs not in its shortest form": (
        with_payment(
            raw_tx=PAID.without_witness[:4] + b"\xfd\x01\x00" + PAID.without_witness[5:]),
        DECODES_NOT),
    "a byte after the coinbase": (with_coinbase(raw_tx=TXS[0].raw + b"\0"), DECODES_NOT),
    "the branch of another transaction": (
        with_payment(merkle=branch(TXS[3], leaves_of(TXS), 3).merkle, position=3), NO_BRANCH),
    "the siblings in reverse": (with_payment(merkle=MERKLE[::-1]), NO_BRANCH),
    "a sibling missing": (with_payment(merkle=MERKLE[:-1], position=0), NO_BRANCH),
    "a sibling too many": (with_payment(merkle=[*MERKLE, "00" * 32]), NO_BRANCH),
    "no siblings": (with_payment(merkle=[], position=0), NO_BRANCH),
    "a position one too low": (with_payment(position=3), NO_BRANCH),
    "a position one too high": (with_payment(position=5), NO_BRANCH),
    "a position beyond the tree": (with_payment(position=8), "position of the transaction"),
    "a position before the tree": (with_payment(position=-1), "position of the transaction"),
    "a branch longer than a block can have": (
        with_payment(merkle=["00" * 32] * (MAX_BRANCH + 1)),
        "branch of the transaction is too long"),
    "a coinbase's branch longer than a block can have": (
        with_coinbase(merkle=["00" * 32] * (MAX_BRANCH + 1)), "branch of the coinbase is too long"),
    "a coinbase that is none": (
        replace(VALID, coinbase=branch(TXS[1], leaves_of(TXS), 1)), "is not a coinbase"),
    "a coinbase that is not in the block": (
        with_coinbase(raw_tx=coinbase(script_sig=b"\x01\x09").raw),
        "branch of the coinbase does not lead"),
    "a coinbase at another position": (with_coinbase(position=1), "not the first transaction"),
    "no header": (with_headers(), "no header"),
    "a header of 79 bytes": (with_headers(FIRST[:-1]), DECODES_NOT),
    "a header of 81 bytes": (with_headers(FIRST + b"\0"), DECODES_NOT),
    "a header of another block": (with_headers(SECOND, THIRD), NO_BRANCH),
    "the first header of mainnet": (with_headers(GENESIS_MAINNET), NO_BRANCH),
    "a header without work": (with_headers(without_work(FIRST)), "lacks the"),
    "a follower without work": (with_headers(FIRST, without_work(SECOND)), "lacks the"),
    "a header whose target is none": (with_headers(with_bits(FIRST, 0x04923456)), "lacks the"),
    "a header whose target is zero": (with_headers(with_bits(FIRST, 0x03000000)), "lacks the"),
    "a header whose target overflows": (with_headers(with_bits(FIRST, 0xFF123456)), "lacks the"),
    "an easier target than the network allows": (
        with_headers(header(ROOT, bits=0x2100FFFF)), "too little difficulty"),
    "a follower of an easier target": (
        with_headers(FIRST, header(bytes(32), parse_header(FIRST).hash, bits=0x2100FFFF)),
        "too little difficulty"),
    "a follower of another block": (with_headers(FIRST, THIRD), "do not follow"),
    "followers in another order": (with_headers(FIRST, THIRD, SECOND), "do not follow"),
    "the same header twice": (with_headers(FIRST, FIRST), "do not follow"),
}  # fmt: skip


@pytest.mark.parametrize(("evidence", "reason"), FORGERIES.values(), ids=FORGERIES)
def test_a_forgery_fails_for_its_own_reason(evidence, reason):
    with pytest.raises(ProofFailed, match=reason):
        check(evidence)


NOT_ASKED_FOR = {
    "to somebody else": (PAID.txid, b"\x00\x14" + bytes(20), "does not pay"),
    "a longer script": (PAID.txid, SCRIPT + b"\0", "does not pay"),
    "a shorter script": (PAID.txid, SCRIPT[:-1], "does not pay"),
    "no script": (PAID.txid, b"", "does not pay"),
    "the id that the witness changes": (
        hash_to_hex(hash256(PAID.raw)),
        SCRIPT,
        "another id",
    ),
    "another transaction of the block": (TXS[3].txid, SCRIPT, "another id"),
}


@pytest.mark.parametrize(
    ("txid", "script", "reason"), NOT_ASKED_FOR.values(), ids=NOT_ASKED_FOR
)
def test_a_real_transaction_does_not_prove_what_it_is_not_asked_for(
    txid, script, reason
):
    with pytest.raises(ProofFailed, match=reason):
        check(VALID, txid, script)


def test_an_output_of_nothing_is_no_payment():
    nothing = payment(sats=0)
    with pytest.raises(ProofFailed, match="does not pay"):
        check(evidence_of((coinbase(), nothing), 1), nothing.txid)


@pytest.mark.parametrize("following", range(4))
def test_as_many_headers_as_confirmations_are_enough_and_one_less_is_not(following):
    evidence = evidence_of(TXS, 4, following)
    for confirmations in range(1, following + 2):
        assert check(evidence, confirmations=confirmations).txid == PAID.txid
    with pytest.raises(ProofFailed, match="fewer headers"):
        check(evidence, confirmations=following + 2)


# CVE-2017-12842: what is a leaf and what is a node
def of_64_bytes(witness=()):
    spent = TxIn(Outpoint("ff" * 32, 0), b"", 0xFFFFFFFF, witness)
    return Tx(2, (spent,), (TxOut(SATS, b"\x51\x52\x53\x54"),), 0)


@pytest.mark.parametrize(
    "witness", [(), (b"\x01" * 9,)], ids=["bare", "behind a witness"]
)
def test_a_transaction_of_64_bytes_is_refused(witness):
    tx = of_64_bytes(witness)
    assert len(tx.without_witness) == 64
    with pytest.raises(
        ProofFailed, match="the transaction is as long as a Merkle node"
    ):
        check(evidence_of((coinbase(), tx), 1), tx.txid, tx.outputs[0].script)


def test_a_transaction_of_a_byte_less_or_more_is_not():
    for script in (b"\x51\x52\x53", b"\x51\x52\x53\x54\x55"):
        tx = replace(of_64_bytes(), outputs=(TxOut(SATS, script),))
        assert len(tx.without_witness) == 60 + len(script)
        assert check(
            evidence_of((coinbase(), tx), 1), tx.txid, script
        ).amounts_sats == {0: SATS}


def test_a_coinbase_of_64_bytes_is_refused():
    origin = TxIn(Outpoint(NULL_TXID, NULL_VOUT), b"\x51\x51\x51", 0xFFFFFFFF)
    small = Tx(2, (origin,), (TxOut(1, b"\x51"),), 0)
    assert len(small.without_witness) == 64
    with pytest.raises(ProofFailed, match="the coinbase is as long as a Merkle node"):
        check(evidence_of((small, PAID), 1))


def evidence_over(leaves, forged):
    coinbase = branch(TXS[0], leaves, 0)
    return Evidence(forged, coinbase, [header(merkle_root(leaves))])


def test_a_transaction_hidden_in_a_leaf_of_64_bytes_is_refused():
    """A miner's 64 bytes that end in the id of a transaction which is in no block."""
    posing = b"\x07" * 32 + hash_from_hex(INVENTED.txid)
    leaves = [*leaves_of(TXS[:2]), hash256(posing), hash_from_hex(TXS[3].txid)]
    siblings = [
        hash_to_hex(posing[:32]),
        *map(hash_to_hex, merkle_branch(merkle_rows(leaves), 2)),
    ]
    with pytest.raises(ProofFailed, match="not as long as the coinbase's"):
        check(evidence_over(leaves, Branch(INVENTED.raw, 5, siblings)), INVENTED.txid)


def test_an_inner_node_posing_as_a_transaction_is_refused():
    """Two leaves that together read as a transaction, whose branch is one shorter."""
    posing = of_64_bytes()
    leaves = [
        *leaves_of(TXS[:2]),
        posing.without_witness[:32],
        posing.without_witness[32:],
    ]
    siblings = [hash_to_hex(node) for node in merkle_branch(merkle_rows(leaves), 2)[1:]]
    forged = evidence_over(leaves, Branch(posing.raw, 1, siblings))
    with pytest.raises(ProofFailed, match="as long as a Merkle node"):
        check(forged, posing.txid, posing.outputs[0].script)


def test_a_branch_shorter_than_the_coinbases_is_refused_whatever_leads_there():
    """No tree that Bitcoin builds has leaves at two heights."""
    pair = hash256(hash_from_hex(TXS[0].txid) + hash_from_hex(TXS[1].txid))
    root = hash256(pair + hash_from_hex(PAID.txid))
    coinbase = Branch(TXS[0].raw, 0, [TXS[1].txid, PAID.txid])
    forged = Evidence(
        Branch(PAID.raw, 1, [hash_to_hex(pair)]), coinbase, [header(root)]
    )
    with pytest.raises(ProofFailed, match="not as long as the coinbase's"):
        check(forged)


def test_a_hash_that_equals_the_target_has_work_and_one_more_has_not():
    least = replace(parse_header(FIRST), bits=0x1D00FFFF, hash=f"{0xFFFF << 208:064x}")
    assert least.has_work
    assert not replace(least, hash=f"{(0xFFFF << 208) + 1:064x}").has_work


# The first two blocks of mainnet; each holds its coinbase alone.
GENESIS_TX = GENESIS.txs[0]  # regtest's genesis has mainnet's transaction
_ALONE = Branch(GENESIS_TX.raw, 0, [])
MAINNET = Evidence(_ALONE, _ALONE, [GENESIS_MAINNET, MAINNET_1])


def test_the_first_block_of_mainnet_proves_its_coinbase_under_the_floor_of_its_time_alone():
    asked = MAINNET, GENESIS_TX.txid, GENESIS_TX.outputs[0].script
    proven = prove(*asked, NETWORKS["testnet"].max_target_bits, 2)
    assert (
        proven.txid
        == "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"
    )
    assert (
        proven.block_hash
        == "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"
    )
    assert proven.mined_at == from_unix_s(1231006505)
    assert proven.amounts_sats == {0: 50 * 10**8}
    with pytest.raises(ProofFailed, match="too little difficulty"):
        prove(*asked, NETWORKS["mainnet"].max_target_bits, 2)


def test_the_floor_of_every_network_but_regtest_refuses_regtest_headers():
    assert check(VALID, bits=NETWORKS["regtest"].max_target_bits)
    for name in NETWORKS.keys() - {"regtest"}:
        with pytest.raises(ProofFailed, match="too little difficulty"):
            check(VALID, bits=NETWORKS[name].max_target_bits)


def test_a_header_at_the_floor_or_harder_is_enough_and_an_easier_one_is_not():
    for floor in (HARD, HARD + 1):
        assert check(WORKED, bits=floor).txid == PAID.txid
    for floor in (HARD - 1, HARDER):
        with pytest.raises(ProofFailed, match="too little difficulty"):
            check(WORKED, bits=floor)


WORKED = evidence_of(TXS, 4, following=1, bits=HARD)


def parts_of(evidence):
    parts = {"the headers": b"".join(evidence.headers)}
    for name, shown in (
        ("transaction", evidence.payment),
        ("coinbase", evidence.coinbase),
    ):
        parts[f"the {name}"] = shown.raw_tx
        parts[f"the {name}'s position"] = ser_uint32(shown.position)
        parts[f"the {name}'s siblings"] = bytes.fromhex("".join(shown.merkle))
    return parts


def evidence_in(parts):
    def shown(name):
        position = int.from_bytes(parts[f"{name}'s position"], "little")
        siblings = [node.hex() for node in split(parts[f"{name}'s siblings"], 32)]
        return Branch(parts[name], position, siblings)

    return Evidence(
        shown("the transaction"), shown("the coinbase"), split(parts["the headers"], 80)
    )


def split(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)]


PARTS = parts_of(WORKED)


def outcome(evidence):
    try:
        return check(evidence, bits=HARD, confirmations=2)
    except ProofFailed:
        return None


@pytest.mark.parametrize("name", PARTS)
def test_no_single_bit_of_it_changes_what_is_proven(name):
    proven = outcome(WORKED)
    bits = range(8 * len(PARTS[name]))
    changes = (PARTS | {name: flipped(PARTS[name], bit)} for bit in bits)
    outcomes = [outcome(evidence_in(change)) for change in changes]
    assert all(each is None or each == proven for each in outcomes)
    assert outcomes.count(None) > 0


@settings(max_examples=300, derandomize=True)
@given(
    st.binary(max_size=200), st.binary(max_size=200), st.lists(st.binary(max_size=90))
)
def test_bytes_of_any_kind_are_refused_and_never_an_error_of_another_kind(
    raw, coinbase, headers
):
    evidence = Evidence(Branch(raw, 0, []), Branch(coinbase, 0, []), headers)
    assert outcome(evidence) is None


HEIGHTS = {  # BIP34
    "OP_1 is height 1": ("51", 1),
    "OP_16 is height 16": ("60", 16),
    "one byte": ("0111", 17),
    "a second byte keeps the sign off": ("028000ff", 128),
    "three bytes": ("03c87903", 227_784),
    "empty": ("", None),
    "negative": ("0181", None),
    "cut short": ("0201", None),
    "longer than any height": ("09" + "01" * 9, None),
}


def test_a_coinbase_begins_with_its_blocks_height():
    for name, (script_sig, height) in HEIGHTS.items():
        assert coinbase_height(bytes.fromhex(script_sig)) == height, name

"""The payer's browser proves what `blocktill verify-proof` proves, of the same documents."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from test_document import ALONE, EDITS, FOLLOWING, GARBAGE, WRONG_KINDS
from test_verify import (
    FIRST,
    FORGERIES,
    OTHER_SCRIPT,
    PAID,
    SATS,
    SCRIPT,
    TXS,
    VALID,
    branch,
    evidence_of,
    header,
    leaves_of,
    payment,
    with_headers,
    with_payment,
)

from btcpay.bitcoin.address import (
    DUST_LIMITS_SATS,
    address_of,
    p2pkh,
    p2sh,
    witness_script,
)
from btcpay.bitcoin.header import parse_header
from btcpay.bitcoin.merkle import merkle_root, merkle_root_from_branch
from btcpay.bitcoin.tx import NULL_TXID, NULL_VOUT, Outpoint, Tx, TxIn, TxOut, parse_tx
from btcpay.bitcoin.wire import hash256, hash_from_hex, hash_to_hex, ser_uint32
from btcpay.proofs.block import prove_block
from btcpay.proofs.document import (
    check_document,
    extend_document,
    parse_documents,
    to_document,
)
from btcpay.proofs.verify import Branch, Evidence
from btcpay.values.errors import CommandError, ProofFailed
from btcpay.values.networks import NETWORKS
from tests.support.blocks import REAL, real_block

EASY = NETWORKS["regtest"].max_target_bits


def told(document, sats):
    """The page's words about a document's payment."""
    block = parse_header(bytes.fromhex(document["headers"][0])).hash
    network = document["network"]
    address = address_of(bytes.fromhex(document["script"]), NETWORKS[network])
    shown = {
        "network": network,
        "txid": document["txid"],
        "block": block,
        "address": address,
    }
    return shown | {"floor": str(NETWORKS[network].max_target_bits), "sats": str(sats)}


@pytest.fixture(scope="module")
def address(counter):
    """The page of a proof."""
    counter.till.confirm(invoice := counter.shop.invoice())
    return f"{counter.page(invoice)}/proof"


@pytest.fixture
def tab(open_tab, counter, address):
    opened = open_tab(counter.root)
    assert opened.go(address) == 200
    opened.until("!document.getElementById('check').hidden")
    return opened


MODULE = "import(document.querySelector('script[type=module]').src)"
ONE = "({prove}, [text, page]) => prove(text, page).then(() => 'proven', (flaw) => flaw.message)"


FLAWS = [
    "unreadable",
    "another",
    "id",
    "block",
    "work",
    "headers",
    "branch",
    "coinbase",
    "sum",
]


def browser_says(tab, *cases):
    """Of each (text, page): proven, or the flaw, for which the page has a sentence."""
    every = f"{MODULE}.then((m) => Promise.all({json.dumps(cases)}.map((one) => ({ONE})(m, one))))"
    found = tab.ask(every)
    for flaw in {*found} - {"proven"}:
        assert tab.text(f"flaw-{flaw}").startswith("Not proven: "), flaw
    return found


def command_says(text):
    try:
        for document in parse_documents(text.encode()):
            check_document(document)
    except (ProofFailed, CommandError):
        return False
    return True


def edited(change):
    document = json.loads(json.dumps(ALONE))
    change(document)
    return json.dumps(document)


def of(evidence, txid=PAID.txid):
    return json.dumps(
        to_document(evidence, txid, SCRIPT, "regtest", len(evidence.headers))
    )


MIRRORED = evidence_of(TXS, 6)
HELD = {
    "one header": json.dumps(ALONE),
    "headers that follow": json.dumps(extend_document(ALONE, FOLLOWING)),
    "a witness": of(VALID),
}
REFUSED = {
    **{name: of(evidence) for name, (evidence, _) in FORGERIES.items()},
    **{name: edited(change) for name, change in (EDITS | WRONG_KINDS).items()},
    **{name: text.decode() for name, text in GARBAGE.items() if text.isascii()},
}


def test_the_browser_says_the_same_as_the_command_line_of_each_forgery(tab):
    page = told(ALONE, SATS)
    texts = HELD | REFUSED
    found = browser_says(tab, *((text, page) for text in texts.values()))
    by_browser = {
        name: says == "proven" for name, says in zip(texts, found, strict=True)
    }
    assert by_browser == {name: command_says(text) for name, text in texts.items()}
    assert by_browser == dict.fromkeys(HELD, True) | dict.fromkeys(REFUSED, False)
    assert {*found} == {"proven", *FLAWS} - {"sum"}, dict(
        zip(texts, found, strict=True)
    )


def over(root, payment, coinbase):
    return Evidence(payment, coinbase, [header(root)])


def of_raw(raw):
    """The evidence of bytes that are no transaction in its one form, in a block that has them."""
    leaves = [*leaves_of(TXS[:1]), hash256(raw)]
    return over(
        merkle_root(leaves), Branch(raw, 1, [TXS[0].txid]), branch(TXS[0], leaves, 0)
    )


def deep(levels):
    """A payment beside the coinbase, so many levels below the root."""
    above = [f"{level:064x}" for level in range(1, levels)]
    payment = Branch(PAID.without_witness, 1, [TXS[0].txid, *above])
    siblings = [hash_from_hex(node) for node in payment.merkle]
    root = merkle_root_from_branch(hash_from_hex(PAID.txid), siblings, 1)
    return over(root, payment, Branch(TXS[0].raw, 0, [PAID.txid, *above]))


def backwards(raw):
    """The header with a target below zero, whose hash is low enough for it without its sign."""
    raws = (
        raw[:72] + ser_uint32(0x20FFFFFF) + ser_uint32(nonce)
        for nonce in itertools.count()
    )
    return next(raw for raw in raws if hash256(raw)[31] < 0x7F)


PAIR = hash256(hash_from_hex(TXS[0].txid) + hash_from_hex(TXS[1].txid))
SMALL = Tx(
    2, (TxIn(Outpoint(NULL_TXID, NULL_VOUT), b"\x51" * 3, 0),), (TxOut(1, b"\x51"),), 0
)
NOTHING = payment(sats=0)
SWAPPED = leaves_of((PAID, TXS[0]))
# All is well with each but for one thing.
ONE_FLAW = {
    "a coinbase of 64 bytes": (evidence_of((SMALL, PAID), 1), "coinbase"),
    "25 levels": (deep(25), "branch"),
    "the last position, below zero": (
        replace(MIRRORED, payment=replace(MIRRORED.payment, position=-1)), "branch"),
    "a first transaction that is no coinbase": (evidence_of((TXS[1], PAID), 1), "coinbase"),
    "a coinbase that is second": (
        over(merkle_root(SWAPPED), branch(PAID, SWAPPED, 0), branch(TXS[0], SWAPPED, 1)),
        "coinbase"),
    "a branch shorter than the coinbase's": (
        over(hash256(PAIR + hash_from_hex(PAID.txid)), Branch(PAID.raw, 1, [hash_to_hex(PAIR)]),
            Branch(TXS[0].raw, 0, [TXS[1].txid, PAID.txid])), "branch"),
    "a number of inputs that takes too many bytes": (
        of_raw(PAID.without_witness[:4] + b"\xfd\x01\x00" + PAID.without_witness[5:]),
        "unreadable"),
    "an empty witness": (
        with_payment(
            raw_tx=PAID.without_witness[:4] + b"\0\1" + PAID.without_witness[4:-4] + b"\0" * 5),
        "unreadable"),
    "a target below zero": (with_headers(backwards(FIRST)), "work"),
    "an output of nothing": (evidence_of((TXS[0], NOTHING), 1), "sum"),
}  # fmt: skip
PAYS = {
    "the last position, below zero": TXS[6].txid,
    "an output of nothing": NOTHING.txid,
}


def test_each_rule_alone_refuses_what_every_other_lets_pass(tab):
    assert browser_says(tab, (of(deep(24)), told(json.loads(of(deep(24))), SATS))) == [
        "proven"
    ]
    cases = {}
    for name, (evidence, _) in ONE_FLAW.items():
        raw = evidence.payment.raw_tx
        txid = PAYS.get(name, PAID.txid)
        txid = hash_to_hex(hash256(raw)) if raw[4:7] == b"\xfd\x01\x00" else txid
        text = of(evidence, txid)
        assert not command_says(text), name
        cases[name] = (
            text,
            told(json.loads(text), 0 if name == "an output of nothing" else SATS),
        )
    found = browser_says(tab, *cases.values())
    assert dict(zip(cases, found, strict=True)) == {
        name: flaw for name, (_, flaw) in ONE_FLAW.items()
    }


def test_the_last_of_an_odd_row_is_its_own_sibling_on_either_side_here_too(tab):
    mirrored = replace(MIRRORED, payment=replace(MIRRORED.payment, position=7))
    text = of(mirrored, TXS[6].txid)
    assert command_says(text)
    assert browser_says(tab, (text, told(json.loads(text), SATS))) == ["proven"]


OTHERWISE = {
    "network": ("testnet4", "another"),
    "txid": ("00" * 32, "another"),
    "address": (address_of(OTHER_SCRIPT, NETWORKS["regtest"]), "another"),
    "block": ("00" * 32, "block"),
    "sats": (str(SATS + 1), "sum"),
    "floor": (str(0x1D00FFFF), "work"),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_document_that_holds_does_not_prove_what_the_page_says_otherwise(tab, name):
    value, flaw = OTHERWISE[name]
    assert browser_says(
        tab, (json.dumps(ALONE), told(ALONE, SATS) | {name: value})
    ) == [flaw]


SCRIPTS = {
    "p2pkh": p2pkh(b"\x00" * 19 + b"\x01"),
    "another p2pkh": p2pkh(bytes(range(20))),
    "p2sh": p2sh(b"\xff" * 20),
    "p2wpkh": witness_script(0, bytes(range(20))),
    "p2wsh": witness_script(0, bytes(range(32))),
    "p2tr": witness_script(1, b"\xfe" * 32),
}


def test_the_address_that_the_page_shows_stands_for_its_script_on_every_network(tab):
    scripts = {
        address_of(it, on): it for it in SCRIPTS.values() for on in NETWORKS.values()
    }
    found = tab.ask(f"{MODULE}.then((m) => {json.dumps([*scripts])}.map(m.scriptOf))")
    assert found == [script.hex() for script in scripts.values()]


def document_of(name, position):
    """Of a transaction of a real block, and what it pays to the first script that it pays."""
    block = prove_block(real_block(name), REAL[name])
    tx = parse_tx(block.contents.tx_without_witness(position))
    script = next(
        output.script for output in tx.outputs if len(output.script) in DUST_LIMITS_SATS
    )
    sats = sum(output.value_sats for output in tx.outputs if output.script == script)
    document = to_document(block.evidence(position), tx.txid, script, "mainnet", 1)
    return document, sats


# As mainnet's rules have it, only the last has work enough: the others are older.
@pytest.mark.parametrize(
    ("name", "is_hard"), [("413567", 0), ("2021-09", 0), ("866342", 1)]
)
def test_payments_of_real_blocks_are_proven_where_the_block_has_todays_work(
    tab, blocktill, tmp_path, name, is_hard
):
    documents = [document_of(name, position) for position in (0, 1, 700, 1556)]
    pages = [told(document, sats) for document, sats in documents]
    texts = [json.dumps(document) for document, _ in documents]
    (file := tmp_path / "proof.json").write_text(f"[{','.join(texts)}]")
    output, errors = blocktill.run(
        "verify-proof", str(file), "--json", status=1 - is_hard
    )
    assert is_hard or "claims too little difficulty" in errors
    found = browser_says(tab, *zip(texts, pages, strict=True))
    assert found == ["proven" if is_hard else "work"] * 4
    if is_hard:
        rows = json.loads(output)
        assert {row["block_hash"] for row in rows} == {page["block"] for page in pages}
    at_any_work = [
        (text, page | {"floor": str(EASY)})
        for text, page in zip(texts, pages, strict=True)
    ]
    assert browser_says(tab, *at_any_work) == ["proven"] * 4


FLIP = Path(__file__).with_name("flip.js").read_text(encoding="utf-8")
REASONS = {
    "txid": ["another"],
    "script": ["another"],
    "payment raw_tx": ["id", "unreadable"],
    "coinbase raw_tx": ["coinbase", "unreadable"],
    "headers 0": ["block"],
    **{f"payment merkle {level}": ["branch"] for level in range(13)},
    **{f"coinbase merkle {level}": ["coinbase"] for level in range(13)},
}


def test_each_changed_byte_of_a_real_proof_is_refused_for_its_own_reason(tab):
    document, sats = document_of("866342", 1)
    assert len(document["payment"]["merkle"]) == 13
    paths = [(words[:-1], words[-1]) for words in map(str.split, REASONS)]
    case = json.dumps([json.dumps(document), told(document, sats), paths])
    assert tab.ask(f"{MODULE}.then((module) => ({FLIP})(module, {case}))") == REASONS


def test_a_press_proves_the_pages_payment_and_asks_nobody(tab):
    def asked():
        """A browser fetches a page's icon when it likes."""
        return [url for url in tab.requests if not url.endswith(".svg")]

    before = asked()
    tab.click("#check")
    tab.until("document.querySelector('.verdict.holds')")
    assert (
        tab.text("announce")
        == tab.text("holds")
        == tab.ask("document.querySelector('.verdict').textContent")
    )
    assert tab.ask("document.getElementById('checks').className") == "done"
    tab.ask("(document.querySelector('pre').textContent = '{}')")
    tab.click("#check")
    tab.until("document.querySelector('.verdict.problem')")
    assert tab.text("announce") == tab.text("flaw-unreadable")
    assert tab.ask("document.getElementById('checks').className") == ""
    assert asked() == before

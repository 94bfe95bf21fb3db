"""The payer's browser proves what `btcpay verify-proof` proves, of the same documents."""

import json
from dataclasses import replace

import pytest
from blocks import REAL, real_block
from test_document import ALONE, EDITS, FOLLOWING, GARBAGE, WRONG_KINDS
from test_verify import FORGERIES, OTHER_SCRIPT, PAID, SATS, SCRIPT, TXS, VALID, evidence_of

from btcpay.bitcoin.address import DUST_SATS, address_of, p2pkh, p2sh, witness_script
from btcpay.bitcoin.header import parse_header
from btcpay.bitcoin.tx import parse_tx
from btcpay.proofs.block import prove_block
from btcpay.proofs.verify import check_document, extended, load, to_document
from btcpay.values.errors import CommandError, ProofFailed
from btcpay.values.networks import NETWORKS

EASY = NETWORKS["regtest"].max_target_bits


def told(document, sats):
    """What the page says of a document's payment."""
    block = parse_header(bytes.fromhex(document["headers"][0])).hash
    network = document["network"]
    address = address_of(bytes.fromhex(document["script"]), NETWORKS[network])
    shown = {"network": network, "txid": document["txid"], "block": block, "address": address}
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


FLAWS = ["unreadable", "another", "id", "block", "work", "headers", "branch", "coinbase", "sum"]


def browser_says(tab, *cases):
    """Of each (text, page): proven, or the flaw, for which the page has a sentence."""
    every = f"{MODULE}.then((m) => Promise.all({json.dumps(cases)}.map((one) => ({ONE})(m, one))))"
    found = tab.ask(every)
    for flaw in {*found} - {"proven"}:
        assert tab.text(f"flaw-{flaw}").startswith("Not proven: "), flaw
    return found


def command_says(text):
    try:
        for document in load(text.encode()):
            check_document(document)
    except (ProofFailed, CommandError):
        return False
    return True


def edited(change):
    document = json.loads(json.dumps(ALONE))
    change(document)
    return json.dumps(document)


def of(evidence, txid=PAID.txid):
    return json.dumps(to_document(evidence, txid, SCRIPT, "regtest", len(evidence.headers)))


MIRRORED = evidence_of(TXS, 6)
HELD = {
    "one header": json.dumps(ALONE),
    "headers that follow": json.dumps(extended(ALONE, FOLLOWING)),
    "a witness": of(VALID),
}
REFUSED = {
    **{name: of(evidence) for name, (evidence, _) in FORGERIES.items()},
    **{name: edited(change) for name, change in (EDITS | WRONG_KINDS).items()},
    **{name: text.decode() for name, text in GARBAGE.items() if text.isascii()},
}


def test_it_says_the_same_as_the_command_line_of_what_holds_and_of_each_forgery(tab):
    page = told(ALONE, SATS)
    texts = HELD | REFUSED
    found = browser_says(tab, *((text, page) for text in texts.values()))
    by_browser = {name: says == "proven" for name, says in zip(texts, found, strict=True)}
    assert by_browser == {name: command_says(text) for name, text in texts.items()}
    assert by_browser == dict.fromkeys(HELD, True) | dict.fromkeys(REFUSED, False)
    assert {*found} == {"proven", *FLAWS} - {"sum"}, dict(zip(texts, found, strict=True))


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
    assert browser_says(tab, (json.dumps(ALONE), told(ALONE, SATS) | {name: value})) == [flaw]


SCRIPTS = {
    "p2pkh": p2pkh(b"\x00" * 19 + b"\x01"),
    "another p2pkh": p2pkh(bytes(range(20))),
    "p2sh": p2sh(b"\xff" * 20),
    "p2wpkh": witness_script(0, bytes(range(20))),
    "p2wsh": witness_script(0, bytes(range(32))),
    "p2tr": witness_script(1, b"\xfe" * 32),
}


def test_the_address_that_the_page_shows_stands_for_its_script_on_every_network(tab):
    scripts = {address_of(it, on): it for it in SCRIPTS.values() for on in NETWORKS.values()}
    found = tab.ask(f"{MODULE}.then((m) => {json.dumps([*scripts])}.map(m.scriptOf))")
    assert found == [script.hex() for script in scripts.values()]


def document_of(name, position):
    """Of a transaction of a real block, and what it pays to the first script that it pays."""
    block = prove_block(real_block(name), REAL[name])
    tx = parse_tx(block.parts.stripped(position))
    script = next(output.script for output in tx.outputs if len(output.script) in DUST_SATS)
    sats = sum(output.value_sats for output in tx.outputs if output.script == script)
    document = to_document(block.evidence(position), tx.txid, script, "mainnet", 1)
    return document, sats


# As mainnet's rules have it, only the last has work enough: the others are older.
@pytest.mark.parametrize(("name", "is_hard"), [("413567", 0), ("2021-09", 0), ("866342", 1)])
def test_payments_of_real_blocks_are_proven_where_the_block_has_todays_work(
    tab, btcpay, tmp_path, name, is_hard
):
    documents = [document_of(name, position) for position in (0, 1, 700, 1556)]
    pages = [told(document, sats) for document, sats in documents]
    texts = [json.dumps(document) for document, _ in documents]
    (file := tmp_path / "proof.json").write_text(f"[{','.join(texts)}]")
    output, errors = btcpay.run("verify-proof", str(file), "--json", status=1 - is_hard)
    assert is_hard or "claims too little difficulty" in errors
    found = browser_says(tab, *zip(texts, pages, strict=True))
    assert found == ["proven" if is_hard else "work"] * 4
    if is_hard:
        rows = json.loads(output)
        assert {row["block_hash"] for row in rows} == {page["block"] for page in pages}
    at_any_work = [
        (text, page | {"floor": str(EASY)}) for text, page in zip(texts, pages, strict=True)
    ]
    assert browser_says(tab, *at_any_work) == ["proven"] * 4


# The flaws that the page finds where a bit of a byte was changed: of each byte one, each in turn.
FLIP = """
async ({prove}, [text, page, paths]) => {
    const flaws = {};
    for (const [holder, key] of paths) {
        const holderOf = (whole) => holder.reduce((it, name) => it[name], whole);
        const was = holderOf(JSON.parse(text))[key], found = new Set();
        for (let at = 0; at < was.length; at += 2) {
            const byte = parseInt(was.slice(at, at + 2), 16) ^ (1 << (at / 2 % 8));
            const whole = JSON.parse(text), changed = byte.toString(16).padStart(2, '0');
            holderOf(whole)[key] = was.slice(0, at) + changed + was.slice(at + 2);
            const judged = prove(JSON.stringify(whole), page);
            found.add(await judged.then(() => 'proven', (flaw) => flaw.message));
        }
        flaws[[...holder, key].join(' ')] = [...found].sort();
    }
    return flaws;
}
"""
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
    asked = len(tab.requests)
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
    assert len(tab.requests) == asked

"""Explorers that lie to the check, and the proof that it keeps, shows and checks again offline."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from fake_esplora import Json, LiedTo, Terminal, say, tx_of

from btcpay.wallet.account import script_of

PROOF_PATHS = "/tx/|/block/|/block-height/"
NOWHERE = {
    "BTCPAY_DATABASE_URL": "sqlite:////nowhere/at/all.db",
    "BTCPAY_EXPLORERS": "http://127.0.0.1:9",
}


@pytest.fixture
def till(lied_to: Callable[..., LiedTo]) -> LiedTo:
    """Its only explorer is the liar."""
    return lied_to()


def script_for(invoice: Json) -> bytes:
    return script_of(invoice["deposit_address"], "p2wpkh")


def state(till: LiedTo, invoice: Json) -> tuple[str, int, int]:
    """What the checkout page is told: status, satoshis received and unconfirmed."""
    body = till.shop.client.get(f"/pay/{invoice['id']}/status").json
    return body["status"], body["received_sats"], body["unconfirmed_sats"]


def invent(till: LiedTo, invoice: Json) -> Json:
    """A transaction that nobody made, in the best block that there is."""
    block = till.sandbox.chain.ledger.tip
    invented = tx_of(
        7, script_for(invoice), invoice["amount_sats"], till.sandbox.chain.ledger.height
    )
    invented["status"] |= {"block_hash": block.hash, "block_time": block.time}
    return invented


def lie_about(invoice: Json, lie: Callable[[Json], Json]) -> dict[str, Callable[[Any], Any]]:
    """Each transaction of the invoice's address is shown as `lie` makes it."""
    return {f"/address/{invoice['deposit_address']}/txs$": lambda txs: [lie(tx) for tx in txs]}


def with_amount(invoice: Json, sats: int) -> Callable[[Json], Json]:
    script = script_for(invoice).hex()

    def lie(tx: Json) -> Json:
        vout = [o | {"value": sats} if o["scriptpubkey"] == script else o for o in tx["vout"]]
        return tx | {"vout": vout}

    return lie


def with_status(**changes: Any) -> Callable[[Json], Json]:
    return lambda tx: tx | {"status": tx["status"] | changes}


def unproven(till: LiedTo, invoice: Json) -> None:
    """The check says that the invoice could not be looked at, and nothing has come of it."""
    run = till.check()
    assert (run.failed, run.changed) == ([invoice["id"]], {})
    assert till.look(invoice)["status"] == "open"
    assert till.payments() == [] and till.balance()[0] == 0


# Lies


def test_an_invented_transaction_pays_nothing_and_is_reported(till):
    invoice = till.shop.invoice()
    till.liar.lies = {
        f"/address/{invoice['deposit_address']}/txs$": lambda _: [invent(till, invoice)]
    }
    for _ in range(3):
        unproven(till, invoice)
    assert state(till, invoice)[0] == "open"


def test_the_command_line_does_not_call_an_invented_transaction_paid(till):
    invoice = till.shop.invoice()
    till.liar.lies = {
        f"/address/{invoice['deposit_address']}/txs$": lambda _: [invent(till, invoice)]
    }
    till.check()
    shown = Terminal(till).json("invoice", "show", invoice["id"])
    assert shown["invoice"]["status"] == "open" and shown["payments"] == []
    assert not shown["standing"]["reason"].startswith("paid")


def test_an_invented_transaction_is_not_proven_by_the_honest_explorer_either(lied_to):
    till = lied_to(honest_too=True)
    one, other = till.shop.invoice(), till.shop.invoice()
    till.liar.lies = {f"/address/{one['deposit_address']}/txs$": lambda _: [invent(till, one)]}
    till.pay(other)
    till.mine()
    run = till.check()
    assert (run.failed, run.changed) == ([one["id"]], {other["id"]: "paid"})
    assert till.look(one)["status"] == "open" and till.payments(one) == []


def test_the_proof_of_another_transaction_does_not_lend_itself(till):
    """The liar shows a real payment to somebody else under the invented one's id."""
    invoice = till.shop.invoice()
    real = till.sandbox.wallet.pay(till.sandbox.wallet.address, 50_000, till.now)
    till.mine()
    root = till.liar.honest
    till.liar.lies = {
        f"/address/{invoice['deposit_address']}/txs$": lambda _: [invent(till, invoice)],
        f"/tx/{7:064x}/": lambda _: say("moved", 302, Location=f"{root}/tx/{real}/hex"),
    }
    unproven(till, invoice)


def test_an_amount_that_is_more_than_came_pays_nothing(till):
    invoice = till.shop.invoice()
    till.pay(invoice, 1_000)
    till.mine()
    till.liar.lies = lie_about(invoice, with_amount(invoice, invoice["amount_sats"]))
    till.check()
    assert till.look(invoice)["status"] == "open"
    assert till.payments() == [] and till.balance()[0] == 0


@pytest.mark.parametrize("factor", [2, 0.5], ids=["too much", "too little"])
def test_an_amount_that_was_lied_about_once_is_corrected_by_the_truth(till, factor):
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    sats = int(invoice["amount_sats"] * factor)
    till.liar.lies = lie_about(invoice, with_amount(invoice, sats))
    till.check()
    till.mine()
    till.check()
    till.liar.lies = {}
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [(p["tx_hash"], p["amount_sats"]) for p in till.payments(invoice)] == [
        (txid, invoice["amount_sats"])
    ]


def test_an_amount_that_the_proof_contradicts_is_reported(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.liar.lies = lie_about(invoice, with_amount(invoice, 2 * invoice["amount_sats"]))
    unproven(till, invoice)


def late_payment(till: LiedTo) -> Json:
    """Paid and mined two hours after the deadline, with the liar saying before."""
    invoice = till.shop.invoice(expires_in_hours=1)
    before = till.now
    till.clock.move(hours=3)
    till.pay(invoice)
    till.mine()
    till.liar.lies = lie_about(invoice, with_status(block_time=before))
    return invoice


def test_a_time_of_the_block_that_the_header_contradicts_makes_no_late_payment_timely(till):
    invoice = late_payment(till)
    till.check()
    assert till.look(invoice)["status"] != "paid" and till.payments(invoice) == []
    till.liar.lies = {}
    till.check()
    assert till.look(invoice)["status"] == "expired"
    assert [p["invoice_id"] for p in till.payments()] == [None]


def test_a_time_that_the_proof_contradicts_is_reported(till):
    unproven(till, late_payment(till))


def test_a_payment_said_to_be_in_another_block_is_not_proven(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    ledger = till.sandbox.chain.ledger
    till.liar.lies = lie_about(invoice, with_status(block_hash=ledger.hashes[-2]))
    unproven(till, invoice)
    till.liar.lies = {}
    assert till.check().changed == {invoice["id"]: "paid"}


def test_a_payment_that_waits_and_is_said_to_be_confirmed_is_not_proven(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    block = till.sandbox.chain.ledger.tip
    said = {"block_height": till.sandbox.chain.ledger.height, "block_hash": block.hash}
    status = with_status(confirmed=True, block_time=block.time, **said)
    till.liar.lies = lie_about(invoice, status)
    unproven(till, invoice)
    till.liar.lies = {}
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}


def test_a_height_that_is_not_the_blocks_own_is_not_believed(till):
    """The coinbase says the height (BIP34); a wrong one would look like a reorganisation."""
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    above = till.sandbox.chain.ledger.height - 1
    till.liar.lies = lie_about(invoice, with_status(block_height=above))
    till.check()
    till.liar.lies = {}
    for _ in range(2):
        till.check()
    assert till.look(invoice)["status"] == "paid"
    assert "reorganised" not in till.kinds(invoice)


def test_an_output_invented_once_beside_a_real_one_does_not_hide_the_real_one(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    more = {"scriptpubkey": script_for(invoice).hex(), "value": 5_000}
    till.liar.lies = lie_about(invoice, lambda tx: tx | {"vout": [*tx["vout"], more]})
    till.check()
    assert till.look(invoice)["status"] == "open"
    till.liar.lies = {}
    till.check()
    assert till.look(invoice)["status"] == "paid"
    assert till.balance() == (invoice["amount_sats"],) * 2


def test_an_invention_told_once_does_not_keep_an_invoice_open_for_ever(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    address = invoice["deposit_address"]
    till.liar.lies = {f"/address/{address}/txs$": lambda _: [invent(till, invoice)]}
    till.check()
    till.liar.lies = {}
    till.clock.move(hours=2)
    for _ in range(3):
        till.clock.move(minutes=1)
        till.check()
    assert till.look(invoice)["status"] == "expired"
    assert till.balance() == (0, 0)


def test_an_output_said_to_be_anothers_once_still_pays_its_own_invoice(till):
    one, other = till.shop.invoice(), till.shop.invoice()
    till.pay(one)
    till.mine()
    [tx] = requests.get(
        f"{till.liar.honest}/address/{one['deposit_address']}/txs", timeout=10
    ).json()
    vout = [o | {"scriptpubkey": script_for(other).hex()} for o in tx["vout"]]
    lie = tx | {"vout": vout}
    till.liar.lies = {
        f"/address/{one['deposit_address']}/": lambda _: say("busy", 503),
        f"/address/{other['deposit_address']}/txs$": lambda _: [lie],
    }
    till.check()
    till.liar.lies = {}
    till.check()
    assert till.check().failed == []
    assert till.look(one)["status"] == "paid" and till.look(other)["status"] == "open"


LACKING = {
    "no raw transactions": r"/tx/\w+/hex",
    "no Merkle branches": "/merkle-proof",
    "no headers": "/header",
    "no coinbases": "/txid/0",
}


@pytest.mark.parametrize("path", LACKING.values(), ids=LACKING)
def test_an_explorer_that_proves_nothing_is_not_believed_at_all_and_is_reported(till, path):
    """Its tip is the first thing that it cannot prove."""
    invoice, unpaid = till.shop.invoice(), till.shop.invoice(expires_in_hours=1)
    till.clock.move(hours=1)
    till.pay(invoice)
    till.mine()
    till.liar.lies = {path: lambda _: say("endpoint does not exist", 404)}
    run = till.check()
    assert run.tip_failed and not run.complete
    assert sorted(run.failed) == sorted([invoice["id"], unpaid["id"]])
    assert (run.changed, till.payments()) == ({}, [])
    found = Terminal(till).json("check", "--invoice", invoice["id"], status=1)
    assert (found["failed"], found["chain_failed"]) == ([invoice["id"]], True)
    till.liar.lies = {}
    assert till.check().changed == {invoice["id"]: "paid", unpaid["id"]: "expired"}


MISTAKES: dict[str, tuple[str, Any]] = {
    "a header of another block": ("/header", lambda _: "00" * 80),
    "a header cut short": ("/header", lambda text: text[:-2]),
    "a branch that is none": ("/merkle-proof", lambda _: {"merkle": ["xx"], "pos": 0}),
    "a branch without position": ("/merkle-proof", lambda proof: {"merkle": proof["merkle"]}),
    "a position beyond all": ("/merkle-proof", lambda proof: proof | {"pos": 2**32 - 1}),
    "another position": ("/merkle-proof", lambda proof: proof | {"pos": proof["pos"] ^ 1}),
    "a branch of a thousand": ("/merkle-proof", lambda p: p | {"merkle": ["00" * 32] * 1000}),
    "a transaction in capitals": ("/hex", lambda text: text.upper() + "GG"),
    "an empty transaction": ("/hex", lambda _: ""),
    "a transaction and a byte": ("/hex", lambda text: text + "00"),
    "an HTML page": ("/hex", lambda _: "<html>"),
    "a coinbase that is no hash": ("/txid/0", lambda _: "none"),
    "an error": ("/header", lambda _: say("oops", 500)),
}


@pytest.mark.parametrize(("path", "lie"), MISTAKES.values(), ids=MISTAKES)
def test_evidence_with_a_mistake_in_it_proves_nothing(till, path, lie):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.liar.lies = {path: lie}
    unproven(till, invoice)
    till.liar.lies = {}
    assert till.check().changed == {invoice["id"]: "paid"}


@pytest.mark.parametrize(("path", "lie"), MISTAKES.values(), ids=MISTAKES)
def test_the_second_explorer_proves_what_the_first_cannot(lied_to, path, lie):
    till = lied_to(honest_too=True)
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.liar.lies = {path: lie}
    run = till.check()
    assert (run.failed, run.changed) == ([], {invoice["id"]: "paid"})
    assert till.liar.count(path) > 0


# Several confirmations


def test_three_confirmations_need_three_headers_that_follow_one_another(lied_to):
    till = lied_to(BTCPAY_CONFIRMATIONS="3")
    invoice = till.shop.invoice()
    till.pay(invoice)
    for _ in range(2):
        till.mine()
        assert till.check().changed == {}
    till.mine()
    ledger = till.sandbox.chain.ledger
    unrelated = ledger.hashes[5]
    till.liar.lies = {f"/block-height/{ledger.height}$": lambda _: unrelated}
    unproven(till, invoice)
    till.liar.lies = {f"/block-height/{ledger.height}$": lambda _: say("not found", 404)}
    unproven(till, invoice)
    till.liar.lies = {}
    assert till.check().changed == {invoice["id"]: "paid"}
    (document,) = json.loads(show_proof(till, invoice))
    headers = [ledger.blocks[hash].header.hex() for hash in ledger.hashes[-3:]]
    assert (document["confirmations"], document["headers"]) == (3, headers)


def test_a_tip_that_is_higher_than_the_blocks_shown_makes_no_confirmations(lied_to):
    till = lied_to(BTCPAY_CONFIRMATIONS="3")
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.liar.lies = {"/blocks/tip/height": lambda text: str(int(text) + 2)}
    unproven(till, invoice)


# One to prove the tip, whose block's own evidence serves the payment in it as well; one more to
# compare the payment's block, and four when that is below the tip.
@pytest.mark.parametrize(("confirmations", "calls"), [(1, 6 + 2), (2, 8 + 2 + 4), (3, 10 + 2 + 4)])
def test_a_proof_costs_six_calls_and_two_for_each_further_confirmation_and_only_once(
    lied_to, confirmations, calls
):
    till = lied_to(BTCPAY_CONFIRMATIONS=str(confirmations))
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine(confirmations)
    run = till.check()
    assert run.changed == {invoice["id"]: "paid"}
    assert till.liar.count(PROOF_PATHS) == calls
    assert run.calls == len(till.liar.asked)
    till.liar.asked.clear()
    till.check()
    assert till.liar.count("/tx/|/block/") == 0


# The proof that is kept


def show_proof(till: LiedTo, invoice: Json) -> str:
    return Terminal(till).run("invoice", "show", invoice["id"], "--proof")[0]


def paid(till: LiedTo) -> Json:
    """An invoice, paid in a block with others' transactions."""
    invoice = till.shop.invoice()
    for _ in range(3):
        till.sandbox.wallet.pay(till.sandbox.wallet.address, 50_000, till.now)
    till.pay(invoice)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    return invoice


def verify(till: LiedTo, folder: Path, text: str | bytes, status: int = 0) -> tuple[str, str]:
    """`verify-proof` of a file with this text, where no database or explorer can be had."""
    path = folder / "proof.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Terminal(till).run("verify-proof", str(path), "--json", status=status, **NOWHERE)


def test_the_proof_is_shown_and_holds_offline(till, tmp_path):
    invoice = paid(till)
    text = show_proof(till, invoice)
    (row,) = json.loads(verify(till, tmp_path, text)[0])
    block = till.sandbox.chain.ledger.tip
    assert row["txid"] == till.look(invoice)["tx_hash"]
    assert row["amount_sats"] == invoice["amount_sats"]
    assert row["script"] == script_for(invoice).hex()
    assert (row["block_hash"], row["network"]) == (block.hash, "regtest")
    (alone,) = json.loads(text)
    assert json.loads(verify(till, tmp_path, json.dumps(alone))[0]) == [row]


def test_every_payment_of_an_invoice_has_its_proof(till, tmp_path):
    invoice = till.shop.invoice()
    txids = [till.pay(invoice, 10_000)]
    till.mine()
    till.check()
    txids.append(till.pay(invoice))
    till.mine()
    till.check()
    rows = json.loads(verify(till, tmp_path, show_proof(till, invoice))[0])
    assert [row["txid"] for row in rows] == txids
    assert [row["amount_sats"] for row in rows] == [10_000, invoice["amount_sats"]]


def test_two_outputs_of_one_transaction_have_one_proof_that_shows_both(till, tmp_path):
    invoice = till.shop.invoice()
    till.pay_outputs((invoice, 10_000), (invoice, invoice["amount_sats"]))
    till.mine()
    till.check()
    text = show_proof(till, invoice)
    assert len(json.loads(text)) == 1
    rows = json.loads(verify(till, tmp_path, text)[0])
    assert [row["amount_sats"] for row in rows] == [10_000, invoice["amount_sats"]]


def test_each_invoice_that_a_transaction_pays_has_a_proof_for_its_own_script(till, tmp_path):
    one, two = till.shop.invoice(25), till.shop.invoice(40)
    till.pay_outputs((one, one["amount_sats"]), (two, two["amount_sats"]))
    till.mine()
    till.check()
    for invoice in (one, two):
        (row,) = json.loads(verify(till, tmp_path, show_proof(till, invoice))[0])
        assert row["amount_sats"] == invoice["amount_sats"]
        assert row["script"] == script_for(invoice).hex()


def test_an_invoice_without_a_payment_has_no_proof_to_show(till):
    invoice = till.shop.invoice()
    output, errors = Terminal(till).run("invoice", "show", invoice["id"], "--proof", status=1)
    assert output == "" and "no payment" in errors


def edit(*keys: str | int, to: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Changes what lies at the end of the keys."""

    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = to(document[keys[-1]])

    return change


def nudged(text: str) -> str:
    """The hex digits with the last bit of the last one changed."""
    return text[:-1] + f"{int(text[-1], 16) ^ 1:x}"


def test_a_proof_is_kept_without_witness_and_one_with_it_still_holds(till, tmp_path):
    invoice = paid(till)
    (document,) = json.loads(show_proof(till, invoice))
    assert document["format"] == "btcpay payment proof 1"
    txs = till.sandbox.chain.ledger.tip.txs
    for part in ("payment", "coinbase"):
        tx = txs[document[part]["position"]]
        assert tx.has_witness
        assert document[part]["raw_tx"] == tx.stripped.hex()
        document[part]["raw_tx"] = tx.raw.hex()
    (row,) = json.loads(verify(till, tmp_path, json.dumps(document))[0])
    assert row["txid"] == till.look(invoice)["tx_hash"]


EDITS = {
    "the script": edit("script", to=nudged),
    "the transaction's id": edit("txid", to=nudged),
    "the raw transaction": edit("payment", "raw_tx", to=nudged),
    "the position": edit("payment", "position", to=lambda was: was ^ 4),
    "a negative position": edit("payment", "position", to=lambda _: -1),
    "the first sibling": edit("payment", "merkle", 0, to=nudged),
    "the last sibling": edit("payment", "merkle", -1, to=nudged),
    "a sibling less": edit("payment", "merkle", to=lambda was: was[1:]),
    "a sibling of the coinbase": edit("coinbase", "merkle", 0, to=nudged),
    "the coinbase": edit("coinbase", "raw_tx", to=nudged),
    "the Merkle root in the header": edit(
        "headers", 0, to=lambda raw: raw[:72] + nudged(raw[72:74]) + raw[74:]
    ),
    "the difficulty in the header": edit(
        "headers", 0, to=lambda raw: raw[:144] + "ffff001d" + raw[152:]
    ),
    "no headers": edit("headers", to=lambda _: []),
    "more confirmations": edit("confirmations", to=lambda was: was + 1),
    "no confirmations": edit("confirmations", to=lambda _: 0),
    "the network": edit("network", to=lambda _: "mainnet"),
}


def test_a_proof_fails_after_any_edit(till, tmp_path):
    (document,) = json.loads(show_proof(till, paid(till)))
    for name, change in EDITS.items():
        edited = copy.deepcopy(document)
        change(edited)
        output, errors = verify(till, tmp_path, json.dumps([document, edited]), status=1)
        assert output == "" and "the proof fails" in errors, name
        assert "Traceback" not in errors, name


GARBAGE: dict[str, str | bytes] = {
    "nothing": "",
    "no JSON": "{",
    "no proof": "{}",
    "a number": "7",
    "null": "null",
    "a list of a list": "[[]]",
    "an empty list": "[]",
    "no text": b"\xff\xfe\x00",
    "many brackets": "[" * 100_000,
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE)
def test_a_file_that_is_no_proof_is_refused_in_a_sentence(till, tmp_path, text):
    output, errors = verify(till, tmp_path, text, status=1)
    assert output == "" and errors != "" and "Traceback" not in errors


WRONG_KINDS = {
    "another format": edit("format", to=lambda _: "btcpay payment proof 2"),
    "an unknown network": edit("network", to=lambda _: "litecoin"),
    "a network that is a list": edit("network", to=lambda _: []),
    "a script that is no hex": edit("script", to=lambda _: "xyz"),
    "a script that is a number": edit("script", to=lambda _: 5),
    "a sibling of 31 bytes": edit("payment", "merkle", 0, to=lambda was: was[2:]),
    "siblings that are text": edit("payment", "merkle", to=lambda _: "abcd"),
    "a position that is text": edit("payment", "position", to=lambda _: "first"),
    "a position without end": edit("payment", "position", to=lambda _: float("inf")),
    "a position that is null": edit("payment", "position", to=lambda _: None),
    "confirmations without end": edit("confirmations", to=lambda _: float("inf")),
    "headers that are null": edit("headers", to=lambda _: None),
    "a payment that is a list": edit("payment", to=lambda _: []),
}


def test_a_proof_with_a_value_of_another_kind_is_refused_in_a_sentence(till, tmp_path):
    (document,) = json.loads(show_proof(till, paid(till)))
    complaints = {}
    for name, change in WRONG_KINDS.items():
        edited = copy.deepcopy(document)
        change(edited)
        output, errors = verify(till, tmp_path, json.dumps(edited), status=1)
        if output or "Traceback" in errors:
            complaints[name] = errors.strip().splitlines()[-1]
    assert complaints == {}


def test_a_file_that_is_not_there_is_wrong_use(till):
    _, errors = Terminal(till).run("verify-proof", "/nowhere.json", status=2, **NOWHERE)
    assert "Traceback" not in errors

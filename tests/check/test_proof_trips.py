"""The proof that the check makes of a block, keeps, shows and checks again offline."""

import json

from btcpay.bitcoin.address import script_of
from tests.support.builders import REGTEST
from tests.support.fake_esplora import Terminal

NOWHERE = {
    "BLOCKTILL_DATABASE_URL": "sqlite:////nowhere/at/all.db",
    "BLOCKTILL_EXPLORERS": "http://127.0.0.1:9",
}


def script_for(invoice):
    return script_of(invoice["deposit_address"], REGTEST)


def show_proof(till, invoice):
    return Terminal(till).run("invoice", "show", invoice["id"], "--proof")[0]


def paid_invoice(till):
    """An invoice, paid in a block with others' transactions."""
    invoice = till.shop.invoice()
    for _ in range(3):
        till.sandbox.wallet.pay(till.sandbox.wallet.address, 50_000, till.now)
    assert till.confirm(invoice).new_statuses == {invoice["id"]: "paid"}
    return invoice


def verify(till, folder, text, status=0):
    """`verify-proof` of a file with this text, where no database or explorer can be had."""
    path = folder / "proof.json"
    path.write_text(text)
    return Terminal(till).run(
        "verify-proof", str(path), "--json", status=status, **NOWHERE
    )


def test_the_proof_is_shown_and_holds_offline(till, tmp_path):
    invoice = paid_invoice(till)
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
    till.mine_and_check()
    txids.append(till.pay(invoice))
    till.mine_and_check()
    rows = json.loads(verify(till, tmp_path, show_proof(till, invoice))[0])
    assert [row["txid"] for row in rows] == txids
    assert [row["amount_sats"] for row in rows] == [10_000, invoice["amount_sats"]]


def test_outputs_to_one_script_have_one_proof_and_each_invoice_its_own(till, tmp_path):
    one = till.shop.invoice(25)
    two = till.shop.invoice(40)
    parts = {one["id"]: [10_000, one["amount_sats"]], two["id"]: [two["amount_sats"]]}
    till.pay_outputs(
        *((one, sats) for sats in parts[one["id"]]), (two, two["amount_sats"])
    )
    till.mine_and_check()
    for invoice in (one, two):
        assert [p["amount_sats"] for p in till.payments(invoice)] == [
            sum(parts[invoice["id"]])
        ]
        text = show_proof(till, invoice)
        rows = json.loads(verify(till, tmp_path, text)[0])
        assert len(json.loads(text)) == 1
        assert [row["amount_sats"] for row in rows] == parts[invoice["id"]]
        assert {row["script"] for row in rows} == {script_for(invoice).hex()}


def test_an_invoice_without_a_payment_has_no_proof_to_show(till):
    invoice = till.shop.invoice()
    output, errors = Terminal(till).run(
        "invoice", "show", invoice["id"], "--proof", status=1
    )
    assert output == "" and "no payment" in errors


def test_a_proof_is_kept_without_witness_and_one_with_it_still_holds(till, tmp_path):
    invoice = paid_invoice(till)
    (document,) = json.loads(show_proof(till, invoice))
    assert document["format"] == "btcpay payment proof 1"
    txs = till.sandbox.chain.ledger.tip.txs
    for part in ("payment", "coinbase"):
        tx = txs[document[part]["position"]]
        assert any(spending.witness for spending in tx.inputs)
        assert document[part]["raw_tx"] == tx.without_witness.hex()
        document[part]["raw_tx"] = tx.raw.hex()
    (row,) = json.loads(verify(till, tmp_path, json.dumps(document))[0])
    assert row["txid"] == till.look(invoice)["tx_hash"]


def test_a_proof_that_was_edited_fails(till, tmp_path):
    """Each of its fields is edited in tests/proofs/test_document.py."""
    (document,) = json.loads(show_proof(till, paid_invoice(till)))
    document["txid"] = document["txid"][::-1]
    output, errors = verify(till, tmp_path, json.dumps([document]), status=1)
    assert output == "" and "the proof fails" in errors and "Traceback" not in errors

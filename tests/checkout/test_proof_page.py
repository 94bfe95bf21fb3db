"""The proof of a paid invoice, as its payer sees it: a page, and a file for `verify-proof`."""

import json
import re
from html import unescape

import pytest

from btcpay.proofs.document import check_document
from storage.queries import payments
from tests.support.builders import pay
from tests.support.fake_esplora import Terminal
from tests.support.payer import Page


def paid(till, *parts):
    """An invoice, paid in a block for each of these amounts, and in one for the rest of it."""
    invoice = till.shop.invoice(
        25, customer_email="ann@example.com", description="Two bags"
    )
    for sats in (*parts, invoice["amount_sats"] - sum(parts)):
        till.confirm(invoice, sats)
    return invoice


def show(shop, invoice, end="/proof"):
    answer = shop.client.get(f"/pay/{invoice['id']}{end}")
    assert answer.status_code == 200, answer.text
    return answer


def sections(page):
    """For each payment what the script is told, and the document that it reads."""
    told = [named for tag, named in page.tags if tag == "section"]
    written = re.findall(r"<pre[^>]*>(.*?)</pre>", page.source, re.S)
    return [
        (
            {name.removeprefix("data-"): text for name, text in one.items()},
            json.loads(unescape(it)),
        )
        for one, it in zip(told, written, strict=True)
    ]


@pytest.mark.both_databases
def test_each_payment_has_its_block_and_its_document_as_the_command_line_shows_it(till):
    invoice = paid(till, 10_000)
    told = sections(page := Page(show(till.shop, invoice).text))
    ledger = till.sandbox.chain.ledger
    assert [one["block"] for one, _ in told] == ledger.hashes[-2:]
    assert [one["sats"] for one, _ in told] == [
        "10000",
        str(invoice["amount_sats"] - 10_000),
    ]
    for back, (one, document) in enumerate(reversed(told), 1):
        proven = check_document(document)
        assert (one["txid"], one["block"]) == (proven.txid, proven.block_hash)
        assert int(one["sats"]) == sum(proven.amounts_sats.values())
        assert f"<dd>{len(ledger.hashes) - back}</dd>" in page.source
    kept = json.loads(
        Terminal(till).run("invoice", "show", invoice["id"], "--proof")[0]
    )
    assert kept == [document for _, document in told]
    assert kept == show(till.shop, invoice, "/proof.json").json


def test_the_file_is_checked_by_the_command_that_the_page_names(till, tmp_path):
    invoice = paid(till)
    page = Page(show(till.shop, invoice).text)
    words = page.texts["command"].split()
    assert words[:2] == ["blocktill", "verify-proof"]
    assert words[2] == page.attributes["download"]["download"]
    file = tmp_path / words[2]
    file.write_bytes(till.shop.client.get(page.attributes["download"]["href"][5:]).data)
    (row,) = json.loads(Terminal(till).run("verify-proof", str(file), "--json")[0])
    assert row["txid"] == till.look(invoice)["tx_hash"]


BRANCHES = {"payment", "coinbase"}
DOCUMENT = {
    "format",
    "network",
    "txid",
    "script",
    "confirmations",
    "headers",
} | BRANCHES


def test_page_and_file_tell_nothing_but_what_they_are_for(till):
    invoice = paid(till)
    other = till.shop.invoice()
    till.shop.sql(
        "UPDATE proof SET document = replace(document, '{\"f', '{\"inner\": 1, \"f')"
    )
    (document,) = show(till.shop, invoice, "/proof.json").json
    assert document.keys() == DOCUMENT
    for branch in BRANCHES:
        assert document[branch].keys() == {"raw_tx", "position", "merkle"}
    shown = show(till.shop, invoice).text
    for secret in ("ann@example.com", "inner", other["id"], till.settings.explorers[0]):
        assert secret not in shown


def test_the_receipt_of_what_was_paid_on_the_chain_leads_to_its_proof_and_back(till):
    invoice = paid(till)
    receipt = Page(till.shop.client.get(f"/pay/{invoice['id']}?lang=de").text)
    assert receipt.texts["proof"] == "Zahlungsnachweis"
    href = receipt.attributes["proof"]["href"]
    assert href == f"../pay/{invoice['id']}/proof?lang=de"
    page = Page(till.shop.client.get(href[2:]).text)
    assert page.attributes["back"]["href"] == f"../../pay/{invoice['id']}?lang=de"


def test_what_is_not_paid_has_no_proof_until_it_is_settled_with_what_came(till):
    waiting = till.shop.invoice()
    half = till.shop.invoice()
    till.confirm(half, 10_000)
    for invoice in (waiting, half, {"id": "inv_x"}):
        path = f"/pay/{invoice['id']}"
        assert 'id="proof"' not in till.shop.client.get(path).text
        page, file = (
            till.shop.client.get(f"{path}/{end}") for end in ("proof", "proof.json")
        )
        assert (page.status_code, page.mimetype) == (404, "text/html")
        assert (file.status_code, file.json["error"]["code"]) == (404, "not_found")
    Terminal(till).run("invoice", "settle", half["id"], "--reason", "enough")
    assert 'id="proof"' in till.shop.client.get(f"/pay/{half['id']}").text
    ((told, _),) = sections(Page(show(till.shop, half).text))
    assert told["sats"] == "10000"


def test_who_pays_an_address_a_hundred_times_makes_no_page_without_end(till):
    invoice = paid(till)
    shop = till.shop
    number = payments.MAX_SHOWN
    (first,) = show(shop, invoice, "/proof.json").json
    for _ in range(number):
        txid = pay(shop, invoice, 1_000)
        whole = json.dumps(first | {"txid": txid})
        shop.sql(f"UPDATE proof SET document = '{whole}' WHERE txid = '{txid}'")  # noqa: S608
    documents = show(shop, invoice, "/proof.json").json
    assert len(documents) == number and documents[0] == first
    assert f"Only the first {number} payments" in show(shop, invoice).text


ELSEWHERE = {
    "mainnet": ["https://blockstream.info/block/", "https://mempool.space/block/"],
    "testnet4": ["https://mempool.space/testnet4/block/"],
    "regtest": [],
}


@pytest.mark.parametrize("network", ELSEWHERE)
def test_a_block_is_looked_up_at_the_public_explorers_of_its_network(
    open_shops, network
):
    shop = open_shops(
        BLOCKTILL_NETWORK=network, BLOCKTILL_EXPLORERS="http://10.0.0.5:3000/api"
    )
    pay(shop, invoice := shop.invoice())
    shop.sql(f"UPDATE proof SET document = '{json.dumps(dict.fromkeys(DOCUMENT, ''))}'")  # noqa: S608
    page = Page(show(shop, invoice).text)
    links = [named for tag, named in page.tags if tag == "a" and "rel" in named]
    assert [link["href"] for link in links] == [
        f"{at}{'0b' * 32}" for at in ELSEWHERE[network]
    ]
    assert all(
        (link["rel"], link["target"]) == ("noreferrer", "_blank") for link in links
    )

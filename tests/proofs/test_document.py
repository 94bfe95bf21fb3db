"""A proof as it is kept: made of its block alone, and extended by the headers that follow."""

import copy
import json
from typing import Any

import pytest
from test_verify import PAID, SATS, SCRIPT, VALID, followers

from btcpay.bitcoin.header import parse_header
from btcpay.chain.follow import add_header
from btcpay.check.apply import apply
from btcpay.proofs.document import (
    check_document,
    extend_document,
    parse_documents,
    to_document,
)
from btcpay.proofs.verify import Evidence
from btcpay.settlement.values import Block, Scan, SeenOutput
from btcpay.values.errors import CommandError, ProofFailed
from storage.queries import payments
from tests.support.builders import open_shop
from tests.support.paths import VECTORS

FIRST, *FOLLOWING = followers(VALID.headers[0], 3)
ALONE = to_document(
    Evidence(VALID.payment, VALID.coinbase, [FIRST]), PAID.txid, SCRIPT, "regtest", 1
)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_each_header_that_follows_is_one_confirmation_more(count):
    document = extend_document(ALONE, FOLLOWING[:count])
    assert document["confirmations"] == len(document["headers"]) == count + 1
    proven = check_document(document)
    assert (proven.txid, proven.amounts_sats) == (PAID.txid, {1: SATS})
    assert proven == check_document(ALONE)
    assert check_document(
        parse_documents(json.dumps(document).encode())[0]
    ) == check_document(ALONE)


def test_a_document_that_is_extended_anew_has_the_new_headers_alone():
    before = json.dumps(ALONE)
    assert extend_document(
        extend_document(ALONE, FOLLOWING), FOLLOWING[:1]
    ) == extend_document(ALONE, FOLLOWING[:1])
    assert json.dumps(ALONE) == before


def test_more_headers_than_confirmations_are_no_such_proof():
    with pytest.raises(ProofFailed, match="more headers than confirmations"):
        check_document(extend_document(ALONE, FOLLOWING) | {"confirmations": 3})


def edit(keys, to):
    """Changes what lies at the end of the keys."""

    def change(document):
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = to(document[keys[-1]])

    return change


def nudged(text):
    """The hex digits with the last bit of the last one changed."""
    return text[:-1] + f"{int(text[-1], 16) ^ 1:x}"


def setting(name):
    return {
        n: edit(keys, lambda _, to=to: to) for n, (keys, to) in CHANGES[name].items()
    }


# One for each field: what else is wrong with one is in tests/proofs/test_verify.py.
CHANGES: dict[str, Any] = json.loads(
    (VECTORS / "proof_edits.json").read_text(encoding="utf-8")
)
EDITS = {
    name: edit(keys, nudged) for name, keys in CHANGES["nudged"].items()
} | setting("set")
WRONG_KINDS = setting("wrong kinds")


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_a_proof_fails_after_any_edit(change):
    edited = copy.deepcopy(ALONE)
    change(edited)
    with pytest.raises(ProofFailed):
        check_document(edited)


@pytest.mark.parametrize("change", WRONG_KINDS.values(), ids=WRONG_KINDS)
def test_a_document_of_other_kinds_is_not_read(change):
    edited = copy.deepcopy(ALONE)
    change(edited)
    with pytest.raises(CommandError):
        check_document(edited)


GARBAGE = {name: text.encode("latin-1") for name, text in CHANGES["garbage"].items()}
GARBAGE["many brackets"] = b"[" * 100_000


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE)
def test_a_file_that_is_no_proof_is_refused(text):
    with pytest.raises(CommandError):
        [check_document(one) for one in parse_documents(text)]


HEIGHT = 100
TXID = ALONE["txid"]


@pytest.fixture
def shop(tmp_path, ticker, clock):
    with open_shop(tmp_path, ticker.url, clock, BLOCKTILL_CONFIRMATIONS="3") as opened:
        with opened.service.db.write():
            for height, raw in enumerate([FIRST, *FOLLOWING], HEIGHT):
                add_header(opened.service.db, height, raw)
        yield opened


def read(shop, invoice, tip_height):
    """The check reads the block of the payment."""
    mined_in = Block(HEIGHT, parse_header(FIRST).hash, shop.clock())
    seen = SeenOutput(TXID, 1, invoice["amount_sats"], mined_in, 4)
    scan = Scan(shop.clock(), tip_height, [seen], {TXID: json.dumps(ALONE)})
    apply(shop.service.db, shop.service.settings, {invoice["id"]: scan}, shop.clock())


def deepen(shop, invoice, tip_height):
    scan = Scan(shop.clock(), tip_height)
    apply(shop.service.db, shop.service.settings, {invoice["id"]: scan}, shop.clock())


def kept(shop, invoice):
    row = shop.service.db.get(payments.PROOF, invoice_id=invoice["id"], txid=TXID)
    return json.loads(row.document)


def test_a_document_has_as_many_headers_as_asked_for_when_its_block_is_read_again(
    shop,
):
    invoice = shop.invoice()
    read(shop, invoice, HEIGHT)
    assert kept(shop, invoice) == ALONE
    deepen(shop, invoice, HEIGHT + 1)
    assert kept(shop, invoice)["confirmations"] == 1
    deepen(shop, invoice, HEIGHT + 2)
    assert kept(shop, invoice) == extend_document(ALONE, FOLLOWING[:2])
    read(shop, invoice, HEIGHT + 3)
    assert kept(shop, invoice)["confirmations"] == 3

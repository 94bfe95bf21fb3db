"""A proof as it is kept: made of its block alone, and extended by the headers that follow."""

import json

import pytest
from test_verify import PAID, SATS, SCRIPT, VALID, followers

from btcpay.proofs.document import check_document, extended, load, to_document
from btcpay.proofs.verify import Evidence
from btcpay.values.errors import CommandError, ProofFailed

FIRST, *FOLLOWING = followers(VALID.headers[0], 3)
ALONE = to_document(
    Evidence(VALID.payment, VALID.coinbase, [FIRST]), PAID.txid, SCRIPT, "regtest", 1
)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_each_header_that_follows_is_one_confirmation_more(count):
    document = extended(ALONE, FOLLOWING[:count])
    assert document["confirmations"] == len(document["headers"]) == count + 1
    proven = check_document(document)
    assert (proven.txid, proven.amounts_sats) == (PAID.txid, {1: SATS})
    assert proven == check_document(ALONE)
    assert check_document(load(json.dumps(document).encode())[0]) == check_document(ALONE)


def test_extended_anew_it_has_the_new_headers_alone_and_stays_as_it_is():
    before = json.dumps(ALONE)
    assert extended(extended(ALONE, FOLLOWING), FOLLOWING[:1]) == extended(ALONE, FOLLOWING[:1])
    assert json.dumps(ALONE) == before


@pytest.mark.parametrize(
    ("headers", "confirmations"),
    [
        pytest.param(FOLLOWING[1:], 3, id="the first that follows is missing"),
        pytest.param([FOLLOWING[1], FOLLOWING[0]], 3, id="two are swapped"),
        pytest.param([FOLLOWING[0], FOLLOWING[0]], 3, id="one stands there twice"),
        pytest.param(FOLLOWING[:1], 3, id="one is missing at the end"),
    ],
)
def test_headers_that_do_not_follow_prove_nothing(headers, confirmations):
    document = extended(ALONE, headers) | {"confirmations": confirmations}
    with pytest.raises(ProofFailed):
        check_document(document)


def test_no_confirmation_is_no_proof():
    for confirmations in (0, -1):
        with pytest.raises(ProofFailed):
            check_document(ALONE | {"confirmations": confirmations})


@pytest.mark.parametrize(
    "change", [{"format": "btcpay payment proof 2"}, {"confirmations": True}, {"headers": None}]
)
def test_what_is_no_such_document_is_not_read(change):
    with pytest.raises(CommandError):
        check_document(ALONE | change)

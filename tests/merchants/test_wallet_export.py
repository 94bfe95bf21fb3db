"""Descriptors against published vectors; the gap; what `btcpay wallet export` writes."""

import itertools
import json

import pytest
from fake_esplora import Terminal
from paths import VECTORS

from btcpay.bitcoin.descriptor_checksum import is_checked
from btcpay.merchants.account import derive, import_request, parse_account, receiving
from btcpay.merchants.gap_limit import gap_of
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS
from storage.models import Merchant
from storage.statement import blank

MAINNET = NETWORKS["mainnet"]
VECTORS = json.loads((VECTORS / "bip_vectors.json").read_text(encoding="utf-8"))
BIP84_ZPUB = VECTORS["bip84"]["account_zpub"]
# BIP84's test wallet as other programs write its account (ACINQ/bitcoin-kmp's tests).
BIP84_XPUB = (
    "xpub6CatWdiZiodmUeTDp8LT5or8nmbKNcuyvz7WyksVFkKB4RHwCD3X"
    "yuvPEbvqAQY3rAPshWcMLoP2fMFMKHPJ4ZeZXYVUhLv1VMrjPC7PW6V"
)
BIP84_DESCRIPTOR = f"wpkh([73c5da0a/84'/0'/0']{BIP84_XPUB}/0/*)#wc3n3van"


def test_the_test_wallet_of_bip84_has_the_descriptor_that_others_write():
    account = parse_account(BIP84_ZPUB, MAINNET)
    assert receiving(account, "73c5da0a") == BIP84_DESCRIPTOR
    unnamed = receiving(account)
    assert unnamed.startswith(f"wpkh({BIP84_XPUB}/0/*)#") and is_checked(unnamed)


def test_a_fingerprint_that_is_none_is_refused():
    for fingerprint in ("73c5da0", "73c5da0g", "73C5DA0A", ""):
        with pytest.raises(CommandError):
            receiving(parse_account(BIP84_ZPUB, MAINNET), fingerprint)


GAPS = {  # indexes that were paid, the next one: gap limit, highest paid
    "nothing given out: the first address must be seen": ([], 0, 1, None),
    "twenty that nobody pays, the next is the twenty-first": ([], 20, 21, None),
    "all paid": ([0, 1, 2], 3, 1, 2),
    "ten in a row that nobody paid": ([0, 2], 13, 11, 2),
    "a hole in the middle counts too": ([0, 30, 31], 32, 30, 31),
    "and one before the first payment": ([50], 51, 51, 50),
    "paid ahead of the counter": ([7], 3, 8, 7),
}


@pytest.mark.parametrize("case", GAPS)
def test_a_wallet_must_look_as_far_as_the_longest_run_that_nobody_paid(case):
    paid, next_index, limit, highest = GAPS[case]
    gap = gap_of(paid, next_index)
    assert (gap.limit, gap.highest_paid) == (limit, highest)
    seen = list(itertools.accumulate([-1, *paid], max))
    assert all(after - before <= limit for before, after in itertools.pairwise(seen))


def test_the_export_is_what_importdescriptors_asks_for_and_the_list_what_invoices_get(till):
    invoices = [till.shop.invoice() for _ in range(3)]
    terminal = Terminal(till)
    output, _ = terminal.run("wallet", "export", "shop")
    assert output.count("\n") == 1
    (request,) = json.loads(output)
    assert request == terminal.json("wallet", "export", "shop")[0]
    assert set(request) == {"desc", "active", "range", "timestamp", "internal"}
    assert request["range"] == [0, 103] and request["active"] is False
    assert is_checked(request["desc"]) and request["desc"].startswith("wpkh(tpub")
    assert abs(request["timestamp"] - till.now) < 120
    listed, _ = terminal.run("wallet", "export", "shop", "--addresses")
    addresses = listed.split()
    assert len(addresses) == 104
    assert addresses[:3] == [invoice["deposit_address"] for invoice in invoices]
    assert terminal.json("wallet", "export", "shop", "--count", "5", "--addresses") == addresses[:5]
    assert derive(request["desc"], 0, till.settings.network) == addresses[0]


def test_the_request_has_the_range_the_age_and_the_origin_that_were_asked_for():
    account = str(parse_account(BIP84_ZPUB, MAINNET))
    merchant = blank(Merchant, descriptor=account, created_at=1_700_000_000_999)
    assert import_request(merchant, range(7), "73C5DA0A") == {
        "desc": BIP84_DESCRIPTOR,
        "active": False,
        "range": [0, 6],
        "timestamp": 1_700_000_000,
        "internal": False,
    }


def test_the_list_of_merchants_shows_the_gap(till):
    invoices = [till.shop.invoice() for _ in range(4)]
    till.confirm(invoices[1])
    (row,) = Terminal(till).json("merchant", "list")
    assert (row["next_index"], row["highest_paid"], row["gap_limit"]) == (4, 1, 3)
    assert (row["wallet_gap_limit"], row["script_type"]) == (20, "p2wpkh")


def test_what_a_wallet_is_said_to_have_is_kept_for_that_merchant_alone_and_asked_for(till):
    terminal = Terminal(till)
    till.shop.add_merchant("other")
    assert terminal.json("wallet", "gap", "shop") == {"needed": 1, "said": 20}
    assert terminal.json("wallet", "gap", "shop", "120") == {"needed": 1, "said": 120}
    limits = {row["name"]: row["wallet_gap_limit"] for row in terminal.json("merchant", "list")}
    assert limits == {"shop": 120, "other": 20}
    assert "is taken to have 120" in terminal.run("wallet", "gap", "shop")[0]
    for wrong in ("0", "-1", "1000001", "many"):
        terminal.run("wallet", "gap", "shop", "--", wrong, status=2)

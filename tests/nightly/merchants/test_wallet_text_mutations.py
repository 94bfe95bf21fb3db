"""Damaged texts of wallets: never another account unsaid, never a secret shown."""

import json
import random
import re

import pytest

from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS
from tests.support.paths import VECTORS

MAINNET = NETWORKS["mainnet"]
CASES = {
    case["name"]: case["text"]
    for case in json.loads(
        (VECTORS / "wallet_exports.json").read_text(encoding="utf-8")
    )["cases"]
}
MUTATIONS = 200
SIGNS = "0123456789abcxyzABCXYZ[]{}()<>/*'\"#,;: \n"
# What no message may repeat: much of a key, or words of a seed.
SECRET = re.compile("[1-9A-HJ-NP-Za-km-z]{20}|abandon")


def mutated(text, number, rng):
    """The text with a part cut, a part doubled, or a character changed."""
    start = rng.randrange(len(text))
    longest = rng.choice([1, 5, 40, len(text)])
    end = min(len(text), start + rng.randint(1, longest))
    if number % 3 == 0:
        return text[:start] + text[end:]
    if number % 3 == 1:
        return text[:end] + text[start:]
    return text[:start] + rng.choice(SIGNS) + text[start + 1 :]


def accounts(text):
    """The accounts by first address, and what was left out; none for a refusal."""
    try:
        read = read_wallet_text(text, MAINNET)
    except CommandError as error:
        assert not SECRET.search(str(error)), str(error)
        return {}, ()
    found = {
        account.first_addresses(MAINNET, 1)[0]: account for account in read.accounts
    }
    return found, read.left_out


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_text_gives_no_other_account_unsaid(name, caplog):
    text = CASES[name]
    right, _ = accounts(text)
    rng = random.Random(name)
    for number in range(MUTATIONS):
        damaged = mutated(text, number, rng)
        found, left_out = accounts(damaged)
        others = [found[address].notes for address in found.keys() - right.keys()]
        assert all(others), damaged
        assert not found or len(found) == len(right) or left_out, damaged
    assert not caplog.records

"""The first run takes the same texts of wallets as the command does."""

import pytest

from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS
from tests.support.first_run import EXPORTS, FirstRun, addresses_of, problem_of

MAINNET = NETWORKS["mainnet"]


@pytest.fixture(scope="module")
def first_run(tmp_path_factory, ticker):
    return FirstRun(tmp_path_factory.mktemp("mainnet"), ticker.url)


@pytest.mark.parametrize("name", EXPORTS)
def test_the_first_run_shows_what_a_wallets_text_holds(name, first_run):
    text = EXPORTS[name]["text"]
    page = first_run.press(text).text
    try:
        read = read_wallet_text(text, MAINNET)
    except CommandError as error:
        assert problem_of(page) == str(error) and addresses_of(page) == []
        return
    count = 3
    if len(read.accounts) > 1:
        count = 1
    addresses = [
        address
        for account in read.accounts
        for address in account.first_addresses(MAINNET, count)
    ]
    assert addresses_of(page) == addresses and not problem_of(page)

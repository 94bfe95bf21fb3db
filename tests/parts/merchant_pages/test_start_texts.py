"""The first run takes the same texts of wallets as the command does."""

import pytest

from btcpay.merchants.secret import SecretShown, SeedWordsShown
from btcpay.merchants.wallet_text.contents import TextProblem
from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS
from tests.support.first_run import EXPORTS, FirstRun, addresses_of, problem_of

MAINNET = NETWORKS["mainnet"]


# What the page says of a refused text, in English.
WORDS = {
    TextProblem.TEST_KEYS: "This key is of a test network; this shop takes real bitcoin.",
    TextProblem.ONE_OF_SEVERAL: "This is not the whole wallet: several people sign",
    TextProblem.ANIMATED_CODE: "This is one picture of a moving code.",
}


def words_for(error):
    if isinstance(error, SeedWordsShown):
        return "These look like the seed words of a wallet."
    if isinstance(error, SecretShown):
        return "This holds a private key."
    return WORDS.get(error.problem, f"{error}.")


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
        assert words_for(error) in problem_of(page) and addresses_of(page) == []
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

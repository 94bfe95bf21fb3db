"""Damaged texts of wallets on the first-run page: no other account unsaid, no secret shown."""

import random

import pytest

from btcpay.merchants.secret import holds_secret
from btcpay.merchants.wallet_text.accounts import ASSUMED_NOTE
from tests.nightly.merchants.test_wallet_text_mutations import (
    SECRET,
    accounts,
    mutated,
)
from tests.support.first_run import EXPORTS, FirstRun, addresses_of, problem_of
from tests.support.payer import Page

PRESSES = 40  # of each text; the reader itself gets more


@pytest.fixture(scope="module")
def first_run(tmp_path_factory, ticker):
    return FirstRun(tmp_path_factory.mktemp("mainnet"), ticker.url)


@pytest.mark.parametrize("name", EXPORTS)
def test_a_damaged_text_is_taken_by_the_first_run_as_by_the_command(name, first_run):
    """What the command takes of it, another test holds to what it says."""
    text = EXPORTS[name]["text"]
    rng = random.Random(name)
    for number in range(PRESSES):
        damaged = mutated(text, number, rng)
        found, left_out = accounts(damaged)
        answer = first_run.press(damaged)
        page = answer.text
        if not found:
            assert answer.status_code == 400 and problem_of(page), damaged
            assert not SECRET.search(problem_of(page)), damaged
            shown_again = Page(page).texts["key"].split()
            is_secret = holds_secret(damaged)
            assert shown_again == ([] if is_secret else damaged.split()), damaged
            assert not is_secret or "abandon" not in page
            continue
        shown = addresses_of(page)
        if len(found) == 1:
            shown = shown[:1]
        assert shown == list(found), damaged
        notes = [note for account in found.values() for note in account.notes]
        notes = [
            note for note in notes if note != ASSUMED_NOTE
        ]  # the form says the kind
        said = [*left_out, *notes] if len(found) == 1 else []
        assert all(sentence.partition("'")[0] in page for sentence in said), damaged

"""`make checkpoint`: a block that every explorer has, for the next release."""

import subprocess
import sys

import newest_checkpoint as checkpoint
import pytest
from fake_esplora import say
from paths import PROJECT

from btcpay.chain.explorers.esplora import Esplora
from btcpay.http import http_client


@pytest.fixture
def till(lied_to):
    return lied_to(honest_too=True)


def ones(till):
    network, session = till.settings.network, http_client.Session(4)
    roots = till.liar.root, till.liar.honest
    return [Esplora(network, root, session, None, lambda _: None) for root in roots]


@pytest.fixture(autouse=True)
def shallow(monkeypatch):
    monkeypatch.setattr(checkpoint, "DEPTH", 20)


def test_it_is_so_far_below_the_lowest_tip(till):
    ledger = till.sandbox.chain.ledger
    till.liar.lies = {"^/blocks/tip/height": lambda tip: str(int(tip) - 2)}
    expected = ledger.height - 22, ledger.hashes[ledger.height - 22]
    assert checkpoint.newest_checkpoint(ones(till)) == expected


LIES = {
    "they differ at block": {"^/block-height/[1-9]": lambda _: "00" * 32},
    "an explorer cannot say: answered HTTP 503": {"^/block-height": lambda _: say("no", 503)},
    "shows another network than regtest": {"^/block-height/0$": lambda _: "00" * 32},
    "the chain has no 20 blocks": {"^/blocks/tip/height": lambda _: "19"},
}


@pytest.mark.parametrize("why", LIES)
def test_nothing_is_printed_unless_all_say_the_same(till, why):
    till.liar.lies = LIES[why]
    with pytest.raises(SystemExit, match=why):
        checkpoint.newest_checkpoint(ones(till))


def test_the_command_says_what_is_missing(till):
    environ = {"BTCPAY_NETWORK": "regtest", "BTCPAY_EXPLORERS": till.liar.root}
    words = [sys.executable, PROJECT / ".ci" / "newest_checkpoint.py"]
    ended = subprocess.run(words, cwd=PROJECT, env=environ, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "the chain has no 2016 blocks yet" in ended.stderr

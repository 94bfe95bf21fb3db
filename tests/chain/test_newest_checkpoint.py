"""`make checkpoint`: a block that every explorer has, for the next release."""

import subprocess
import sys
from dataclasses import replace

import newest_checkpoint as checkpoint
import pytest

from btcpay.chain.explorers.pool import Explorers
from btcpay.http import http_client
from btcpay.values.networks import BlockId
from tests.support.fake_esplora import say
from tests.support.paths import PROJECT


@pytest.fixture
def till(lied_to):
    return lied_to(honest_too=True)


def newest_checkpoint(till, point=None):
    network = replace(till.settings.network, checkpoint=point)
    roots = till.liar.root, till.liar.honest
    explorers = Explorers(network, roots, http_client.Session(4)).all
    return checkpoint.newest_checkpoint(network, explorers)


@pytest.fixture(autouse=True)
def shallow(monkeypatch):
    monkeypatch.setattr(checkpoint, "DEPTH", 20)


def test_the_checkpoint_is_a_fixed_depth_below_the_lowest_tip(till):
    ledger = till.sandbox.chain.ledger
    till.liar.lies = {"^/blocks$": lambda page: page[2:]}
    expected = BlockId(ledger.height - 22, ledger.hashes[ledger.height - 22])
    assert newest_checkpoint(till) == newest_checkpoint(till, expected) == expected


LIES = {
    "they differ at block": {"^/block-height/[1-9]": lambda _: "ab" * 32},
    "an explorer cannot say: answered HTTP 503": {
        "^/block-height/[1-9]": lambda _: say("no", 503)
    },
    "shows another network than regtest": {"^/block-height/0$": lambda _: "00" * 32},
    "the chain has no 20 blocks": {
        "^/blocks$": lambda page: [page[-1] | {"height": 19}]
    },
}


@pytest.mark.parametrize("why", LIES)
def test_nothing_is_printed_unless_all_say_the_same(till, why):
    till.liar.lies = LIES[why]
    with pytest.raises(SystemExit, match=why):
        newest_checkpoint(till)


def test_nothing_is_printed_of_a_chain_without_the_checkpoint(till):
    with pytest.raises(SystemExit, match="they do not all have the checkpoint 7"):
        newest_checkpoint(till, BlockId(7, "00" * 32))


def test_the_command_says_what_is_missing(till):
    environ = {"BLOCKTILL_NETWORK": "regtest", "BLOCKTILL_EXPLORERS": till.liar.root}
    words = [sys.executable, PROJECT / ".ci" / "newest_checkpoint.py"]
    ended = subprocess.run(
        words, cwd=PROJECT, env=environ, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "the chain has no 2016 blocks yet" in ended.stderr

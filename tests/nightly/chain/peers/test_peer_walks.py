"""A long random walk on a full node, which is asked as a peer and by no explorer."""

import pytest
from node_walk import SEEDS, run_long

pytestmark = pytest.mark.both_databases


@pytest.mark.parametrize("seed", SEEDS)
def test_after_every_step_the_shop_has_what_the_nodes_index_says(tmp_path, ticker, seed):
    assert run_long(tmp_path, ticker, seed, lambda node: {"BTCPAY_PEERS": node.place}).orders

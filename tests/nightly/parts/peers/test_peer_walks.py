"""A long random walk on a full node, which is asked as a peer and by no explorer."""

import pytest

from tests.support.node_walk import run


@pytest.mark.both_databases
def test_over_a_peer_the_shop_has_what_the_nodes_index_says_after_every_step(
    tmp_path, ticker
):
    run(tmp_path, ticker, over=lambda node: {"BLOCKTILL_PEERS": node.place})

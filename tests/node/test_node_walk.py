"""A short random walk on a full node: its own index is always right."""

import pytest
from node_walk import run


@pytest.mark.parametrize("over_peers", [False, True])
def test_after_every_step_the_shop_has_what_the_nodes_index_says(tmp_path, ticker, over_peers):
    assert run(tmp_path, ticker, seed=2, steps=6, over_peers=over_peers).orders

"""A long random walk on a full node."""

import pytest

from tests.support.node_walk import run


@pytest.mark.both_databases
def test_on_a_long_walk_the_shop_has_what_the_nodes_index_says_after_every_step(
    tmp_path, ticker
):
    run(tmp_path, ticker)

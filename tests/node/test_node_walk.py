"""A short random walk on a full node: its own index is always right."""

from tests.support.node_walk import run


def test_after_every_step_the_shop_has_what_the_nodes_index_says(tmp_path, ticker):
    run(tmp_path, ticker, steps=6)

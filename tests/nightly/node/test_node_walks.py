"""A long random walk on a full node; `WALK_SEEDS="1 2 3" WALK_STEPS=100` walks elsewhere."""

import os

import pytest
from databases import ON_POSTGRES
from node_walk import HAPPENS, run

pytestmark = pytest.mark.both_databases

STEPS = int(os.environ.get("WALK_STEPS", "15" if ON_POSTGRES else "30"))
SEEDS = [int(seed) for seed in os.environ.get("WALK_SEEDS", "2").split()]


@pytest.mark.parametrize("over_peers", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_after_every_step_the_shop_has_what_the_nodes_index_says(
    tmp_path, ticker, seed, over_peers
):
    walk = run(tmp_path, ticker, seed, STEPS, over_peers=over_peers)
    if STEPS >= 30 and SEEDS == [2]:  # it must have happened
        assert {event.__name__ for event in HAPPENS} | {"killed"} <= walk.did.keys()
        assert walk.did["traced"] or not over_peers
        assert walk.did["blocks of the deepest"] >= 10
        assert {order.status for order in walk.orders} >= {"paid", "expired"}

"""Many random lives of a shop and its chain: after every step the books are right."""

import os
from pathlib import Path

import pytest
from builders import TickerServer
from databases import ON_POSTGRES
from random_life import live

pytestmark = pytest.mark.both_databases

EXAMPLES = int(os.environ.get("STATEFUL_EXAMPLES", "12" if ON_POSTGRES else "24"))
PARTS = 4  # that may run beside each other


@pytest.mark.parametrize("part", range(PARTS))
def test_a_random_life_of_shop_and_chain(part: int, ticker: TickerServer, tmp_path: Path) -> None:
    live(ticker, tmp_path, EXAMPLES // PARTS, part)

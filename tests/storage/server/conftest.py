"""A shop on a PostgreSQL server, whichever database the other tests are on."""

from collections.abc import Iterator
from pathlib import Path

import postgres
import pytest
from builders import Clock, Shop, TickerServer, open_shop
from fake_esplora import Till, open_till


@pytest.fixture
def url() -> Iterator[str]:
    made = postgres.server().create()
    yield made
    postgres.server().drop(made)


@pytest.fixture
def till(url: str, tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Till]:
    with open_till(tmp_path, ticker, clock, BTCPAY_DATABASE_URL=url) as opened:
        yield opened


@pytest.fixture
def shop(url: str, tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Shop]:
    ticker.reset()
    with open_shop(tmp_path, ticker.url, clock, BTCPAY_DATABASE_URL=url) as opened:
        yield opened

"""A shop on a PostgreSQL server, whichever database the other tests are on."""

import pytest

from tests.support import postgres
from tests.support.builders import open_shop
from tests.support.fake_esplora import open_till


@pytest.fixture
def url():
    made = postgres.server().create()
    yield made
    postgres.server().drop(made)


@pytest.fixture
def till(url, tmp_path, ticker, clock):
    with open_till(tmp_path, ticker, clock, BLOCKTILL_DATABASE_URL=url) as opened:
        yield opened


@pytest.fixture
def shop(url, tmp_path, ticker, clock):
    ticker.reset()
    with open_shop(tmp_path, ticker.url, clock, BLOCKTILL_DATABASE_URL=url) as opened:
        yield opened

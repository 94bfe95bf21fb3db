"""One shipped server for each file: that it survives its tests is part of them."""

import pytest

from tests.support.builders import Clock, Live, open_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory, ticker):
    ticker.reset()
    with open_shop(tmp_path_factory.mktemp("shop"), ticker.url, Clock()) as opened:
        yield opened


@pytest.fixture(scope="module")
def live(shop, tmp_path_factory):
    with Live(shop, tmp_path_factory.mktemp("live")) as running:
        yield running
        assert "Traceback" not in running.log()

"""A service that speaks Greenfield, and a shop's key for it."""

import pytest
from builders import Clock, open_shop
from plug_in import GreenfieldShop


@pytest.fixture
def greenfield(tmp_path, ticker):
    ticker.reset()
    with open_shop(tmp_path, ticker.url, Clock(), BTCPAY_GREENFIELD="on") as shop:
        yield GreenfieldShop(shop)

"""A shop with its merchant's pages on, and a browser of the merchant's without a screen."""

import pytest
from fake_esplora import open_till
from merchant_browser import ON, MerchantBrowser


@pytest.fixture
def shop(open_shops):
    return open_shops(**ON)


@pytest.fixture
def browser(shop):
    return MerchantBrowser(shop).log_in()


@pytest.fixture
def till(tmp_path, ticker, clock):
    with open_till(tmp_path, ticker, clock, **ON) as opened:
        yield opened

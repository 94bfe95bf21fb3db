"""A shop with its merchant's pages on, and a browser of the merchant's without a screen."""

import pytest

from tests.support.merchant_browser import ON, MerchantBrowser


@pytest.fixture
def shop(open_shops):
    return open_shops(**ON)


@pytest.fixture
def browser(shop):
    return MerchantBrowser(shop).log_in()


@pytest.fixture
def till(open_tills):
    return open_tills(**ON)

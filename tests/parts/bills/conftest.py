"""A shop with its merchant's pages on, and a browser of the merchant's without a screen."""

import pytest

from tests.support.merchant_browser import ON, MerchantBrowser


@pytest.fixture
def browser(open_shops):
    return MerchantBrowser(open_shops(**ON)).log_in()

"""A service that speaks Greenfield, and a shop's key for it."""

import pytest

from tests.support.plug_in import GreenfieldShop


@pytest.fixture
def greenfield(open_shops):
    return GreenfieldShop(open_shops(BLOCKTILL_GREENFIELD="on"))

"""Ten thousand addresses of each form by another program."""

import pytest
from bdk import FORMS, compare


@pytest.mark.parametrize("form", FORMS)
def test_addresses_are_those_of_the_bitcoin_dev_kit(form):
    compare(FORMS[form], accounts=100, each=100)

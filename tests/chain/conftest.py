"""Shared by the tests of the chain: another explorer beside the first."""

from contextlib import ExitStack

import pytest

from tests.support.fake_esplora import Liar


@pytest.fixture
def till(lied_to):
    """A shop with an invoice, which has read every block."""
    opened = lied_to()
    opened.shop.invoice()
    assert opened.check().complete
    return opened


@pytest.fixture
def open_liar():
    """Opens more explorers beside a till's first; each says what the honest one says."""
    with ExitStack() as stack:
        yield lambda till: stack.enter_context(Liar(till.liar.honest))

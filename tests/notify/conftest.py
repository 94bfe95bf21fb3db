"""A receiver of webhooks, for the tests of this folder."""

import pytest
from receiver import Receiver


@pytest.fixture
def receiver():
    with Receiver() as listening:
        yield listening

"""Two explorers, of which the second knows one transaction, number 7, that waits."""

import pytest

from tests.support.fake_esplora import ADDRESS, SCRIPT, FakeEsplora, tx_of


@pytest.fixture
def first():
    with FakeEsplora() as server:
        server.histories[ADDRESS] = []
        yield server


@pytest.fixture
def second():
    with FakeEsplora() as server:
        server.histories[ADDRESS] = [tx_of(7, SCRIPT, 77)]
        yield server

"""Two peers that show the till's chain."""

import pytest

from tests.support.fake_peer import FakePeer, chain_of


@pytest.fixture
def peers(till):
    chain = chain_of(till)

    def now():
        return till.now

    with FakePeer(chain, now) as one, FakePeer(chain, now) as other:
        yield [one, other]

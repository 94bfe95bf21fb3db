"""What the tests of the check share: a liar between the shop and its chain."""

from collections.abc import Callable

import pytest
from fake_esplora import LiedTo


@pytest.fixture
def till(lied_to: Callable[..., LiedTo]) -> LiedTo:
    """Its only explorer tells the truth until a test has it lie."""
    return lied_to()

"""Shared by the tests of the check: a liar between the shop and its chain."""

import pytest


@pytest.fixture
def till(lied_to):
    """Its only explorer tells the truth until a test has it lie."""
    return lied_to()

"""Long random histories of payments and refunds, against the model of the short ones."""

import random

import pytest

from tests.support.refund_histories import History

pytestmark = pytest.mark.both_databases
STEPS = 500


@pytest.mark.parametrize("seed", range(10, 16))
def test_in_a_long_history_what_is_sent_and_shown_is_what_the_model_says(lied_to, seed):
    History(lied_to(), random.Random(seed)).run(STEPS)

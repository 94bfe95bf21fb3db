"""Random histories of payments and refunds, against a model by somebody who never read the program.

Where the contract is open, one of the model's readings is set to the program's, which the manual
tells: the merchant's word holds for an output that a reorganisation took away, once another block
has it.
"""

import random

import pytest

from tests.support.refund_histories import History

pytestmark = pytest.mark.both_databases
STEPS = 250


@pytest.mark.parametrize("seed", range(2))
def test_what_is_sent_and_shown_is_what_the_model_says(lied_to, seed):
    History(lied_to(), random.Random(seed)).run(STEPS)

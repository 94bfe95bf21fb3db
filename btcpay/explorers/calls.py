"""What questions cost, in calls: by these figures the hour's quota is planned and set aside.

Whoever changes what is asked changes them here; docs/budget.md has them as a table.
"""

OVERHEAD = 2  # a run: the tip's height and its hash
FOLLOW = 3  # a new tip on top of the last one: its header as well
PROVE_TIP = 5  # any other new tip: its hash, and what proves its height
PROOF = 6  # a payment with one confirmation
CONFIRMATION = 2  # each further one: a hash and a header


def proof_calls(confirmations: int) -> int:
    """What the evidence for a payment costs at most."""
    return PROOF + CONFIRMATION * (confirmations - 1)


def history_calls(has_history: bool) -> int:
    """What an address costs: a history ends with a page that has nothing new."""
    return 2 if has_history else 1

"""A pause before something is tried again, as the time of its end."""

from peewee import BigIntegerField, Expression

from storage.statement import slot

LONGEST_MS = 3_600_000


def is_over(ends_ms: BigIntegerField) -> Expression:
    """True from its end on; also for one that ends later than any pause does.

    That one began while the clock was ahead, and would last until the clock is there again.
    """
    began_ahead = (ends_ms - LONGEST_MS) > slot("now")
    return (ends_ms <= slot("now")) | began_ahead

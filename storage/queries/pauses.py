"""The condition that a pause is over, and a failed action may be tried again."""

from peewee import BigIntegerField, Expression

from storage.statement import param

LONGEST_MS = 3_600_000


def is_over(ends_ms: BigIntegerField) -> Expression:
    """Returns the condition that the pause until `ends_ms` is over at the parameter `now`.

    A pause that would end later than LONGEST_MS from now also counts as over, because
    it was stored while the clock was fast.
    """
    is_too_long = (ends_ms - LONGEST_MS) > param("now")
    return (ends_ms <= param("now")) | is_too_long

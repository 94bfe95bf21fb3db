"""The wall clock, for entry points only; everything below takes `now` as an argument."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The present, aware and in UTC."""
    return datetime.now(UTC)

"""The report of a run of the check. The command's exit status is derived from it."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Report:
    """The work of a run of the check, its failures and its costs.

    Invoices are given by id.
    """

    blocks_read: int = 0
    # The number of unread blocks. Reading them takes about `hours_behind`.
    blocks_behind: int = 0
    hours_behind: int = 0
    # Heights of blocks whose processing failed with an unexpected error.
    set_aside: list[int] = field(default_factory=list)
    # Work items that failed in parts (plug-ins). No payment depends on them.
    parts_behind: int = 0
    # The number of invoices that were looked for in the mempool.
    looked_at: int = 0
    # Invoices whose results could not be stored.
    failed: list[str] = field(default_factory=list)
    # Invoices whose payer waits, but for which no look at the mempool succeeded.
    unreached: list[str] = field(default_factory=list)
    # The number of other looks that are postponed to the next run.
    put_off: int = 0
    # The new status of each invoice whose status changed, by invoice id.
    new_statuses: dict[str, str] = field(default_factory=dict)
    # Why the stored chain is probably behind the best chain; empty if it is not.
    stuck_reason: str = ""
    chain_failed: bool = False
    # Whether a source returned the tip, and when the request was made, by this machine's
    # clock.
    has_tip: bool = False
    tip_asked_at: datetime | None = None
    # True if two sources (or the only one that is configured) returned a recent tip.
    is_agreed: bool = False
    # When the tip was requested, if every block up to that tip is read; else None.
    read_at: datetime | None = None
    # True if the stored chain has changed.
    has_new_tip: bool = False
    # How far this machine's clock is ahead of the sources' clocks; 0 up to CLOCK_OFF.
    clock_ahead_s: int = 0
    # Why the clock is not trusted; empty if it is. If not, nothing is renewed or deleted.
    doubt: str = ""
    # By this machine's clock.
    began_at: datetime | None = None
    calls: int = 0
    read_bytes: int = 0
    took_ms: int = 0

    @property
    def has_news(self) -> bool:
        """True if the run read blocks, changed statuses, or had looks at the mempool due.

        A new block that is not read is no news: while nothing may be paid, none is
        read.
        """
        is_work = self.blocks_read or self.looked_at or self.put_off
        return bool(is_work or self.new_statuses)

    @property
    def is_caught_up(self) -> bool:
        """True if every block is read, up to a tip that is trusted."""
        return not (self.blocks_behind or self.stuck_reason or self.chain_failed)

    @property
    def ends_before(self) -> datetime | None:
        """The time before which an invoice's deadline must be, so that it may expire now.

        This is the time when the tip was requested. None if a block up to that tip is
        unread, or if the tip is not trusted: then no invoice may expire.
        """
        if self.is_caught_up:
            return self.tip_asked_at
        return None

    @property
    def complete(self) -> bool:
        """True if every block up to the tip is read, no invoice failed, and the clock is right.

        A query of the mempool that could not be made is no failure, since blocks show
        the payment too.
        """
        return self.is_caught_up and not (self.failed or self.clock_ahead_s)

"""The report of a check's run. The exit status follows from it."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Report:
    """The work of a run, its failures and its costs; invoices by their ids."""

    blocks_read: int = 0
    # Blocks still to be read, within about `hours_behind`.
    blocks_behind: int = 0
    hours_behind: int = 0
    # Heights of blocks that could not be read.
    set_aside: list[int] = field(default_factory=list)
    # Work that parts could not do yet: no payment depends on it.
    parts_behind: int = 0
    # Invoices for which the mempool was asked.
    looked_at: int = 0
    # Invoices whose results could not be stored.
    failed: list[str] = field(default_factory=list)
    # Invoices whose payer waits, and for which no mempool was asked.
    unreached: list[str] = field(default_factory=list)
    # Deadlines and other money that wait for the next run.
    put_off: int = 0
    # New statuses, by invoice.
    changed: dict[str, str] = field(default_factory=dict)
    # The reason not to believe that the chain is whole.
    stuck: str = ""
    chain_failed: bool = False
    # Whether a source showed the tip, and when it was asked, by our clock.
    answered: bool = False
    tip_asked_at: datetime | None = None
    # Whether two sources showed the tip, if two are set.
    is_agreed: bool = False
    # How far our clock is ahead of the sources' clocks; 0 up to CLOCK_OFF.
    clock_ahead_s: int = 0
    # The reason not to believe the clock: nothing is renewed or erased.
    doubt: str = ""
    # By our clock.
    began_at: datetime | None = None
    calls: int = 0
    read_bytes: int = 0
    took_ms: int = 0

    @property
    def is_caught_up(self) -> bool:
        """True if every block is read, up to a tip that can be believed."""
        return not (self.blocks_behind or self.stuck or self.chain_failed)

    @property
    def ends_before(self) -> datetime | None:
        """Deadlines after this cannot be judged yet; None: no deadline can."""
        if self.is_caught_up:
            return self.tip_asked_at
        return None

    @property
    def complete(self) -> bool:
        """True if every block up to the tip is read, and nothing failed.

        A late preview is no failure: its payment is found in a block.
        """
        return self.is_caught_up and not (self.failed or self.clock_ahead_s)

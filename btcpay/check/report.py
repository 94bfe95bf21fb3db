"""The report of a check's run, from which the exit status follows."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Report:
    """The work of a run, its failures and its costs; invoices by their ids."""

    blocks_read: int = 0
    blocks_behind: int = 0  # still to be read, within about `hours_behind`
    hours_behind: int = 0
    set_aside: list[int] = field(
        default_factory=list
    )  # blocks that could not be read, by height
    parts_behind: int = 0  # what parts could not do yet: no payment depends on it
    looked_at: int = 0  # invoices for which the mempool was asked
    failed: list[str] = field(default_factory=list)  # whose results could not be stored
    unreached: list[str] = field(
        default_factory=list
    )  # a payer waits, and no mempool was asked
    put_off: int = 0  # deadlines and other money that wait for the next run
    changed: dict[str, str] = field(default_factory=dict)  # new statuses
    stuck: str = ""  # the reason not to believe that the chain is whole
    chain_failed: bool = False
    answered: bool = False  # a source showed the tip
    tip_asked_at: datetime | None = None  # by our clock
    is_agreed: bool = False  # two sources showed the tip, where two are set
    clock_ahead_s: int = 0  # of the sources' clocks; 0 up to CLOCK_OFF
    doubt: str = ""  # the reason not to believe the clock: nothing is renewed or erased
    began_at: datetime | None = None  # by our clock
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

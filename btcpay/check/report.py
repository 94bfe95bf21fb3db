"""What a run of the check did: its report, from which the exit status follows."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Report:
    """What a run did.

    `blocks_read`: how many; `blocks_behind`: how many are still to be read, within about
    `hours_behind`. `looked_at`: for how many invoices it asked the mempool; `failed`: for which it
    could not; `unreached`: for which the hour's calls did not suffice in time although a payer
    waits: their previews are late; `put_off`: how many deadlines and other money wait. `changed`:
    invoices by their new status. `stuck`: why the chain is not believed to be whole.
    `answered`: whether an explorer showed the tip; `tip_asked_at`: when it was asked for, by our
    clock; `is_agreed`: whether two of them showed it, where two are set. `clock_ahead_s`: how far
    our clock is ahead of the sources', 0 up to CLOCK_OFF. `calls` and `read_bytes`: what it cost.
    """

    blocks_read: int = 0
    blocks_behind: int = 0
    hours_behind: int = 0
    looked_at: int = 0
    failed: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    put_off: int = 0
    changed: dict[str, str] = field(default_factory=dict)
    stuck: str = ""
    chain_failed: bool = False
    answered: bool = False
    tip_asked_at: datetime | None = None
    is_agreed: bool = False
    clock_ahead_s: int = 0
    calls: int = 0
    read_bytes: int = 0
    took_ms: int = 0

    @property
    def is_caught_up(self) -> bool:
        """Whether every block up to a tip that can be believed is read."""
        return not (self.blocks_behind or self.stuck or self.chain_failed)

    @property
    def ends_before(self) -> datetime | None:
        """Deadlines after this cannot be judged yet; None: no deadline can."""
        return self.tip_asked_at if self.is_caught_up else None

    @property
    def complete(self) -> bool:
        """Whether payments are found: every block up to the tip is read, and nothing failed.

        Previews that are late are no failure: what they would have shown is found in its block.
        """
        return self.is_caught_up and not (self.failed or self.clock_ahead_s)

    def add(self, later: "Report") -> None:
        """What looks after the run have found."""
        self.looked_at += later.looked_at
        self.blocks_read += later.blocks_read
        self.changed |= later.changed

"""What a run of the check did, as its report and its exit status tell it."""

from dataclasses import dataclass, field


@dataclass
class Run:
    """What a run did: addresses looked at, those that could not be, invoices with a new status.

    `unreached`: ids that were urgent and beyond the budget; `put_off`: how many others wait for
    their turn. `held`: ids that another runner, alive or killed, meant to look at and has not; what
    it has looked at is in its report. `proven`: whether a payment was proven. `answered`: whether
    an explorer told the tip. `clock_ahead_s`: how far our clock is ahead of the explorers', 0 up to
    CLOCK_OFF.
    """

    looked_at: int = 0
    failed: list[str] = field(default_factory=list)
    changed: dict[str, str] = field(default_factory=dict)
    unreached: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    put_off: int = 0
    calls: int = 0
    tip_failed: bool = False
    answered: bool = False
    clock_ahead_s: int = 0
    proven: bool = False
    took_ms: int = 0

    def add(self, other: "Run") -> None:
        """Takes over what a part of it did."""
        self.looked_at += other.looked_at
        self.failed += other.failed
        self.unreached += other.unreached
        self.changed |= other.changed
        self.proven = self.proven or other.proven

    @property
    def complete(self) -> bool:
        """Whether every due address was looked at, by a clock that is not ahead."""
        missed = self.failed or self.unreached or self.held or self.tip_failed
        return not missed and not self.clock_ahead_s

"""What a run of the check did, as its report and its exit status tell it."""

from dataclasses import dataclass, field


@dataclass
class Report:
    """What a run did: how many addresses it scanned, which it could not, which invoices changed.

    `unreached`: urgent ids for which the budget did not suffice; `put_off`: how many others wait
    for their turn. `held`: ids that another runner, alive or killed, claimed and has not scanned;
    what it has scanned is in its own report. `proven`: whether a payment was proven. `answered`:
    whether an explorer told the tip. `clock_ahead_s`: how far our clock is ahead of the explorers',
    0 up to CLOCK_OFF.
    """

    scanned: int = 0
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

    def add(self, other: "Report") -> None:
        """Adds what a part of the run did."""
        self.scanned += other.scanned
        self.failed += other.failed
        self.unreached += other.unreached
        self.changed |= other.changed
        self.proven = self.proven or other.proven

    @property
    def complete(self) -> bool:
        """Whether every due address was scanned, by a clock that is not ahead."""
        missed = self.failed or self.unreached or self.held or self.tip_failed
        return not missed and not self.clock_ahead_s

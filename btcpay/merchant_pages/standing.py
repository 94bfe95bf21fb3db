"""How the service stands, for the merchant: check, chain, gap limit, backup. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.chain.progress import Progress
from btcpay.merchants.gap_limit import MARGIN, Gap, gap_of
from btcpay.settings.settings import Settings
from btcpay.values.times import from_ms
from storage.database import Row

GREEN, YELLOW, RED = "green", "yellow", "red"
# A shop that is backed up every night has missed two of them.
BACKUP_AGE = timedelta(days=3)


@dataclass(frozen=True)
class Standing:
    """What the page says of the service; a colour for each.

    `checked_ms`, `backed_up_ms`: None before the first. `advised`: the gap limit to set.
    """

    check: str
    checked_ms: int | None
    chain: str
    progress: Progress | None
    gap_limit: str
    gap: Gap
    wallet_gap_limit: int
    backup: str
    backed_up_ms: int | None

    @property
    def advised(self) -> int:
        """The gap limit that a wallet does well to have."""
        return self.gap.limit + MARGIN


def standing(shop: Row, progress: Progress | None, settings: Settings, now: datetime) -> Standing:
    """`shop`: a row of `today.SHOP`."""
    checked_ms, backed_up_ms = (_ms(shop[name]) for name in ("checked_at", "backed_up_at"))
    last = shop["last_paid"]
    gap = gap_of([] if last is None else [last], shop["next_index"], shop["widest"] or 0)
    check_age = timedelta(minutes=settings.check_max_age_min)
    return Standing(
        check=GREEN if _is_within(checked_ms, check_age, now) else RED,
        checked_ms=checked_ms,
        chain=_chain(progress, settings, now),
        progress=progress,
        gap_limit=GREEN if gap.is_well_within(shop["wallet_gap_limit"]) else YELLOW,
        gap=gap,
        wallet_gap_limit=shop["wallet_gap_limit"],
        backup=GREEN if _is_within(backed_up_ms, BACKUP_AGE, now) else YELLOW,
        backed_up_ms=backed_up_ms,
    )


def _ms(fact: str | None) -> int | None:
    return None if fact is None else int(fact)


def _is_within(at_ms: int | None, age: timedelta, now: datetime) -> bool:
    """A time in the future is as bad as one long ago."""
    return at_ms is not None and abs(now - from_ms(at_ms)) <= age


def _chain(progress: Progress | None, settings: Settings, now: datetime) -> str:
    """Red when the newest block is so old that explorers must stand still; as the doctor has it."""
    most = settings.network.tip_max_age
    if progress and most is not None and now - progress.mined_at > most:
        return RED
    return YELLOW if progress and progress.behind else GREEN

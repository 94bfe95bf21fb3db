"""Webhooks: who cannot be reached, or is sent nothing more."""

from collections.abc import Iterator
from datetime import timedelta

from btcpay.health.doctor.finding import Finding, Shop
from btcpay.health.state import GREEN, YELLOW
from btcpay.values.times import from_ms, iso
from storage.database import Database
from storage.queries import receivers

# A receiver that is restarted is no finding.
PATIENCE = timedelta(hours=1)


def endpoints(shop: Shop, db: Database) -> Iterator[Finding]:
    """Each endpoint that is disabled, or has been failing for an hour."""
    rows = db.rows(receivers.LIST)
    now, well = shop.now(), True
    for row in rows:
        name = f"webhook {row['id']}"
        again = f"`btcpay webhook resend {row['id']} --failed` tries again what was given up"
        if row["disabled_at"] is not None:
            well = False
            said = f"is sent nothing more since {iso(from_ms(row['disabled_at']))}"
            yield Finding(name, YELLOW, f"{said}: {row['disabled_reason']}", again)
        elif row["failing_since_at"] and now - from_ms(row["failing_since_at"]) >= PATIENCE:
            well = False
            said = f"has taken nothing since {iso(from_ms(row['failing_since_at']))}"
            remedy = f"`btcpay webhook deliveries {row['id']}` shows what it answered"
            yield Finding(name, YELLOW, f"{said}; {row['pending']} wait for it", remedy)
    if well:
        count = f"{len(rows)} of them" if rows else "there are none"
        yield Finding("webhooks", GREEN, f"{count}, none is failing" if rows else count)

"""Payment links, on and off."""

from btcpay.errors import CommandError
from storage.database import Database
from storage.queries import links


def set_active(db: Database, link_id: str, active: bool) -> None:
    """Lets a link make invoices, or stops it. Raises CommandError when there is no such link."""
    status = "active" if active else "inactive"
    if db.run(links.SET_STATUS, id=link_id, status=status) != 1:
        raise CommandError(f"there is no payment link {link_id!r}")

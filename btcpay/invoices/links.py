"""Payment links, on and off."""

from btcpay.errors import CommandError
from storage.database import Database
from storage.queries import links


def activate(db: Database, link_id: str) -> None:
    """Lets a link make invoices (again). Raises CommandError when there is no such link."""
    _set(db, link_id, "active")


def deactivate(db: Database, link_id: str) -> None:
    """Stops a link from making invoices. Raises CommandError when there is no such link."""
    _set(db, link_id, "inactive")


def _set(db: Database, link_id: str, status: str) -> None:
    if db.run(links.SET_STATUS, id=link_id, status=status) != 1:
        raise CommandError(f"there is no payment link {link_id!r}")

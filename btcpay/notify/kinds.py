"""Defines every kind of event and its meaning. Examples: docs/developers/events.md."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from btcpay.values.errors import NotFound
from btcpay.values.ids import is_id
from btcpay.values.times import iso_ms
from storage.database import Database
from storage.statement import Typed


class Kind(StrEnum):
    """A kind of event, such as `invoice.paid`, with its meaning.

    The first half of its name, before the dot, names the resource: the object that the
    event is about.
    """

    meaning: str

    def __new__(cls, name: str, meaning: str = "") -> Self:
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.meaning = meaning
        return kind

    @property
    def resource(self) -> str:
        """The name of the resource: `invoice`, `payment` or `payment_link`.

        Parts (optional plug-ins) have other resources, such as `refund`.
        """
        return self.partition(".")[0]


class EventKind(Kind):
    """The core's kinds of events. Parts (optional plug-ins) add more kinds."""

    INVOICE_CREATED = (
        "invoice.created",
        "An invoice was made: by the API, on a payment link's page, or on the command line.",
    )
    INVOICE_PAYMENT_SEEN = (
        "invoice.payment_seen",
        "Money is on its way, but does not count yet: `transaction` waits in the mempool,"
        " or in a block that is not deep enough. Deliver nothing for it.",
    )
    INVOICE_PAYMENT_VANISHED = (
        "invoice.payment_vanished",
        "`transaction` was on its way and is no longer shown: it was replaced, or dropped.",
    )
    INVOICE_PAID = (
        "invoice.paid",
        "The invoice is paid, by confirmed payments, or because the owner accepted what came.",
    )
    INVOICE_EXPIRED = (
        "invoice.expired",
        "The invoice's time is up, and too little came in time.",
    )
    INVOICE_CANCELED = ("invoice.canceled", "The owner has canceled the invoice.")
    INVOICE_REOPENED = (
        "invoice.reopened",
        "The invoice was paid and is open again: a reorganisation of the chain took its payment"
        " back.",
    )
    INVOICE_ATTENTION = (
        "invoice.attention",
        "The invoice needs attention, for the reason in `attention`.",
    )
    PAYMENT_RECEIVED = (
        "payment.received",
        "A payment is confirmed and in the balance: in full, a part, too late or too much.",
    )
    PAYMENT_UNDONE = (
        "payment.undone",
        "A reorganisation took the payment back: it is not in the balance any more. `payment` is"
        " what it was.",
    )
    PAYMENT_LINK_CREATED = ("payment_link.created", "A payment link was made.")
    PAYMENT_LINK_DEACTIVATED = (
        "payment_link.deactivated",
        "A payment link makes no more invoices.",
    )


def properties_beside(file: str) -> dict[str, Any]:
    """Returns the content of the file properties.toml in the folder of `file`.

    In a part (an optional plug-in) this file has a JSON schema for each field of the
    part's resource.
    """
    return tomllib.loads(
        Path(file).with_name("properties.toml").read_text(encoding="utf-8")
    )


class EventSubject(Protocol):
    """The row that an event is about: an invoice, a payment link or a part's row."""

    id: str
    merchant_id: int


R = TypeVar("R", bound=EventSubject)


def _time_of(row: EventSubject, name: str) -> str | None:
    """Returns the value of a time field in ISO 8601; None if the time is not set.

    A field such as `sent_at` has the value of the column `sent_ms`.
    """
    stored_ms = getattr(row, f"{name.removesuffix('_at')}_ms")
    if stored_ms is None:
        return None
    return iso_ms(stored_ms)


@dataclass(frozen=True)
class PartResource(Generic[R]):
    """A resource of a part (an optional plug-in), such as a refund.

    - `kinds`: the kinds of events about the resource.
    - `prefix`: the prefix of the resource's ids, for example "rfd".
    - `by_id`: the query that selects a row by its id.
    - `state`: the names of the columns that can change. Each event stores their values.
    - `properties`: a JSON schema for each field, by the field's name.
    - `computed`: a function that returns the fields that are not columns.
    """

    name: str
    prefix: str
    kinds: type[Kind]
    by_id: Typed[R]
    state: tuple[str, ...]
    properties: dict[str, Any]
    computed: Callable[[R], dict[str, Any]] = lambda _: {}

    def find(self, db: Database, id: str) -> R:
        """Returns the resource's row with this id, for the command line.

        Raises CommandError if there is no such row.
        """
        return db.get_or_fail(self.by_id, f"{self.name} {id!r}", id=id)

    def get_or_404(self, db: Database, id: str) -> R:
        """Returns the row with this id, for a web page.

        Raises NotFound (HTTP status 404) if there is no such row.
        """
        if not is_id(self.prefix, id):
            raise NotFound(f"there is no such {self.name}")
        row = db.get_or_none(self.by_id, id=id)
        if row is None:
            raise NotFound(f"there is no such {self.name}")
        return row

    def url_of(self, base_url: str, id: str) -> str:
        return f"{base_url}/{self.name}/{id}"

    def serialize(self, base_url: str, row: R) -> dict[str, Any]:
        """Returns the row's fields by name, as events and commands show them.

        Raises whatever the part's function `computed` raises.
        """
        fields: dict[str, Any] = {}
        for name in self.properties:
            if name.endswith("_at"):
                fields[name] = _time_of(row, name)
            else:
                # A field that is not a column is None until `computed` sets it below.
                fields[name] = getattr(row, name, None)
        fields["object"] = self.name
        fields[f"{self.name}_url"] = self.url_of(base_url, row.id)
        return fields | self.computed(row)

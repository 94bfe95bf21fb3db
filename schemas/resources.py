"""What clients get: the resources of the specification's section 2, field by field."""

from typing import Any

from marshmallow import Schema, fields, validate

from schemas.fields import HostedUrl, Number, Text, Timestamp
from schemas.requests import STATUSES

_NULL: dict[str, Any] = {"allow_none": True}


def _fixed(value: str) -> fields.Field:
    return fields.Constant(value, validate=validate.OneOf((value,)), metadata={"type": "string"})


class Resource(Schema):
    """A JSON object dumped from a database row; `base_url` is the root of hosted pages.

    marshmallow works out every field of every row again; here the fields are sorted once. Text and
    whole numbers leave the database as clients get them, so they pass unchanged.
    """

    def __init__(self, base_url: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.base_url = base_url
        shown = self.dump_fields.items()
        self._blank = {name: getattr(field, "constant", None) for name, field in shown}
        self._columns = {
            name for name, field in shown if not isinstance(field, (fields.Constant, HostedUrl))
        }
        self._made = [
            (name, field.shown) for name, field in shown if isinstance(field, (Number, Timestamp))
        ]
        self._hosted = [
            (name, base_url + field.path) for name, field in shown if isinstance(field, HostedUrl)
        ]

    def dump(self, obj: Any, *, many: bool | None = None) -> Any:
        """What marshmallow's own `dump` returns for a row, or for a list of them."""
        many = self.many if many is None else many
        return [self._shown(row) for row in obj] if many else self._shown(obj)

    def _shown(self, row: dict[str, Any]) -> dict[str, Any]:
        if row.keys() != self._columns:  # some columns are nobody's outside
            row = {name: row[name] for name in self._columns}
        shown = {**self._blank, **row}
        for name, make in self._made:
            if shown[name] is not None:
                shown[name] = make(shown[name])
        for name, root in self._hosted:
            shown[name] = root + shown["id"]
        return shown

    def on_bind_field(self, field_name: str, field_obj: fields.Field) -> None:
        """Every documented field is in every answer, null or not."""
        field_obj.required = True

    def listed(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """The list envelope (2.5) around the rows."""
        return {"object": "list", "data": self.dump(rows, many=True)}


class Invoice(Resource):
    """A one-time payment request (2.1)."""

    object = _fixed("invoice")
    id = Text()
    status = Text(validate=validate.OneOf(STATUSES))
    asset = _fixed("BTC")
    amount_sats = fields.Integer()
    amount_usd_quote = Number(**_NULL)
    description = Text(**_NULL)
    customer_email = Text(**_NULL)
    deposit_address = Text(**_NULL)
    tx_hash = Text(**_NULL)
    payment_link_id = Text(**_NULL)
    pay_url = HostedUrl("/pay/")
    expires_at = Timestamp(**_NULL)
    paid_at = Timestamp(**_NULL)
    created_at = Timestamp()


class PaymentLink(Resource):
    """A reusable checkout page (2.2)."""

    object = _fixed("payment_link")
    id = Text()
    status = Text(validate=validate.OneOf(("active", "inactive")))
    title = Text(**_NULL)
    description = Text(**_NULL)
    amount_mode = Text(validate=validate.OneOf(("fixed", "flexible")))
    amount_usd = Number(**_NULL)
    min_amount_usd = Number(**_NULL)
    max_amount_usd = Number(**_NULL)
    asset = _fixed("BTC")
    link_url = HostedUrl("/link/")
    created_at = Timestamp()


class Payment(Resource):
    """A confirmed on-chain payment (2.3)."""

    object = _fixed("payment")
    id = Text()
    invoice_id = Text(**_NULL)
    asset = _fixed("BTC")
    amount_sats = fields.Integer()
    amount_usd_at_receipt = Number(**_NULL)
    tx_hash = Text(**_NULL)
    created_at = Timestamp()


class Balance(Resource):
    """Withdrawable and total (2.4)."""

    object = _fixed("balance")
    asset = _fixed("BTC")
    confirmed_sats = fields.Integer()
    total_sats = fields.Integer()
    confirmed_usd = Number(**_NULL)


class Resources:
    """One schema for each resource, with the root of this service's hosted pages."""

    def __init__(self, base_url: str) -> None:
        self.invoice = Invoice(base_url)
        self.payment_link = PaymentLink(base_url)
        self.payment = Payment(base_url)
        self.balance = Balance(base_url)

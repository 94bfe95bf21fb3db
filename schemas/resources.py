"""The resources of API responses (docs/developers/api.md), field by field."""

import functools
from collections.abc import Mapping
from typing import Any

import orjson
from marshmallow import Schema, fields, validate

from btcpay.values.statuses import LinkStatus
from schemas.fields import HostedUrl, Number, Text, Timestamp, maybe, says
from schemas.queries import STATUSES


def _constant(value: str) -> fields.Field[Any]:
    """Returns a field that has the same value in every response."""
    metadata = {"type": "string", "description": f"Always `{value}`."}
    return fields.Constant(value, validate=validate.OneOf((value,)), metadata=metadata)


class Resource(Schema):
    """A JSON object made from a database row. `base_url` is the root URL of hosted pages.

    marshmallow would analyse every field again for every row. This class analyses the
    fields once. Texts and whole numbers are copied from the row unchanged.
    """

    def __init__(self, base_url: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        all_fields = self.dump_fields.items()
        # All fields in order, with the values of those that are constant.
        self._blank: dict[str, Any] = {
            name: getattr(field, "constant", None) for name, field in all_fields
        }
        # Each field's name and its column: `paid_at` comes from `paid_ms`.
        self._columns = [
            (name, _column_of(name, field))
            for name, field in all_fields
            if not isinstance(field, (fields.Constant, HostedUrl))
        ]
        # The functions that convert a column's value for JSON.
        self._converters = [
            (name, field.to_json)
            for name, field in all_fields
            if isinstance(field, (Number, Timestamp))
        ]
        # The start of each URL, which the row's id follows.
        self._url_starts = [
            (name, base_url + field.path)
            for name, field in all_fields
            if isinstance(field, HostedUrl)
        ]
        # keeps at most 500 texts, of about 1 kB each
        self._text = functools.lru_cache(maxsize=500)(self._as_text)

    def dump(self, obj: Any, **_: Any) -> dict[str, Any]:
        """Returns the row's public fields. No other column leaves the service."""
        return self.serialize(obj._asdict())

    def serialize(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the public fields of a row. `values` has the row's columns by name."""
        public = self._blank | {name: values[column] for name, column in self._columns}
        for name, to_json in self._converters:
            if public[name] is not None:
                public[name] = to_json(public[name])
        for name, url_start in self._url_starts:
            public[name] = url_start + public["id"]
        return public

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        # every documented field is in every response, even if null
        field_obj.required = True

    def envelope(self, columns: tuple[str, ...], rows: list[str]) -> dict[str, Any]:
        """Returns the response of a list operation, with the rows as its `data`.

        `columns` and `rows` are those that `Database.json_rows` returns. The JSON of
        each row is cached, because the same rows are listed again and again.
        """
        return {"object": "list", "data": [self._text(columns, row) for row in rows]}

    def _as_text(self, columns: tuple[str, ...], row: str) -> orjson.Fragment:
        """Returns the JSON of a row, which is the text of a JSON array."""
        values = dict(zip(columns, orjson.loads(row), strict=True))
        public = self.serialize(values)
        return orjson.Fragment(orjson.dumps(public))


def _column_of(name: str, field: fields.Field[Any]) -> str:
    """Returns the column of a field: `paid_ms` for the time `paid_at`, else the same name."""
    if isinstance(field, Timestamp):
        return f"{name.removesuffix('_at')}_ms"
    return name


INVOICE_ID = "inv_eJ1R0DRkbm1q2C35XQfBX4ys"
_LINK_ID = "lnk_wHNrXZZlSGvAPS8CRaKB5wwr"
_TXID = "70f36abe1ff876bcbb835c7078f979ede3f00e67ab61f41b8de2513eaca052d3"
_MADE_AT = "2026-11-21T06:12:37.806Z"
_EXPIRES_AT = "2026-11-22T06:12:37.806Z"
_PAID_AT = "2026-11-21T06:31:04.000Z"
_ROOT = "https://pay.example.com"


class Invoice(Resource):
    """A one-time payment request."""

    object = _constant("invoice")
    id = Text(**says("Unique identifier.", INVOICE_ID))
    status = Text(
        validate=validate.OneOf(STATUSES),
        **says("Poll it to see it change from open to paid.", "paid"),
    )
    asset = _constant("BTC")
    amount_sats = fields.Integer(**says("Amount due, in satoshis.", 41_667))
    amount_usd_quote = Number(**maybe("Amount asked for, in US dollars.", 25))
    description = Text(**maybe("The merchant's memo, which payers see.", "Two mugs"))
    customer_email = Text(**maybe("The customer's address.", "ada@example.com", None))
    deposit_address = Text(
        **maybe(
            "The Bitcoin address to pay; only this invoice has it.",
            "bcrt1qs9j2lu0zsdg39qhv997pukrfups05er9ha3h9x",
        )
    )
    tx_hash = Text(
        **maybe("The transaction that completed the sum; null until it is paid.", _TXID)
    )
    payment_link_id = Text(
        **maybe("The payment link that made it; null if none did.", None, _LINK_ID)
    )
    pay_url = HostedUrl(
        "/pay/",
        **says(
            "The hosted checkout page: send the customer there.",
            f"{_ROOT}/pay/{INVOICE_ID}",
        ),
    )
    expires_at = Timestamp(
        **maybe("When it ends unless it is paid; null if never.", _EXPIRES_AT)
    )
    paid_at = Timestamp(
        **maybe("Time of the block that paid it; null until it is paid.", _PAID_AT)
    )
    created_at = Timestamp(**says("When it was made.", _MADE_AT))


class PaymentLink(Resource):
    """A reusable checkout page."""

    object = _constant("payment_link")
    id = Text(**says("Unique identifier.", _LINK_ID))
    status = Text(
        validate=validate.OneOf([status.value for status in LinkStatus]),
        **says(
            "Whether its page makes invoices; an inactive one answers 410.", "active"
        ),
    )
    title = Text(**maybe("The page's title.", "Tip jar"))
    description = Text(
        **maybe("Shown on the page and on its invoices.", "Thank you", None)
    )
    amount_mode = Text(
        validate=validate.OneOf(("fixed", "flexible")),
        **says(
            "Whether the price is fixed, or the payer chooses the amount.", "flexible"
        ),
    )
    amount_usd = Number(**maybe("The price of a fixed link, in US dollars.", None, 25))
    min_amount_usd = Number(**maybe("The least that a payer may choose.", 1, None))
    max_amount_usd = Number(**maybe("The most that a payer may choose.", 500, None))
    asset = _constant("BTC")
    link_url = HostedUrl(
        "/link/",
        **says("The public checkout page: share it.", f"{_ROOT}/link/{_LINK_ID}"),
    )
    created_at = Timestamp(**says("When it was made.", _MADE_AT))


class Payment(Resource):
    """A confirmed on-chain payment."""

    object = _constant("payment")
    id = Text(**says("Unique identifier.", "pay_LxMi4TFlHfVTTPVioSmsSef0"))
    invoice_id = Text(
        **maybe(
            "The invoice that it settled; null for a part, and for a late or further payment.",
            INVOICE_ID,
            None,
        )
    )
    asset = _constant("BTC")
    amount_sats = fields.Integer(**says("Amount received, in satoshis.", 41_667))
    amount_usd_at_receipt = Number(
        **maybe("Its value when it was recorded; null without a price.", 25, None)
    )
    tx_hash = Text(**maybe("The transaction.", _TXID))
    created_at = Timestamp(**says("Time of the block that confirmed it.", _PAID_AT))


class Balance(Resource):
    """A merchant's withdrawable and total balance."""

    object = _constant("balance")
    asset = _constant("BTC")
    confirmed_sats = fields.Integer(
        **says("Confirmed and not yet spent, in satoshis.", 41_667)
    )
    total_sats = fields.Integer(
        **says("Confirmed satoshis, plus those on their way.", 62_500)
    )
    confirmed_usd = Number(
        **maybe("Value of the confirmed satoshis; null without a price.", 25, None)
    )


class CheckoutStatus(Resource):
    """The status that an invoice's page polls.

    Anyone who knows the invoice's id can read it.
    """

    status = Text(
        validate=validate.OneOf(STATUSES),
        **says("The invoice's status. Only `paid` means paid.", "open"),
    )
    amount_sats = fields.Integer(**says("Amount due, in satoshis.", 41_667))
    received_sats = fields.Integer(
        **says(
            "What was received, confirmed or not: while it is open in time, then late, too.",
            41_667,
        )
    )
    unconfirmed_sats = fields.Integer(
        **says("How much of that still waits for its confirmations.", 41_667)
    )
    missing_sats = fields.Integer(
        **says("What is still to be sent; 0 when only confirmations are missing.", 0)
    )
    returned_sats = fields.Integer(
        **says("How much of what came late or in excess refunds have sent back.", 0)
    )
    confirmations = fields.Integer(
        **says("Confirmations of the least confirmed payment that counts.", 0)
    )
    confirmations_needed = fields.Integer(
        **says("Confirmations that this invoice asks for.", 1)
    )
    expires_at = Timestamp(
        **maybe("When it ends unless it is paid; null if never.", _EXPIRES_AT, None)
    )
    checked_at = Timestamp(
        **maybe("When the chain was last checked for it; null before that.", _MADE_AT)
    )
    now = Timestamp(**says("The service's clock.", _MADE_AT))


class Resources:
    """The schemas of all resources. `base_url` is the root URL of hosted pages."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.invoice = Invoice(base_url)
        self.payment_link = PaymentLink(base_url)
        self.payment = Payment(base_url)
        self.balance = Balance(base_url)

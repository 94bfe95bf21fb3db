"""The models of merchants, brands, API keys, payment links, invoices and sessions."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from peewee import BigIntegerField, BlobField, Model, TextField

from btcpay.values.statuses import InvoiceStatus, LinkStatus

E = TypeVar("E", bound=StrEnum)


class Table(Model):
    class Meta:
        legacy_table_names = False  # the table of MerchantDay is `merchant_day`
        # peewee adds no `id` column; the primary keys are in the schema
        primary_key = False


def word_field(words: type[E]) -> TextField[E]:
    """Returns a text column. mypy sees its values as members of the enum `words`.

    In fact, a row holds the plain string, which equals the enum's member.
    """
    return TextField()  # type: ignore[return-value]


class Merchant(Table):
    id = BigIntegerField()
    name = TextField()
    descriptor = TextField()
    account_key = TextField()
    next_index = BigIntegerField()
    created_ms = BigIntegerField()
    wallet_gap_limit = BigIntegerField()
    currency = TextField()
    timezone = TextField()
    gratuity_percents = TextField(null=True)
    gratuity_by_cashier = BigIntegerField()
    used_before = BigIntegerField()
    used_ahead = BigIntegerField(null=True)
    look_ahead_ms = BigIntegerField()


class Brand(Table):
    merchant_id = BigIntegerField()
    name = TextField(null=True)
    accent = TextField(null=True)
    logo = BlobField(null=True)
    logo_type = TextField(null=True)
    logo_sha256 = TextField(null=True)
    contact = TextField(null=True)
    return_paid = TextField(null=True)
    return_unpaid = TextField(null=True)
    business_address = TextField(null=True)
    tax_number = TextField(null=True)
    tax_percent = TextField(null=True)


class ApiKey(Table):
    id = TextField()
    merchant_id = BigIntegerField()
    name = TextField()
    scope = TextField()
    secret_sha256 = TextField()
    last_four = TextField()
    created_ms = BigIntegerField()
    last_used_ms = BigIntegerField(null=True)
    expires_ms = BigIntegerField(null=True)
    revoked_ms = BigIntegerField(null=True)
    store_id = TextField(null=True)
    permissions = TextField(null=True)


class PaymentLink(Table):
    seq = BigIntegerField()
    id = TextField()
    merchant_id = BigIntegerField()
    status = word_field(LinkStatus)
    title = TextField(null=True)
    description = TextField(null=True)
    amount_mode = TextField()
    currency = TextField()
    amount = TextField(null=True)
    min_amount = TextField(null=True)
    max_amount = TextField(null=True)
    amount_usd = TextField(null=True)
    min_amount_usd = TextField(null=True)
    max_amount_usd = TextField(null=True)
    created_ms = BigIntegerField()
    suggested = TextField(null=True)
    goal = TextField(null=True)
    ask_email = TextField()
    ask_name = TextField()
    ask_note = TextField()


class Invoice(Table):
    seq = BigIntegerField()
    id = TextField()
    merchant_id = BigIntegerField()
    payment_link_id = TextField(null=True)
    status = word_field(InvoiceStatus)
    amount_sats = BigIntegerField()
    amount_usd_quote = TextField()
    price_usd = TextField()
    description = TextField(null=True)
    customer_email = TextField(null=True)
    deposit_address = TextField()
    address_index = BigIntegerField()
    tx_hash = TextField(null=True)
    expires_ms = BigIntegerField(null=True)
    paid_ms = BigIntegerField(null=True)
    finished_ms = BigIntegerField(null=True)
    settled_reason = TextField(null=True)
    checked_ms = BigIntegerField(null=True)
    asked_ms = BigIntegerField(null=True)
    created_ms = BigIntegerField()
    failures = BigIntegerField()
    failed_ms = BigIntegerField(null=True)
    asked_since = BigIntegerField(null=True)
    script = TextField()
    gap_before = BigIntegerField(null=True)
    covered_ms = BigIntegerField(null=True)
    currency = TextField()
    amount = TextField(null=True)
    price = TextField()
    received_sats = BigIntegerField()
    unconfirmed_sats = BigIntegerField()
    unapplied_sats = BigIntegerField()
    coming_unapplied_sats = BigIntegerField()
    newest_height = BigIntegerField(null=True)
    reference = TextField(null=True)
    return_url = TextField(null=True)
    gratuity = TextField(null=True)
    confirmations = BigIntegerField(null=True)
    tolerance_percent = TextField(null=True)
    store_id = TextField(null=True)
    order_id = TextField(null=True)
    shop_order = TextField(null=True)
    metadata = TextField(null=True)
    archived_ms = BigIntegerField(null=True)
    customer_name = TextField(null=True)
    customer_note = TextField(null=True)
    bill_id = TextField(null=True)
    above_height = BigIntegerField(null=True)
    receipt_number = BigIntegerField(null=True)
    tax_percent = TextField(null=True)

    # The payer's personal data, which is erased after a time.
    PERSONAL = (customer_email, customer_name, customer_note)
    # The columns that `amount_due` of values/money.py reads.
    AMOUNT_DUE = (amount_usd_quote, amount, currency)
    # The columns that `rules_for` of invoices/status.py reads.
    RULES = (amount_usd_quote, confirmations, tolerance_percent)
    # The columns that API clients see; no others are read for them. schemas/resources.py turns them
    # into JSON.
    PUBLIC = (
        *(id, status, amount_sats, amount_usd_quote, description, customer_email),
        *(deposit_address, tx_hash, payment_link_id, expires_ms, paid_ms, created_ms),
    )


class MerchantLogin(Table):
    secret_sha256 = TextField()
    merchant_id = BigIntegerField()
    expires_ms = BigIntegerField()
    till_only = BigIntegerField()


class FileLink(Table):
    id = TextField()
    merchant_id = BigIntegerField()
    secret_sha256 = TextField()
    first_day = BigIntegerField()
    last_day = BigIntegerField()
    expires_ms = BigIntegerField()


class MerchantSession(Table):
    id = TextField()
    merchant_id = BigIntegerField()
    secret_sha256 = TextField()
    browser = TextField()
    created_ms = BigIntegerField()
    last_used_ms = BigIntegerField()
    till_only = BigIntegerField()
    # the hash of the owner's password that opened the session; None: a link did
    password_scrypt = TextField(null=True)

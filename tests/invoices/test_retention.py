"""Customers' e-mail addresses are erased some days after their invoices are finished."""

import sqlite3

import pytest

from btcpay.invoices import emails
from btcpay.invoices.emails import erase_emails
from storage.queries import invoices
from tests.support.builders import pay
from tests.support.databases import about_sqlite

pytestmark = pytest.mark.both_databases

EMAIL = "ada@customer.example"


def email_of(shop, invoice):
    return shop.service.db.get(invoices.WHOLE, id=invoice["id"]).customer_email


def erase(shop, days=30):
    return erase_emails(shop.service.db, days, shop.clock())


def test_an_address_is_erased_so_many_days_after_its_invoice_is_finished(shop, clock):
    invoice = shop.invoice(customer_email=EMAIL)
    clock.move(days=400)
    assert erase(shop) == 0  # it is open
    pay(shop, invoice)
    clock.move(days=30)
    assert erase(shop) == 0 and email_of(shop, invoice) == EMAIL
    clock.move(seconds=1)
    assert erase(shop) == 1 and email_of(shop, invoice) is None
    assert erase(shop) == 0
    assert shop.get(f"/invoices/{invoice['id']}").json["customer_email"] is None


def test_nought_days_mean_never_and_an_invoice_that_is_open_again_keeps_its_address(
    shop, clock
):
    invoice = shop.invoice(customer_email=EMAIL)
    pay(shop, invoice)
    clock.move(days=40_000)
    assert erase(shop, days=0) == 0
    shop.service.db.run(invoices.REOPEN, id=invoice["id"])
    assert erase(shop) == 0 and email_of(shop, invoice) == EMAIL


def test_the_answer_that_is_kept_for_a_retry_forgets_it_too_and_nothing_else(
    shop, clock
):
    order = {"amount_usd": 0.1, "customer_email": 'a"b\\@x.example'}
    order["description"] = '"customer_email":"stays"'
    headers = {"Idempotency-Key": "order-1"}
    first = shop.post("/invoices", order, headers=headers)
    pay(shop, first.json)
    clock.move(days=30, seconds=1)
    assert erase(shop) == 1
    again = shop.post("/invoices", order, headers=headers)
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")
    assert again.json == first.json | {"customer_email": None}
    assert again.text.count("0.1") == first.text.count("0.1")


def test_a_check_erases_a_bounded_number_oldest_first(shop, clock, monkeypatch):
    monkeypatch.setattr(emails, "BATCH", 2)
    made = []
    for _ in range(3):
        made.append(shop.invoice(customer_email=EMAIL))
        pay(shop, made[-1])
        clock.move(seconds=1)
    clock.move(days=31)
    assert erase(shop) == 2
    assert [email_of(shop, invoice) for invoice in made] == [None, None, EMAIL]
    assert erase(shop) == 1


@about_sqlite
def test_the_check_does_it_and_no_byte_of_it_stays_in_the_file(
    open_tills, tmp_path, clock
):
    till = open_tills(BLOCKTILL_EMAIL_RETENTION_DAYS="7")
    headers = {"Idempotency-Key": "order-1"}
    order = {"amount_usd": 25, "customer_email": EMAIL}
    invoice = till.shop.post("/invoices", order, headers=headers).json
    till.confirm(invoice)
    assert till.look(invoice)["status"] == "paid"
    clock.move(days=7, seconds=1)
    till.check()
    assert till.look(invoice)["customer_email"] is None
    path = tmp_path / "blocktill.db"
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    held = [file.name for file in tmp_path.glob("blocktill.db*") if file.is_file()]
    assert {
        name for name in held if EMAIL.encode() in (tmp_path / name).read_bytes()
    } == set()

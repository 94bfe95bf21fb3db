"""Specification, sections 4.3 to 4.9: lists, filters, single resources, and whose they are."""

from datetime import timedelta

import pytest
from test_spec_operations import assert_refused

from tests.support.builders import finish, pay

LISTS = ["/invoices", "/payment-links", "/payments"]


def sell(shop, times):
    """Ids of paid invoices, oldest first."""
    sold = [shop.invoice() for _ in range(times)]
    for invoice in sold:
        pay(shop, invoice)
    return [invoice["id"] for invoice in sold]


# 4.3, 4.6, 4.8, 4.9: lists
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", ["0", "101", "-1", "ten", "1.0", ""])
def test_another_limit_is_invalid_and_named(shop, path, limit):
    assert_refused(shop.get(f"{path}?limit={limit}"), 400, "invalid_request", "limit")


def fill(shop, path, count):
    """Ids of `count` resources, oldest first, all created in the same millisecond."""
    if path == "/payments":
        sell(shop, count)
        return [
            row["id"] for row in reversed(shop.get("/payments?limit=100").json["data"])
        ]
    make = shop.invoice if path == "/invoices" else shop.link
    return [make()["id"] for _ in range(count)]


@pytest.mark.parametrize("path", LISTS)
def test_a_list_holds_at_most_limit_items_and_50_by_default(shop, path):
    ids = fill(shop, path, 51)[::-1]
    for query, count in {
        "": 50,
        "?limit=1": 1,
        "?limit=50": 50,
        "?limit=100": 51,
    }.items():
        listed = [item["id"] for item in shop.get(path + query).json["data"]]
        assert listed == ids[:count]


@pytest.mark.parametrize("path", ["/invoices", "/payment-links"])
def test_a_list_is_newest_first_by_creation_time(shop, path):
    make = shop.invoice if path == "/invoices" else shop.link
    made = []
    for days in (0, -3, 5):
        shop.clock.move(days=days)
        made.append(make())
    listed = shop.get(path).json["data"]
    assert listed == sorted(made, key=lambda item: item["created_at"], reverse=True)
    assert listed == [made[2], made[0], made[1]]


def test_payments_are_newest_first_by_the_time_they_confirmed(shop):
    orders = [shop.invoice() for _ in range(3)]
    shop.clock.move(hours=1)
    ages = [timedelta(minutes=minutes) for minutes in (20, 40, 10)]
    mined = [shop.clock() - age for age in ages]
    hashes = [
        pay(shop, *order) for order in zip(orders, [None] * 3, mined, strict=True)
    ]
    listed = [payment["tx_hash"] for payment in shop.get("/payments").json["data"]]
    assert listed == [hashes[2], hashes[0], hashes[1]]


def test_invoices_are_filtered_by_status(shop):
    (sold,) = sell(shop, 1)
    waiting = shop.invoice()["id"]
    lapsed = shop.invoice(expires_in_hours=1)
    called_off = shop.invoice()
    shop.clock.move(hours=2)
    pay(shop, lapsed, 1)
    finish(shop, called_off, "canceled")
    expected = {
        "open": waiting,
        "paid": sold,
        "expired": lapsed["id"],
        "canceled": called_off["id"],
    }
    for status, id in expected.items():
        for limit in ("", "&limit=1"):  # which is of the filtered ones
            (listed,) = shop.get(f"/invoices?status={status}{limit}").json["data"]
            assert (listed["id"], listed["status"]) == (id, status)


@pytest.mark.parametrize("status", ["closed", "OPEN", "", "open,paid"])
def test_another_status_is_invalid_and_named(shop, status):
    assert_refused(
        shop.get(f"/invoices?status={status}"), 400, "invalid_request", "status"
    )


def test_payments_are_filtered_by_the_invoice_that_they_settled(shop):
    one, other = sell(shop, 2)
    for invoice_id in (one, other):
        (payment,) = shop.get(f"/payments?invoice_id={invoice_id}").json["data"]
        assert payment["invoice_id"] == invoice_id


@pytest.mark.parametrize("unknown", ["inv_" + "0" * 24, "nonsense", ""])
def test_a_filter_by_an_unknown_invoice_is_an_empty_list(shop, unknown):
    sell(shop, 1)
    pay(shop, shop.invoice(), 1)
    assert shop.get(f"/payments?invoice_id={unknown}").json == {
        "object": "list",
        "data": [],
    }


@pytest.mark.parametrize("path", LISTS)
def test_a_list_has_no_cursor(shop, path):
    ids = fill(shop, path, 2)
    answer = shop.get(
        f"{path}?limit=1&cursor={ids[1]}&starting_after={ids[1]}&page=2"
    ).json
    assert set(answer) == {"object", "data"}
    assert [item["id"] for item in answer["data"]] == [ids[1]]


# 4.4, 4.7: one resource, and whose it is
def test_an_invoice_and_a_link_are_retrieved_as_they_were_created(shop):
    invoice = shop.invoice(description="Tea")
    link = shop.link(title="Tea")
    assert shop.get(f"/invoices/{invoice['id']}").json == invoice
    assert shop.get(f"/payment-links/{link['id']}").json == link


def test_an_unknown_id_and_one_of_another_kind_is_not_found(shop):
    link_id = shop.link()["id"]
    invoice_id = shop.invoice()["id"]
    zeros = "0" * 24
    for path in (f"/invoices/{link_id}", f"/invoices/inv_{zeros}"):
        assert_refused(shop.get(path), 404, "not_found")
    for path in (f"/payment-links/{invoice_id}", f"/payment-links/lnk_{zeros}"):
        assert_refused(shop.get(path), 404, "not_found")


def test_all_data_is_scoped_to_the_authenticated_merchant(shop):
    (sold,) = sell(shop, 1)
    link = shop.link()
    stranger = shop.issue("write", shop.add_merchant("stranger"))
    assert_refused(shop.get(f"/invoices/{sold}", stranger), 404, "not_found")
    assert_refused(shop.get(f"/payment-links/{link['id']}", stranger), 404, "not_found")
    for path in [*LISTS, "/invoices?status=paid", f"/payments?invoice_id={sold}"]:
        assert len(shop.get(path).json["data"]) == 1
        assert shop.get(path, stranger).json["data"] == []
    assert shop.get("/balance").json["total_sats"] > 0
    assert shop.get("/balance", stranger).json["total_sats"] == 0

"""A link's button, pressed again: after a payment, twice at once, by many, and by other sites."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from builders import Shop, pay
from flask.testing import FlaskClient
from test_checkout_invoice import Page
from test_checkout_link import count, made, press
from werkzeug.test import TestResponse

# After a payment: a tablet on a counter serves one customer after another


@pytest.mark.parametrize("confirmed", [False, True], ids=["waiting", "in a block"])
@pytest.mark.parametrize("amount_sats", [None, 600], ids=["whole", "part"])
def test_who_comes_after_a_payment_gets_an_address_of_their_own(
    shop: Shop, confirmed: bool, amount_sats: int | None
) -> None:
    link, client = shop.link(amount_usd=5), shop.client
    first = made(press(client, link))
    pay(shop, shop.get(f"/invoices/{first}").json, amount_sats, confirmed=confirmed)
    second = made(press(client, link))
    assert second != first and shop.get(f"/invoices/{second}").json["status"] == "open"
    assert made(press(client, link)) == second  # to which nothing has come


def test_a_payment_that_vanished_has_been_seen_all_the_same(shop: Shop) -> None:
    link, client = shop.link(amount_usd=5), shop.client
    first = made(press(client, link))
    pay(shop, shop.get(f"/invoices/{first}").json, confirmed=False)
    shop.sql("UPDATE output SET vanished_at = first_seen_at + 1")
    assert made(press(client, link)) != first


# Twice at once


def token(client: FlaskClient, link: dict[str, Any]) -> str:
    """What the page's form carries, so that it makes one invoice however often it is sent."""
    return Page(client.get(f"/link/{link['id']}").text).attributes["submit"]["value"]


def send(client: FlaskClient, link: dict[str, Any], press: str, amount: str = "") -> TestResponse:
    return client.post(f"/link/{link['id']}", data={"amount_usd": amount, "press": press})


def test_one_form_sent_twice_makes_one_invoice_without_any_cookie(shop: Shop) -> None:
    link = shop.link(amount_usd=5)
    form = token(shop.client, link)
    assert made(send(shop.client, link, form)) == made(send(shop.client, link, form))
    assert made(send(shop.client, link, token(shop.client, link))) != made(
        send(shop.client, link, form)
    )
    assert count(shop) == 2


def test_one_form_sent_eight_times_at_once_makes_one_invoice(shop: Shop) -> None:
    link, barrier = shop.link(amount_usd=5), threading.Barrier(8)
    form = token(shop.client, link)

    def once(_: int) -> str:
        barrier.wait(20)
        return made(send(shop.client, link, form))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(once, range(8)))) == 1
    assert count(shop) == 1


def test_a_form_that_comes_back_after_its_payment_makes_another_invoice(shop: Shop) -> None:
    link = shop.link(amount_usd=5)
    form = token(shop.client, link)
    first = made(send(shop.client, link, form))
    pay(shop, shop.get(f"/invoices/{first}").json, confirmed=False)
    assert made(send(shop.client, link, form)) != first


def test_a_form_that_comes_back_with_another_amount_makes_another_invoice(shop: Shop) -> None:
    link = shop.link()
    form = token(shop.client, link)
    assert made(send(shop.client, link, form, "5")) != made(send(shop.client, link, form, "6"))


def test_a_form_of_one_link_says_nothing_at_another(shop: Shop) -> None:
    one, other = shop.link(amount_usd=5), shop.link(amount_usd=5)
    form = token(shop.client, one)
    invoice_id = made(send(shop.client, one, form))
    assert form not in invoice_id
    assert made(send(shop.client, other, form)) != invoice_id


@pytest.mark.parametrize("form", ["", "x" * 10_000, "\u00e9'\x00"])
def test_a_form_without_a_token_that_is_ours_makes_an_invoice_each_time(
    shop: Shop, form: str
) -> None:
    link = shop.link(amount_usd=5)
    assert made(send(shop.client, link, form)) != made(send(shop.client, link, form))

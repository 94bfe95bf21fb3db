"""A visitor who asks without end closes only his own page, even where addresses mean nothing."""

import pytest

from btcpay.web import rate_limits
from btcpay.web.pages import assets

ONION = {"BLOCKTILL_VISITOR_ADDRESSES": "off"}


def statuses(shop, path, times):
    return {shop.client.get(path).status_code for _ in range(times)}


def test_who_asks_for_one_invoice_without_end_closes_no_other_page_of_his_address(shop):
    mine = shop.invoice()["id"]
    other = shop.invoice()["id"]
    link = shop.link()["id"]
    assert statuses(shop, f"/pay/{mine}/status", 2 * rate_limits.VISITS.limit) == {
        200,
        429,
    }
    assert statuses(shop, f"/pay/{mine}", 1) == {429}
    for path in (f"/pay/{other}", f"/pay/{other}/status", f"/link/{link}"):
        assert statuses(shop, path, 1) == {200}, path
    elsewhere = shop.client.get(
        f"/pay/{mine}", environ_base={"REMOTE_ADDR": "198.51.100.7"}
    )
    assert elsewhere.status_code == 200


def test_files_of_pages_are_not_counted(shop):
    for _ in range(rate_limits.VISITS.limit):
        shop.service.limiter.hit(rate_limits.VISITS, "127.0.0.1")
    assert statuses(shop, f"/link/{shop.link()['id']}", 1) == {429}
    assert statuses(shop, f"/{assets.asset_path('pages.css')}", 3) == {200}
    assert statuses(shop, "/accent/2563eb.css", 3) == {200}
    assert statuses(shop, f"/logo/{'0' * 64}", 3) == {404}


@pytest.mark.slow
def test_where_addresses_mean_nothing_a_stranger_closes_no_payers_page(open_shops):
    shop = open_shops(**ONION)
    invoice = shop.invoice()["id"]
    link = shop.link()["id"]
    strangers = [
        f"/pay/inv_{'0' * 24}",
        "/pay/no",
        f"/link/{link}",
        f"/link/{link}/price",
    ]
    for path in strangers:
        statuses(shop, path, rate_limits.VISITS.limit)
    for path in (f"/pay/{invoice}", f"/pay/{invoice}/status", f"/link/{link}"):
        assert statuses(shop, path, 1) == {200}, path
    assert statuses(shop, f"/pay/{invoice}/status", rate_limits.VISITS.limit) == {
        200,
        429,
    }


@pytest.mark.parametrize(("environ", "made"), [(ONION, 12), ({}, 10)])
def test_where_addresses_mean_nothing_the_link_alone_bounds_its_invoices(
    open_shops, environ, made
):
    shop = open_shops(**environ, BLOCKTILL_LINK_OPEN_INVOICES="12")
    link = shop.link()["id"]
    presses = (
        shop.client.post(f"/link/{link}", data={"amount": "5"}) for _ in range(14)
    )
    assert [answer.status_code for answer in presses] == [303] * made + [429] * (
        14 - made
    )

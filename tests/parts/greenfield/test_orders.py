"""A shop's orders over the interface that plug-ins speak."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from app import OPERATIONS
from btcpay.api.openapi_examples import error_message
from btcpay.invoices.emails import erase_emails
from btcpay.invoices.status import rules_for
from btcpay.merchants import keys
from btcpay.parts.greenfield.bodies import MAX_METADATA
from btcpay.parts.greenfield.keys import own_url
from btcpay.parts.greenfield.orders import MOST_LISTED, plug_in_status
from btcpay.parts.greenfield.queries import STATUS_BY_OURS
from btcpay.settlement.decide import required_sats
from btcpay.settlement.values import Rules
from btcpay.values.errors import CommandError
from storage.models import Invoice
from storage.queries import invoices
from storage.statement import as_dict, blank
from tests.support.builders import Live, open_shop, pay
from tests.support.paths import TESTS
from tests.support.playground import children_of
from tests.support.plug_in import SHOP, GreenfieldShop

pytestmark = pytest.mark.both_databases
RECORDED = json.loads((TESTS / "parts/greenfield/requests.json").read_text())
INVOICES = "/stores/STORE/invoices"
ORDERS = 300


def row_of(greenfield, order):
    return greenfield.shop.service.db.get(invoices.WHOLE, id=order["id"])


@pytest.mark.slow
def test_a_list_of_the_largest_orders_leaves_the_worker_small(greenfield, tmp_path):
    def with_metadata(length):
        return {
            "amount": "5",
            "metadata": {"note": "x" * (length - len('{"note":""}'))},
        }

    (refused,) = greenfield.ask("POST", INVOICES, with_metadata(MAX_METADATA + 1)).json
    assert refused["path"] == "metadata"
    for number in range(ORDERS):
        if not number % 100:  # of the 120 that a key may write in a minute
            greenfield.shop.clock.move(minutes=2)
        greenfield.order(**with_metadata(MAX_METADATA))
    url = f"/stores/{greenfield.store}/invoices?take=1000"
    with Live(greenfield.shop, tmp_path, BLOCKTILL_GREENFIELD="on") as live:
        secret = greenfield.issued.secret
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: live.ask("GET", url, secret), range(4)))
        peak_mb = max(map(peak_mb_of, children_of(live.pid)))
    assert [len(answer.json()) for answer in answers] == [MOST_LISTED] * 4
    assert peak_mb < 200
    last = greenfield.ask(
        "GET", INVOICES, query_string={"take": 1000, "skip": ORDERS - 1}
    ).json
    assert len(last) == 1 and len(last[0]["metadata"]["note"]) > MAX_METADATA - 20


def peak_mb_of(pid):
    (kb,) = re.findall(r"VmHWM:\s+([0-9]+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kb) / 1024


def test_an_order_is_an_invoice_with_what_the_shop_said(greenfield):
    named = (one["body"] for one in RECORDED if "buyerName" in str(one["body"]))
    sent = next(body for body in named if body["metadata"]["orderId"] == "ORD-1")
    order = greenfield.order(**sent)
    assert order["metadata"] == sent["metadata"]
    assert (order["amount"], order["currency"]) == ("25.00", "USD")
    assert order["expirationTime"] == order["createdTime"] + 90 * 60
    assert order["monitoringExpiration"] == order["expirationTime"] + 7 * 86_400
    assert (order["status"], order["additionalStatus"]) == ("New", "None")
    asked = sent["checkout"] | {
        "defaultPaymentMethod": "BTC",
        "monitoringMinutes": 10_080,
    }
    assert order["checkout"] == asked
    assert order["storeId"] == greenfield.store
    assert greenfield.seen(order) == order
    row = row_of(greenfield, order)
    assert (row.reference, row.amount_sats) == ("ORD-1", 41667)
    assert row.return_url == "https://shop.example/r?i={invoice}"
    assert (row.confirmations, row.tolerance_percent) == (1, "0.00")
    page = greenfield.shop.client.get(
        order["checkoutLink"].removeprefix("http://127.0.0.1:8000")
    )
    assert page.status_code == 200 and order["id"] in page.text


def test_amounts_are_exact_in_any_currency(greenfield, ticker):
    ticker.price("60000.00", eur="50000.00")
    for amount, currency, sats, ours, rate in (
        ("0.00050000", "BTC", 50_000, "USD", "1"),
        ("1", "sats", 1, "USD", "1"),
        (7, "SATS", 7, "USD", "1"),
        ("19.99", "EUR", 39980, "EUR", "50000.00"),
    ):
        order = greenfield.order(amount, currency)
        assert (order["amount"], order["currency"]) == (str(amount), currency.upper())
        row = row_of(greenfield, order)
        assert (row.amount_sats, row.currency) == (sats, ours)
        (method,) = greenfield.ask(
            "GET", f"{INVOICES}/{order['id']}/payment-methods"
        ).json
        assert method["amount"] == method["due"] == f"{sats / 1e8:.8f}"
        assert method["rate"] == rate


def test_what_is_sent_wrong_is_named_field_by_field(greenfield, ticker):
    ticker.price("60000.00")
    whole = {"amount": "5", "currency": "USD"}
    amounts = (None, "0", "-1", "NaN", "five", "0.001", "1000001", "1e14")
    others = (
        ("21000001", "BTC"),
        ("0.123456789", "BTC"),
        ("1.5", "SATS"),
        ("2100000000000001", "SATS"),
    )
    urls = ("https://evil.example/", "https://{InvoiceId}.shop.example/")
    wrong = {
        "": [[], "x"],
        "amount": [{"amount": amount} for amount in amounts]
        + [{"amount": amount, "currency": currency} for amount, currency in others],
        "currency": [{"currency": currency} for currency in ("XXX", "LTC", 5)],
        "metadata": [{"metadata": metadata} for metadata in ([], "x")],
        "checkout": [{"checkout": checkout} for checkout in ([], "x")],
        "checkout.paymentMethods": [{"checkout": {"paymentMethods": ["BTC-LN"]}}],
        "checkout.redirectURL": [{"checkout": {"redirectURL": url}} for url in urls],
        "checkout.expirationMinutes": [{"checkout": {"expirationMinutes": 0}}],
        "checkout.paymentTolerance": [{"checkout": {"paymentTolerance": 101}}],
        "checkout.speedPolicy": [{"checkout": {"speedPolicy": "Warp"}}],
    }
    for path, bodies in wrong.items():
        for body in bodies:
            asked = whole | body if isinstance(body, dict) else body
            answer = greenfield.ask("POST", INVOICES, asked)
            assert answer.status_code == 422, (body, answer.text)
            assert path in [one["path"] for one in answer.json], (body, answer.text)
    assert greenfield.ask("GET", INVOICES).json == []
    ticker.status = 500
    no_price = greenfield.ask("POST", INVOICES, {"amount": "5", "currency": "CHF"})
    assert (no_price.status_code, no_price.json["code"]) == (503, "price_unavailable")


def test_what_could_never_be_answered_with_makes_no_order(greenfield):
    def send(body, path=INVOICES, method="POST"):
        return greenfield.ask(method, path, data=body, content_type="application/json")

    said = {"n": [2**64 - 1, -(2**63), 1e300], "z": "\0"}
    kept = send(json.dumps({"amount": 5, "metadata": said}))
    assert kept.json["metadata"] == said
    order_path = f"{INVOICES}/{kept.json['id']}"
    numbers = ("1e400", "9" * 5000, str(2**64), f'[{{"a": {-(2**63) - 1}}}]')
    metadata = [*(f'{{"n": {number}}}' for number in numbers), '{"a": "\\ud800"}']
    for sent in (*metadata, '{"orderId": "5\\u0000"}', '{"orderId": "\\ud800"}'):
        refused = send(f'{{"amount": 5, "metadata": {sent}}}')
        assert refused.status_code == 422, (sent[:40], refused.text)
        assert send(f'{{"metadata": {sent}}}', order_path, "PUT").status_code == 422
    method = '{"amount": 5, "checkout": {"paymentMethods": ["BTC", "\\ud800"]}}'
    assert send(method).status_code == 422
    for currency in ("BTC", "SATS"):  # the product of such an amount is exactly nothing
        nothing = f'{{"amount": "1E-999999999", "currency": "{currency}"}}'
        assert send(nothing).json[0]["path"] == "amount"
    for name in (
        "expirationMinutes",
        "paymentTolerance",
    ):  # such numbers take minutes to write
        for number in ("1e99999999", '"1e99999999"', "-1e99999999"):
            body = f'{{"amount": 5, "checkout": {{"{name}": {number}}}}}'
            assert send(body).status_code == 422, body
    assert greenfield.ask("GET", f"{INVOICES}?orderId=%00").status_code == 422
    assert greenfield.ask("GET", INVOICES).json == [kept.json]


def test_what_is_tiny_long_or_has_blanks_is_kept_within_bounds(greenfield):
    """A tolerance of a hundred million digits; a number beyond an index entry of PostgreSQL."""
    long = "".join(map(str, range(3_000)))
    checkout = {
        "paymentTolerance": "1e-99999999",
        "redirectURL": f"{SHOP}/?r=a|b&o={{OrderId}}",
    }
    order = greenfield.order("0.00000001", "BTC", metadata={"orderId": long})
    assert order["amount"] == "0.00000001" and order["metadata"] == {"orderId": long}
    for number, found in ((long, [order]), (long[:501], [order]), (long[:499], [])):
        assert (
            greenfield.ask("GET", INVOICES, query_string={"orderId": number}).json
            == found
        )
    blanks = row_of(
        greenfield, greenfield.order(metadata={"orderId": "1 &#/"}, checkout=checkout)
    )
    assert blanks.return_url == f"{SHOP}/?r=a%7Cb&o=1%20%26%23%2F"
    assert blanks.tolerance_percent == "0.00"
    no_number = greenfield.order(metadata={"orderId": {"a": 1.5}})
    assert row_of(greenfield, no_number).reference is None
    part = {"amount": f"1.{'0' * 40}1", "currency": "BTC"}
    assert greenfield.ask("POST", INVOICES, part).json[0]["path"] == "amount"


def test_the_stricter_of_plug_in_and_service_wins(tmp_path, ticker, greenfield):
    more = {
        "BLOCKTILL_CONFIRMATIONS": "3",
        "BLOCKTILL_UNDERPAYMENT_TOLERANCE_PERCENT": "2",
    }
    (tmp_path / "strict").mkdir()
    url = ticker.url
    clock = greenfield.shop.clock
    on = {"BLOCKTILL_GREENFIELD": "on"}
    with open_shop(tmp_path / "strict", url, clock, **on, **more) as opened:
        strict = GreenfieldShop(opened)
        for shop, checkout, confirmations, percent, speed in (
            (greenfield, {"speedPolicy": "HighSpeed"}, 1, 0, "MediumSpeed"),
            (greenfield, {"speedPolicy": "LowMediumSpeed"}, 2, 0, "LowMediumSpeed"),
            (strict, {}, 3, 2, "LowSpeed"),
            (
                strict,
                {"speedPolicy": "MediumSpeed", "paymentTolerance": 5},
                3,
                2,
                "LowSpeed",
            ),
            (
                strict,
                {"speedPolicy": "LowSpeed", "paymentTolerance": 1},
                6,
                1,
                "LowSpeed",
            ),
        ):
            order = shop.order(checkout=checkout)
            rules = rules_for(shop.shop.service.settings, row_of(shop, order))
            assert (rules.confirmations, rules.tolerance_percent) == (
                confirmations,
                percent,
            )
            assert order["checkout"]["paymentTolerance"] == percent
            assert order["checkout"]["speedPolicy"] == speed


def test_a_state_is_shown_and_listed_by_its_name(greenfield):
    paid, part, over, new, late = (
        greenfield.order(metadata={"orderId": number})
        for number in (1, '"', "3", "3", "5")
    )
    pay(greenfield.shop, as_dict(row_of(greenfield, paid)))
    pay(greenfield.shop, as_dict(row_of(greenfield, part)), 400)
    pay(greenfield.shop, as_dict(row_of(greenfield, over)), 90_000, confirmed=False)
    greenfield.shop.clock.at += timedelta(hours=2)
    pay(greenfield.shop, as_dict(row_of(greenfield, late)))

    def listed(**query):
        return [
            one["id"]
            for one in greenfield.ask("GET", INVOICES, query_string=query).json
        ]

    assert listed(status="Settled") == [paid["id"]]
    assert listed(status="Processing") == [over["id"]]
    assert listed(status="New") == [new["id"], part["id"]]
    assert listed(status="New", skip=1, take=5) == [part["id"]]
    assert listed(orderId="3") == [new["id"], over["id"]]
    assert listed(orderId="3", status="New") == [new["id"]]
    assert listed(orderId="1") == [paid["id"]]
    assert listed(orderId=["1", "3", "2"], skip=1) == [over["id"], paid["id"]]
    assert listed(status=["New", "Settled"]) == [new["id"], part["id"], paid["id"]]
    assert listed(status=["New", "Expired"], orderId=['"', "5"]) == [
        late["id"],
        part["id"],
    ]
    wrong = greenfield.ask("GET", INVOICES, query_string={"status": ["New", "Old"]})
    assert (wrong.status_code, wrong.json[0]["path"]) == (422, "status.1")
    assert listed(take=1, skip=4) == [paid["id"]]
    assert greenfield.seen(late)["additionalStatus"] == "PaidLate"
    (method,) = greenfield.ask("GET", f"{INVOICES}/{part['id']}/payment-methods").json
    assert (method["totalPaid"], method["due"]) == ("0.00000400", "0.00041267")
    (payment,) = method["payments"]
    assert re.fullmatch("[0-9a-f]{64}-0", payment["id"])
    assert (payment["value"], payment["fee"], payment["status"]) == (
        "0.00000400",
        "0",
        "Settled",
    )


def test_metadata_anew_archived_and_marked(greenfield):
    order = greenfield.order()
    other = greenfield.order()
    path = f"{INVOICES}/{order['id']}"
    anew = {"orderId": "ORD-2", "x": {"y": [1, 1.5, None]}}
    assert greenfield.ask("PUT", path, {"metadata": anew}).json["metadata"] == anew
    assert greenfield.ask("GET", INVOICES, query_string={"orderId": "ORD-2"}).json != []
    assert greenfield.ask("DELETE", path).status_code == 200
    assert [one["id"] for one in greenfield.ask("GET", INVOICES).json] == [other["id"]]
    assert greenfield.seen(order)["archived"] is True
    for status in ("Settled", "settled"):  # the latter by btcpay-python-sdk
        settled = greenfield.ask("POST", f"{path}/status", {"status": status})
        assert settled.status_code == 422 and settled.json[0]["path"] == "status"
    marked = greenfield.ask("POST", f"{path}/status", {"status": "Invalid"}).json
    assert (marked["status"], marked["additionalStatus"]) == ("Invalid", "Marked")
    again = greenfield.ask("POST", f"{path}/status", {"status": "Invalid"})
    assert again.status_code == 422
    pay(greenfield.shop, as_dict(row_of(greenfield, other)), confirmed=False)
    on_its_way = greenfield.ask(
        "POST", f"{INVOICES}/{other['id']}/status", {"status": "Invalid"}
    )
    assert (
        on_its_way.status_code == 422
        and greenfield.seen(other)["status"] == "Processing"
    )


def test_a_key_reaches_its_own_store_and_nothing_else(greenfield):
    shop = greenfield.shop
    stranger = GreenfieldShop(
        shop, url="https://other.example", merchant_id=shop.add_merchant("b")
    )
    sister = GreenfieldShop(shop, url="https://sister.example")
    order = greenfield.order()
    plain = shop.invoice()
    for who in (stranger, sister):
        own = [("GET", ""), ("PUT", ""), ("DELETE", "")]
        for method, path in (*own, ("POST", "/status"), ("GET", "/payment-methods")):
            for store in (who.store, greenfield.store):
                body = (
                    {"metadata": {}, "status": "Invalid"} if method != "GET" else None
                )
                found = who.ask(
                    method, f"/stores/{store}/invoices/{order['id']}{path}", body
                )
                assert found.status_code == 404, (method, path, found.text)
        assert who.ask("GET", INVOICES).json == []
    assert greenfield.ask("GET", f"{INVOICES}/{plain['id']}").status_code == 404
    unknown = (
        "/stores/none",
        "/stores/STORE/",
        "/stores/STORE/users",
        "/api-keys",
        "/server/files",
    )
    for path in (f"{INVOICES}/' OR 1=1", f"{INVOICES}/%00", *unknown):
        found = greenfield.ask("GET", path)
        assert found.status_code == 404, path
        assert found.json["code"] == found.json["error"]["code"] == "not_found"
    for method, path in (
        ("POST", "/stores"),
        ("DELETE", "/stores/STORE"),
        ("PATCH", INVOICES),
        ("PUT", "/server/info"),
        ("OPTIONS", "/api-keys/current"),
    ):
        found = greenfield.ask(method, path)
        assert (found.status_code, "Allow" in found.headers) == (404, False), (
            method,
            path,
        )
        assert found.json["code"] == found.json["error"]["code"] == "not_found"
    assert (
        greenfield.ask("GET", "/balance").status_code == 401
    )  # there a `token` is no key
    plain_key = {"headers": {"Authorization": f"token {shop.write_key}"}}
    for path in ("/stores", "/stores/nobody/nothing", "/server/nothing"):
        assert greenfield.ask("GET", path, **plain_key).status_code == 403
    for header in ("token wrong", "Basic x", ""):
        refused = greenfield.ask("GET", "/stores", headers={"Authorization": header})
        assert refused.status_code == 401


def test_a_shops_key_opens_none_of_the_merchants_operations(greenfield):
    """The Connect page says that it sees no other invoices."""
    shop = greenfield.shop
    secret = greenfield.issued.secret
    plain = shop.invoice()
    documented = error_message(OPERATIONS["get-balance"], "forbidden")
    reads = (
        "/balance",
        "/payments",
        "/payment-links",
        "/invoices",
        f"/invoices/{plain['id']}",
    )
    for path in (*reads, f"/payment-links/{plain['id']}"):
        found = shop.get(path, secret)
        assert (found.status_code, found.json["error"]["code"]) == (403, "forbidden"), (
            path
        )
        assert found.json["error"]["message"] == documented
    for path in ("/invoices", "/payment-links"):
        assert shop.post(path, {"amount_usd": 25}, secret).status_code == 403, path
    assert shop.get("/invoices", shop.read_key).json["data"] == [plain]


def test_each_plug_in_has_the_permissions_that_it_looks_for(greenfield):
    kinds = {
        "woocommerce": set(),
        "shopware": {"DELETE"},
        "pretix": {"DELETE", "STORE"},
    }
    for plugin, lacks in kinds.items():
        key = GreenfieldShop(greenfield.shop, plugin, "https://third.example")
        order = key.order()
        shown = key.ask("GET", "/api-keys/current").json
        assert f"btcpay.store.cancreateinvoice:{key.store}" in shown["permissions"]
        assert shown["apiKey"] == key.issued.secret
        refused = {
            "DELETE": key.ask("DELETE", f"{INVOICES}/{order['id']}"),
            "STORE": key.ask("GET", "/stores/STORE"),
        }
        assert {
            name for name, one in refused.items() if one.status_code == 403
        } == lacks


def test_a_plug_in_has_windows_of_its_own(greenfield):
    *answers, last = (greenfield.ask("GET", "/stores/STORE") for _ in range(601))
    assert {one.status_code for one in answers} == {200}
    assert (last.status_code, last.json["error"]["code"]) == (429, "rate_limited")
    assert "Retry-After" in last.headers
    assert greenfield.order()["status"] == "New"


def test_server_store_rates_and_methods(greenfield, ticker):
    ticker.price("60000.00", eur="50000.50")
    info = greenfield.ask("GET", "/server/info").json
    assert info["version"].startswith("1.13.7+") and info["fullySynched"] is False
    store = greenfield.ask("GET", "/stores/STORE").json
    assert (store["defaultCurrency"], store["invoiceExpiration"]) == ("USD", 3600)
    assert greenfield.ask("GET", "/stores").json == [store]
    assert (
        greenfield.ask("GET", "/stores/STORE/payment-methods").json["BTC"]["enabled"]
        is True
    )
    pairs = {"currencyPair": ["BTC_EUR", "BTC_XXX", "LTC_USD"]}
    good, *bad = greenfield.ask("GET", "/stores/STORE/rates", query_string=pairs).json
    assert good == {"currencyPair": "BTC_EUR", "rate": "50000.50", "errors": []}
    assert all(one["rate"] is None and one["errors"] for one in bad)


def test_metadata_is_erased_with_the_address(greenfield):
    order = greenfield.order(
        metadata={"buyerEmail": "ada@example.com", "buyerName": "Ada", "orderId": 5}
    )
    assert row_of(greenfield, order).customer_email == "ada@example.com"
    pay(greenfield.shop, as_dict(row_of(greenfield, order)))
    greenfield.shop.clock.at += timedelta(days=8)
    erase_emails(greenfield.shop.service.db, 30, greenfield.shop.clock())
    assert greenfield.seen(order)["metadata"]["buyerName"] == "Ada"
    erase_emails(greenfield.shop.service.db, 7, greenfield.shop.clock())
    assert greenfield.seen(order)["metadata"] == {}
    assert row_of(greenfield, order).customer_email is None


def test_every_recorded_request_of_a_plug_in_is_understood(greenfield, ticker):
    ticker.price("60000.00", eur="50000.00")
    order = greenfield.order()
    for recorded in RECORDED:
        path = recorded["path"].removeprefix("/api/v1")
        body = recorded["body"] or {}
        if "webhooks" in path:
            continue  # tests/parts/greenfield/test_webhooks.py
        answer = greenfield.ask(
            recorded["method"], path.replace("INVOICE", order["id"]), recorded["body"]
        )
        anothers = "127.0.0.1" in str((body.get("checkout") or {}).get("redirectURL"))
        is_wrong = (
            body.get("status") == "Settled" or body.get("amount", 1) is None or anothers
        )
        assert answer.status_code == (422 if is_wrong else 200), (recorded, answer.text)


def test_off_nothing_of_it_is_there(shop):
    key = GreenfieldShop(shop)
    bearer = {"headers": {"Authorization": f"Bearer {key.issued.secret}"}}
    for method, path in (
        ("GET", "/stores"),
        ("GET", "/server/info"),
        ("POST", INVOICES),
    ):
        assert key.ask(method, path).status_code == 401
        found = key.ask(method, path, **bearer)
        assert (found.status_code, list(found.json)) == (404, ["error"])
    id = shop.invoice()["id"]
    for path in (f"/i/{id}", f"/invoice?id={id}", "/modal/btcpay.js"):
        assert shop.client.get(path).status_code == 404


def test_the_same_shop_is_one_store_under_each_of_its_keys(greenfield):
    order = greenfield.order()
    again = GreenfieldShop(
        greenfield.shop, "woocommerce", "https://SHOP.example:443/cart/"
    )
    assert again.store == greenfield.store and again.seen(order)["id"] == order["id"]
    assert (
        own_url("https://SHOP.example:443/a?b", SHOP) == "https://SHOP.example:443/a?b"
    )
    for url in (
        *("https://shop.example./", "https://shop.example:8443", "http://shop.example"),
        *("https://shop.example.evil.example/", "https://shop.example@evil.example/"),
    ):
        with pytest.raises(CommandError):
            own_url(url, SHOP)


def test_a_key_that_is_rotated_keeps_its_store(greenfield):
    db = greenfield.shop.service.db
    now = greenfield.shop.clock()
    network = greenfield.shop.service.settings.network
    old = greenfield.issued
    order = greenfield.order()
    greenfield.issued = keys.rotate(db, network, old.id, timedelta(hours=1), now)
    assert greenfield.seen(order)["id"] == order["id"]


NOTHING = {
    "received_sats": 0,
    "unconfirmed_sats": 0,
    "unapplied_sats": 0,
    "settled_reason": None,
}


# fmt: off
@pytest.mark.parametrize(("status", "came", "called"), [
    ("open", {}, ("New", "None")),
    ("open", {"received_sats": 1, "unconfirmed_sats": 1}, ("New", "PaidPartial")),
    ("open", {"received_sats": 949}, ("New", "PaidPartial")),
    ("open", {"received_sats": 950, "unconfirmed_sats": 950}, ("Processing", "None")),
    ("open", {"received_sats": 1000, "unconfirmed_sats": 400}, ("Processing", "None")),
    ("open", {"received_sats": 1001, "unconfirmed_sats": 1}, ("Processing", "PaidOver")),
    ("paid", {"received_sats": 1000}, ("Settled", "None")),
    ("paid", {"received_sats": 950}, ("Settled", "None")),
    ("paid", {"received_sats": 1001}, ("Settled", "PaidOver")),
    ("paid", {"received_sats": 1000, "unapplied_sats": 7}, ("Settled", "PaidOver")),
    ("paid", {"received_sats": 400, "settled_reason": "a friend"}, ("Settled", "Marked")),
    ("expired", {}, ("Expired", "None")),
    ("expired", {"received_sats": 400, "unapplied_sats": 400}, ("Expired", "PaidPartial")),
    ("expired", {"received_sats": 400, "unconfirmed_sats": 400}, ("Expired", "PaidPartial")),
    ("expired", {"unapplied_sats": 1}, ("Expired", "PaidPartial")),
    ("expired", {"received_sats": 400, "unapplied_sats": 949}, ("Expired", "PaidPartial")),
    ("expired", {"received_sats": 400, "unapplied_sats": 950}, ("Expired", "PaidLate")),
    ("canceled", {"unapplied_sats": 5}, ("Invalid", "Marked")),
])
# fmt: on
def test_every_state_has_its_names(status, came, called):
    row = blank(Invoice, **NOTHING | {"status": status, "amount_sats": 1000} | came)
    assert plug_in_status(row, Rules(1, Decimal(5))) == called
    assert called[0] == STATUS_BY_OURS.get(status, called[0])


@pytest.mark.parametrize("usual", ["0", "0.29", "4.000000001", "5"])
def test_the_status_that_is_listed_is_the_one_that_is_shown(open_shops, usual):
    """At each side of the least sum that pays, for tolerances of the service and of the order."""
    shop = open_shops(BLOCKTILL_GREENFIELD="on", BLOCKTILL_UNDERPAYMENT_TOLERANCE_PERCENT=usual)
    greenfield = GreenfieldShop(shop)
    order = greenfield.order()
    for own in (None, "0.00", "0.29", "4.99", "5.00"):
        percent = min(Decimal(usual), Decimal(own or usual))
        for amount in (100, 999, 41_667, 10**9):
            least = required_sats(amount, percent)
            for received, expected in ((least - 1, "New"), (least, "Processing")):
                text = "NULL" if own is None else f"'{own}'"
                shop.sql(  # our own values
                    f"UPDATE invoice SET amount_sats = {amount}, received_sats = {received},"  # noqa: S608
                    f" tolerance_percent = {text} WHERE id = '{order['id']}'"
                )
                for status in ("New", "Processing"):
                    found = greenfield.ask("GET", INVOICES, query_string={"status": status}).json
                    shown = [one["status"] for one in found]
                    assert shown == ([status] if status == expected else []), (own, amount)


@pytest.fixture
def two_orders(greenfield):
    """An order that was paid, with the number 7, and one with the number 8."""
    seven, eight = (greenfield.order(metadata={"orderId": number}) for number in ("7", "8"))
    pay(greenfield.shop, as_dict(row_of(greenfield, seven)))
    return seven, eight


@pytest.mark.parametrize(
    "query",
    ["orderId[]=7", "orderId[0]=7", "OrderId=7", "orderid%5B%5D=7", "ORDERID[1]=7", "orderId=7",
     "status[0]=Settled", "status[]=settled", "Status=SETTLED", "status=settled&orderId[]=7",
     "orderId=7&take=&skip=&textSearch="],
)  # fmt: skip
def test_a_filter_is_understood_however_php_writes_it(greenfield, two_orders, query):
    found = greenfield.ask("GET", f"{INVOICES}?{query}").json
    assert [order["metadata"]["orderId"] for order in found] == ["7"]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("order_id=7", "order_id"),
        ("orderId[a]=7", "orderId[a]"),
        ("orderId[0][id]=7", "orderId[0][id]"),
        ("orderId.0=7", "orderId.0"),
        ("[]=7", "[]"),
        ("textSearch=7", "textSearch"),
        ("startDate=1", "startDate"),
        ("EndDate[]=1", "endDate"),
        ("status=Paid", "status.0"),
        ("status=", "status.0"),
        ("take=1&Take[]=2", "take"),
        ("filter=x&orderId=7", "filter"),
    ],
)
def test_a_plug_ins_filter_not_understood_lists_nothing(greenfield, two_orders, query, path):
    answer = greenfield.ask("GET", f"{INVOICES}?{query}")
    assert answer.status_code == 422, answer.text
    assert [one["path"] for one in answer.json] == [path]


def test_an_empty_number_is_no_number_of_an_order(greenfield, two_orders):
    assert greenfield.ask("GET", f"{INVOICES}?orderId=").json == []


def test_names_and_words_of_a_body_are_understood_in_any_case(greenfield):
    sent = {
        "Amount": "5",
        "CURRENCY": "usd",
        "Metadata": {"orderid": "9", "BuyerEmail": "a@example.com", "ItemDesc": "two mugs"},
        "checkout": {"redirectUrl": f"{SHOP}/back", "speedPolicy": "lowMediumSpeed"},
    }
    sent["checkout"]["PaymentMethods"] = ["", "btc-onchain"]
    made = greenfield.ask("POST", INVOICES, sent)
    assert made.status_code == 200, made.text
    assert made.json["metadata"] == sent["Metadata"]
    assert made.json["checkout"]["speedPolicy"] == "LowMediumSpeed"
    assert made.json["checkout"]["redirectURL"] == f"{SHOP}/back"
    row = row_of(greenfield, made.json)
    assert (row.order_id, row.customer_email) == ("9", "a@example.com")
    assert (row.description, row.return_url) == ("two mugs", f"{SHOP}/back")
    path = f"{INVOICES}/{made.json['id']}"
    anew = greenfield.ask("PUT", path, {"MetaData": {"OrderID": "10"}}).json
    assert anew["metadata"] == {"OrderID": "10"}
    assert row_of(greenfield, made.json).order_id == "10"
    marked = greenfield.ask("POST", f"{path}/status", {"Status": "inVALID"}).json
    assert marked["status"] == "Invalid"


def test_of_two_spellings_of_a_name_the_exact_one_counts(greenfield):
    for sent in ({"AMOUNT": "7", "amount": "5"}, {"amount": "5", "AMOUNT": "7"}):
        assert greenfield.ask("POST", INVOICES, sent | {"currency": "USD"}).json["amount"] == "5"


def test_an_empty_text_is_absent_where_something_may_be_absent(greenfield):
    words = ("speedPolicy", "redirectURL", "defaultLanguage", "paymentTolerance")
    others = ("expirationMinutes", "redirectAutomatically")
    sent = {"amount": "5", "currency": " ", "checkout": dict.fromkeys((*words, *others), "")}
    empty = greenfield.ask("POST", INVOICES, sent)
    assert empty.status_code == 200, empty.text
    without = greenfield.ask("POST", INVOICES, {"amount": "5"}).json
    assert empty.json["checkout"] == without["checkout"]
    assert empty.json["currency"] == without["currency"]
    for wrong, path in (({"amount": ""}, "amount"), ({"amount": "5", "checkout": ""}, "checkout")):
        answer = greenfield.ask("POST", INVOICES, wrong)
        assert (answer.status_code, answer.json[0]["path"]) == (422, path)


def test_rates_are_asked_for_as_php_asks(greenfield, ticker):
    ticker.price("60000.00", eur="50000.00")
    for query in ("currencyPair[]=BTC_EUR", "CurrencyPair[0]=btc_eur", "currencypair=BTC_EUR"):
        (rate,) = greenfield.ask("GET", f"/stores/STORE/rates?{query}").json
        assert (rate["currencyPair"], rate["rate"]) == ("BTC_EUR", "50000.00")
    refused = greenfield.ask("GET", "/stores/STORE/rates?currency_pair=BTC_EUR")
    assert (refused.status_code, refused.json[0]["path"]) == (422, "currency_pair")

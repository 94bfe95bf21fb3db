"""Every answer: nobody may keep it, a newline ends it, and it names the fields it ignored."""

import json

import pytest

from btcpay.api.ignored_names import unknown_names

ORDER = {"amount_usd": 25}
NAMES = "X-Ignored-Fields"


def test_every_answer_of_the_api_may_be_kept_by_nobody_and_ends_with_a_newline(
    shop, ticker
):
    """So that a terminal's prompt begins its own line."""
    invoice = shop.invoice()
    link = shop.link()
    ticker.status = 500
    shop.clock.move(hours=1)
    key = shop.issue("write")
    answers = [
        shop.get("/balance"),
        shop.get("/invoices"),
        shop.get(f"/invoices/{invoice['id']}"),
        shop.get(f"/payment-links/{link['id']}"),
        shop.get("/payments"),
        shop.post("/payment-links", {}, key),
        shop.get("/openapi.json", key=""),
        shop.get("/balance", key=""),
        shop.get("/balance", key="sk_test_wrong"),
        shop.post("/invoices", ORDER, shop.read_key),
        shop.post("/invoices", {}, key),
        shop.get("/invoices/inv_no"),
        shop.get("/nothing"),
        shop.get(""),
        shop.post("/balance", {}, key),
        shop.post("/invoices", data=b" " * 70_000, key=key),
        shop.client.put("/api/v1/openapi.json"),
    ]
    statuses = {answer.status_code for answer in answers}
    assert statuses == {200, 201, 400, 401, 403, 404, 405, 413}
    answers += [shop.post("/payment-links", {}) for _ in range(31)]
    assert answers[-1].status_code == 429
    shop.sql("ALTER TABLE balance RENAME TO gone")
    answers.append(shop.get("/balance"))
    assert answers[-1].status_code == 500
    assert [a.headers.getlist("Cache-Control") for a in answers] == [
        ["no-store"]
    ] * len(answers)
    paths = ("/healthz", "/readyz", f"/pay/{invoice['id']}/status", "/pay/inv_x/status")
    for answer in (*answers, *(shop.client.get(path) for path in paths)):
        assert answer.content_type == "application/json"
        assert answer.data.endswith((b"}\n", b"]\n")) and answer.data.count(b"\n") == 1
        assert answer.content_length == len(answer.data)


@pytest.mark.parametrize(
    "path", ["/api/v1/a%0Ab", "/api/v1/balance%0A", "/api/v1/a/%0A/b"]
)
def test_a_path_with_a_line_break_comes_in_by_the_same_door(shop, path):
    for method in ("GET", "POST"):
        answer = shop.client.open(
            path, method=method, headers={"Authorization": "Bearer x"}
        )
        assert answer.status_code == 401 and "X-RateLimit-Limit" in answer.headers


def test_a_websocket_handshake_is_an_ordinary_request(shop):
    """Caddy and other proxies pass it on."""
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Authorization": "Bearer x",
    }
    answer = shop.client.get("/api/v1/balance", headers=upgrade)
    assert answer.status_code == 401 and answer.headers["X-RateLimit-Remaining"] == "19"


def test_an_address_without_a_path_is_the_root(shop):
    """`GET http://host HTTP/1.1`: it leads nowhere else."""
    answer = shop.client.get(
        "/", environ_overrides={"PATH_INFO": ""}, headers={"Accept": "*/*"}
    )
    assert answer.status_code == 404 and "Location" not in answer.headers


def in_order(shop, body):
    """An order whose names stand as they do here: the test client would sort them."""
    kind = {"Content-Type": "application/json"}
    return shop.post("/invoices", data=json.dumps(body), headers=kind)


def test_a_mistyped_field_is_named_and_the_invoice_made(shop):
    answer = in_order(shop, ORDER | {"expires_in_hour": 1, "memo": None, "a b": [{}]})
    assert answer.status_code == 201 and answer.json["expires_at"] is None
    assert answer.headers.getlist(NAMES) == ["expires_in_hour, memo, a b"]


def test_where_every_field_is_known_the_header_is_missing(shop):
    for path, body in (
        (
            "/invoices",
            ORDER | {"description": "x", "customer_email": None, "expires_in_hours": 1},
        ),
        ("/payment-links", {"amount_mode": "fixed", "amount_usd": 5, "title": "t"}),
        (
            "/payment-links",
            {"min_amount_usd": 1, "max_amount_usd": 2, "description": "d"},
        ),
    ):
        answer = shop.post(path, body)
        assert answer.status_code == 201 and NAMES not in answer.headers


BY_PATH = {
    "/invoices?limit=5&status=open": None,
    "/payments?limit=5&invoice_id=inv_no": None,
    "/invoices?limit=5&cursor=x&cursor=y&Status=open": "cursor, Status",
    "/payments?status=open": "status",
    "/payment-links?page=2": "page",
    "/balance?limit=5": "limit",
    "/invoices?limit=0&page=2": "page",
    "/invoices/inv_no?expand=all": "expand",
}


def test_query_parameters_are_named_likewise_and_once_beside_fields(shop):
    assert {path: shop.get(path).headers.get(NAMES) for path in BY_PATH} == BY_PATH
    answer = shop.post("/invoices?memo=1&x=2", ORDER | {"memo": 1, "note": 2})
    assert answer.headers[NAMES] == "memo, x, note"


def test_a_replay_and_an_answer_that_fails_name_what_their_own_body_had(shop, ticker):
    odd = {"expires_in_hour": 1}
    assert shop.post("/invoices", odd).headers[NAMES] == "expires_in_hour"
    retry, again = ({"headers": {"Idempotency-Key": key}} for key in ("one", "again"))
    first, replay = (shop.post("/invoices", ORDER | odd, **again) for _ in range(2))
    assert replay.headers["Idempotent-Replayed"] == "true" and replay.json == first.json
    assert first.headers[NAMES] == replay.headers[NAMES] == "expires_in_hour"
    assert shop.post("/invoices", ORDER, **retry).status_code == 201
    conflict = shop.post("/invoices", ORDER | odd, **retry)
    assert (conflict.status_code, conflict.headers[NAMES]) == (409, "expires_in_hour")
    ticker.status = 500
    shop.clock.move(hours=1)
    shop.sql("ALTER TABLE invoice RENAME TO gone")
    failed = shop.post("/invoices", ORDER | odd)
    assert (
        failed.status_code in (500, 503) and failed.headers[NAMES] == "expires_in_hour"
    )


def test_what_was_not_read_names_nothing(shop):
    odd = ORDER | {"memo": 1}
    for answer in (
        shop.post("/invoices?x=1", odd, key="sk_test_wrong"),
        shop.post("/invoices?x=1", odd, key=shop.read_key),
        shop.get("/nothing?x=1"),
        shop.post("/invoices", [1, 2]),
        shop.post("/invoices", data=b"{", headers={"Content-Type": "application/json"}),
    ):
        assert answer.status_code >= 400 and NAMES not in answer.headers


FIT = ("x" * 100, "~!", "a b")
UNFIT = {
    "101 characters": "x" * 101,
    "a blank in front": " a",
    "a blank behind": "a ",
    "nothing": "",
    "a comma": "a,b",
    "a line break": "a\r\nSet-Cookie: x=y",
    "a line break at its end": "a\n",
    "a tab": "a\tb",
    "DEL": "a\x7f",
    "a letter beyond ASCII": "caf\u00e9",
    "a lone surrogate": "\ud800",
}


def test_a_name_is_shown_when_a_header_can_hold_it():
    assert unknown_names([*FIT, "z"], ()) == [*FIT, "z"]
    for case, name in UNFIT.items():
        assert unknown_names([name, "z"], ()) == ["z"], case


@pytest.mark.parametrize("number", [20, 21, 4000])
def test_at_most_twenty_are_named(shop, number):
    names = [f"n{index}" for index in range(number)]
    answer = in_order(
        shop, ORDER | {f"é{index}": 1 for index in range(50)} | dict.fromkeys(names)
    )
    assert answer.status_code == 201
    assert answer.headers[NAMES] == ", ".join(names[:20])

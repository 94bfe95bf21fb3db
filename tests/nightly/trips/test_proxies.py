"""The proxies' configurations in deploy/, in front of a real service."""

import contextlib
import http.client
import json
import time

import pytest

from tests.support import proxies
from tests.support.builders import Live, until
from tests.support.merchant_browser import ON
from tests.support.ports import free_port
from tests.support.strangers import KEPT, NEW, strangers, visits


@pytest.fixture(params=["nginx", "caddy"])
def proxy(request, tmp_path, shop):
    folder = tmp_path / "proxy"
    folder.mkdir()
    with (
        Live(
            shop,
            tmp_path,
            BLOCKTILL_TRUSTED_PROXIES="1",
            BLOCKTILL_GREENFIELD="on",
            **ON,
        ) as live,
        getattr(proxies, request.param)(folder, live.port).running() as running,
    ):
        yield running


def order(proxy, shop, body):
    key = f"Bearer {shop.write_key}"
    status, _, answer = proxy.ask(
        "POST", "/api/v1/invoices", body=body, Authorization=key
    )
    return status, json.loads(answer)


def test_an_invoice_is_made_while_clients_that_drip_occupy_the_proxy_alone(proxy, shop):
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            dripping = stack.enter_context(contextlib.closing(proxy.connect()))
            dripping.putrequest("POST", "/api/v1/invoices")
            dripping.putheader("Content-Length", "100")
            dripping.endheaders(b"{")
        started_s = time.monotonic()
        status, made = order(proxy, shop, {"amount_usd": 25})
        assert status == 201
        assert proxy.ask("GET", f"/pay/{made['id']}")[0] == 200
        assert time.monotonic() - started_s < 20
    assert order(proxy, shop, b"x" * 100_000)[1]["error"]["code"] == "payload_too_large"


def test_the_visitors_address_is_believed_and_a_forged_one_is_not(proxy):
    def fails(source, forged=""):
        """Invalid keys that this visitor may still send."""
        headers = {"Authorization": "Bearer sk_test_wrong"}
        if forged:
            headers |= {
                "X-Forwarded-For": forged,
                "X-Real-IP": forged,
                "Forwarded": forged,
            }
        status, answered, _ = proxy.ask("GET", "/api/v1/balance", source, **headers)
        assert status == 401
        return int(answered["X-RateLimit-Remaining"])

    assert [fails("127.0.0.1"), fails("127.0.0.1"), fails("127.0.0.2")] == [19, 18, 19]
    # Neither does a forged address give the visitor a new window, nor does it use up another's.
    forged = ("127.0.0.2", "203.0.113.7, 10.0.0.1")
    assert [fails("127.0.0.1", text) for text in forged] == [17, 16]
    assert fails("127.0.0.2") == 18


def test_only_a_backup_to_restore_may_be_larger_than_the_services_limit(proxy):
    body = b"x" * 3_000_000
    assert proxy.ask("POST", "/merchant/start/x/restore", body=body)[0] == 404

    def is_refused():  # Caddy says 502, or passes on 404 if that comes before the limit
        answer = proxy.ask("POST", "/merchant/start/x", body=body)
        return answer[0] in (413, 502)

    until(is_refused, "the limit")


# Ways to write the same path, which a proxy and the service might not understand alike.
INSIDE = {"/merchant": 401, "/merchant/sessions": 401, "/merchant/login/x": 410}
INSIDE |= {"/api-keys/authorize": 401, "/api-keys/authorize/?redirect=x": 401}
WRITTEN = (
    *INSIDE,
    *("/merchant/", "/merchant?x", "/%6derchant", "/mercha%6Et/sessions", "//merchant"),
    *(
        "/./merchant",
        "/pay/../merchant",
        "/pay/%2e%2e/merchant",
        "/merchant%2fsessions",
    ),
    *("/merchant;x", "/merchant/./login/x", "/x/merchant", "/MERCHANT"),
    *("/api-keys/authorize/", "/api-keys//authorize", "/%61pi-keys/authorize?x"),
    *("/pay/../api-keys/authorize", "/api-keys%2fauthorize", "/API-KEYS/authorize"),
)


def test_the_merchants_pages_are_for_the_house_alone(proxy):
    """Also for a path below the folder /x; of the loopback the first address is the house's."""

    def status_of(path, source):
        return proxy.ask("GET", path, source, SCRIPT_NAME="/x")[0]

    assert {path: status_of(path, "127.0.0.1") for path in INSIDE} == INSIDE
    found = {path: status_of(path, "127.0.0.2") for path in WRITTEN}
    assert {path: found[path] for path in INSIDE} == dict.fromkeys(INSIDE, 403)
    assert {
        path: status for path, status in found.items() if status not in (400, 403, 404)
    } == {}
    assert status_of("/readyz", "127.0.0.2") in (200, 503)  # the rest is for everybody


@pytest.mark.parametrize("proxy", ["nginx", "caddy"], indirect=True)
def test_an_accountants_link_works_from_outside(proxy):
    status, headers, _ = proxy.ask("GET", "/file/secret", "127.0.0.2")
    assert status == 404 and headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("proxy", ["nginx"], indirect=True)
def test_nginx_leads_to_tls_and_writes_no_link_that_is_a_secret_into_its_logs(proxy):
    plain = http.client.HTTPConnection("127.0.0.1", proxy.plain, timeout=60)
    with contextlib.closing(plain):
        plain.request("GET", "/pay/x?y")
        answer = plain.getresponse()
    location = "https://pay.example.com/pay/x?y"
    assert (answer.status, answer.headers["Location"]) == (301, location)
    assert statuses(proxy, "127.0.0.1") == [410, 404, 401]
    assert proxy.ask("GET", "/file/secret", "127.0.0.2")[0] == 404
    assert (
        statuses(proxy, "127.0.0.2") == [403] * 3
    )  # a link refused here works elsewhere
    assert_logged(proxy, "access.log")
    assert_logged(proxy, "error.log")


def statuses(proxy, source):
    paths = ("/merchant/login/secret", "/merchant/start/secret", "/merchant/sessions")
    return [proxy.ask("GET", path, source)[0] for path in paths]


def assert_logged(proxy, name):
    """Only the last of these paths is in the log."""
    log = proxy.folder / name
    until(lambda: "/merchant/sessions" in log.read_text(), "the request to be logged")
    assert "secret" not in log.read_text()


def test_nginx_writes_no_such_link_into_its_log_while_the_service_is_away(tmp_path):
    with proxies.nginx(tmp_path, free_port()).running() as proxy:
        assert statuses(proxy, "127.0.0.1") == [502, 502, 502]
        assert_logged(proxy, "error.log")


def test_the_onion_service_has_no_merchants_pages_and_logs_no_login_link(tmp_path):
    with proxies.onion(tmp_path, free_port()).running() as proxy:
        assert statuses(proxy, "127.0.0.1") == [403, 403, 403]
        assert proxy.ask("GET", "/api-keys/authorize?x")[0] == 403
        assert (
            proxy.ask("GET", "/file/secret")[0] == proxy.ask("GET", "/pay/x")[0] == 502
        )
        until(lambda: "/pay/x" in (tmp_path / "access.log").read_text(), "the log")
        assert not any("secret" in log.read_text() for log in tmp_path.glob("*.log"))


@pytest.mark.parametrize("proxy", ["nginx"], indirect=True)
@pytest.mark.parametrize("count", [60, 200])
@pytest.mark.parametrize("sent", [KEPT, NEW], ids=["kept", "new"])
def test_a_new_visitor_waits_a_second_at_worst_beside_strangers(
    proxy, shop, sent, count
):
    page = f"/pay/{shop.invoice()['id']}"

    def connect():
        connection = proxy.connect()
        connection.connect()
        return connection.sock

    def visit():
        assert proxy.ask("GET", page, "127.0.0.2")[0] == 200

    visit()  # the first page of a process compiles its template
    with strangers(connect, sent, count) as answers:
        until(lambda: answers[0] > count, "all strangers to ask")
        waited = visits(visit, answers)
    # Answers, as a busy machine gives less of them in a second: a quiet one 2,000.
    assert not any(s > 1 and told > 2_000 for s, told in waited), waited

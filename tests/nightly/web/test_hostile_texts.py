"""One stranger's text stops nobody: the worst that is known, in all that a request can hold.

Forms are found on the pages, paths in the routes, parameters and headers in the source, fields of
JSON in the schemas: what is added later is walked too.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle, product
from typing import Any
from urllib.parse import urlencode

import pytest
from marshmallow import fields as kinds

from btcpay.merchants import sessions
from btcpay.web.paths import redirect_to_page
from schemas.requests import Body
from tests.support.builders import Clock, Live, Shop, open_shop, pay
from tests.support.hostile import TEXTS, Forms, Stranger, escaped_text, text_of
from tests.support.merchant_browser import FROM_THIS_SITE, MerchantBrowser
from tests.support.merchant_paths import filled
from tests.support.paths import PROJECT

MOST_S = 0.4  # of the processor: whoever asks beside it waits no longer
MAX_BODY, MAX_LINE, MAX_HEADER = (
    65_500,
    3_900,
    8_000,
)  # bytes that the service and gunicorn read
SAME_SITE = {"Sec_Fetch_Site": b"same-origin"}
FORM = SAME_SITE | {"Content_Type": b"application/x-www-form-urlencoded"}
IN_JSON = {"Content_Type": b"application/json"}
PER_SECRET = 20  # requests: no key meets its limit
PER_SESSION = 200  # three seconds lie between two of them
EVERYTHING = {
    "BLOCKTILL_MERCHANT_PAGES": "on",
    "BLOCKTILL_GREENFIELD": "on",
    "BLOCKTILL_TRUSTED_PROXIES": "1",
    "BLOCKTILL_SMTP_URL": "smtp://127.0.0.1:9",
    "BLOCKTILL_MAIL_FROM": "Shop <shop@example.com>",
}
# What the fields get beside the one that is walked, so that nothing ends before that is read.
VALID = {
    "amount": "25",
    "name": "Ada",
    "email": "ada@example.com",
    "address": "ada@example.com",
    "currency": "USD",
    "timezone": "UTC",
    "language": "en",
    "scope": "write",
    "url": "https://shop.example/hook",
    "from": "2036-01-01",
    "to": "2036-01-31",
    "until": "2099-01-01",
    "every": "month",
}
OF_A_SHOP = "redirect=https://shop.example/back" + "".join(
    f"&permissions=btcpay.store.{name}"
    for name in (
        "cancreateinvoice",
        "canviewinvoices",
        "canmodifyinvoices",
        "cancreatenonapprovedpullpayments",
        "webhooks.canmodifywebhooks",
    )
)
# Forms that end the session or what others need: walked by nobody.
LAST = (
    "/merchant/till/log-out",
    "/merchant/sessions/end-others",
    "/revoke",
    "/end",
    "/remove",
)


@dataclass
class Walk:
    """A shop that has some of everything, its server, and the stranger who walks it."""

    shop: Shop
    live: Live
    ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stranger = Stranger(self.live, self.shop, MOST_S)
        self.write_keys = renewed(lambda: self.shop.issue("write"))
        self.read_keys = renewed(lambda: self.shop.issue("read"))
        self.sessions = renewed(self._new_session, PER_SESSION)

    def _new_session(self) -> tuple[str, str]:
        """Its secret, and the token that its forms hold."""
        browser = MerchantBrowser(self.shop).log_in()
        return browser.client.get_cookie("merchant").value, browser.token()

    def rules(self, method: str) -> list[str]:
        """The paths that are served by this method."""
        rules = self.shop.app.url_map.iter_rules()
        served = {
            rule.rule for rule in rules if rule.methods and method in rule.methods
        }
        return sorted(served)

    def view(self, rule: str) -> Callable[..., Any]:
        """What answers GET there."""
        app = self.shop.app
        (endpoint,) = {
            found.endpoint
            for found in app.url_map.iter_rules()
            if found.rule == rule and "GET" in (found.methods or ())
        }
        return app.view_functions[endpoint]

    def paths(self, method: str) -> Iterator[str]:
        """Each of them with each of the ids and secrets in its places."""
        for rule in self.rules(method):
            fitting = self.ids if "<store>" not in rule else self.ids[-1:]
            yield from filled(rule, fitting)


def renewed(make: Callable[[], Any], times: int = PER_SECRET) -> Iterator[Any]:
    """The same thing as often as its limit allows, then another."""
    while True:
        thing = make()
        for _ in range(times):
            yield thing


@pytest.fixture(scope="module")
def walk(tmp_path_factory, ticker):
    ticker.reset()
    folder = tmp_path_factory.mktemp("walk")
    with (
        open_shop(folder, ticker.url, Clock(), **EVERYTHING) as shop,
        Live(shop, folder) as live,
    ):
        walk = Walk(shop, live)
        walk.ids = some_of_everything(shop)
        yield walk


def id_of(walk: Walk, prefix: str) -> str:
    return next(id for id in walk.ids if id.startswith(f"{prefix}_"))


def some_of_everything(shop: Shop) -> list[str]:
    """Ids and secrets for the places in paths: of what the pages' own forms make, and is paid."""
    browser = MerchantBrowser(shop).log_in()
    paid = shop.invoice(description="Tea")
    over = shop.invoice(description="Tea")
    pay(shop, paid), pay(shop, over), pay(shop, over, 5000)
    link = shop.link(title="Tip jar")["id"]
    asks = {"ask_email": "may", "ask_name": "may", "ask_note": "may"}
    browser.post(f"/links/{link}", title="Tip jar", **asks)
    browser.post("/bills", **VALID)
    browser.post(f"/invoices/{over['id']}/refund", currency="USD")
    browser.post("/till", amount="25", press="a")
    browser.post("/tips", tips="5 10", cashier="on")
    browser.post("/keys", name="till", scope="read")
    browser.post("/webhooks", url="https://shop.example/hook")
    days = {"from": "2036-01-01", "to": "2036-01-31"}
    files = re.findall(r"/file/([0-9A-Za-z]+)", browser.post("/files", **days).text)
    tables = (
        "invoice",
        "payment_link",
        "bill",
        "refund",
        "api_key",
        "receiver",
        "file_link",
    )
    rows = [shop.sql(f"SELECT id FROM {table}").fetchall() for table in tables]  # noqa: S608
    login = sessions.new_login(
        shop.service.db, shop.merchant_id, shop.clock(), till_only=False
    )
    return [*files[:1], login, *(id for found in rows for (id,) in found)]


def found_forms(walk: Walk) -> dict[str, tuple[str, dict[str, str]]]:
    """By its route each form on any page: its address, and its fields with their values."""
    browser = MerchantBrowser(walk.shop).log_in()
    forms = {}
    pages = [
        "/merchant/login/none",
        f"/api-keys/authorize?{OF_A_SHOP}",
        *walk.paths("GET"),
    ]
    for path in pages:
        walk.shop.clock.move(seconds=61)
        for client in (browser.client, walk.shop.client):
            page = client.get(path)
            text = page.text if page.mimetype == "text/html" else ""
            for method, to, fields in Forms(path, text).found:
                if method == "POST":
                    forms.setdefault(rule_of(walk, to), (to, {}))[1].update(fields)
    return forms


def fields_and_texts(walk: Walk) -> Iterator[tuple[str, dict[str, str], str, str]]:
    """Each form with its address and fields, then each of its fields with each of the texts.

    A route whose form no page shows now gets every field that there is, each with another text.
    """
    forms = found_forms(walk)
    texts = cycle(TEXTS)
    assert len(forms) > 25 and "amount" in forms["/link/<id>"][1]
    for to, fields in forms.values():
        for name, text in product(fields, TEXTS):
            yield to, fields, name, text
    everything = {name: "" for _, fields in forms.values() for name in fields} | {
        "key": ""
    }
    for rule in set(walk.rules("POST")) - set(forms):
        if not rule.startswith("/api/"):
            for name in everything:
                yield next(filled(rule, walk.ids)), everything, name, next(texts)


def rule_of(walk: Walk, to: str) -> str:
    adapter = walk.shop.app.url_map.bind("localhost")
    rule, _ = adapter.match(to.partition("?")[0], "POST", return_rule=True)
    return rule.rule


def test_no_field_of_any_form_holds_the_others_up(walk):
    for to, fields, name, text in fields_and_texts(walk):
        if to.endswith(LAST):
            continue
        secret, token = next(walk.sessions)
        others = {other: VALID.get(other, value) for other, value in fields.items()}
        others |= {"token": token}
        others.pop(name)
        rest = urlencode(others).encode()
        begin = name.encode() + b"="
        hostile = text_of(text, MAX_BODY - len(begin) - len(rest)).replace(b"&", b"")
        body = b"%s%s&%s" % (begin, hostile, rest)
        cookie = b"merchant=%s" % secret.encode()
        where = f"in {name} of {to}"
        path = to.encode()
        walk.stranger.send(text, where, "POST", path, body, Cookie=cookie, **FORM)


# The operations' bodies, by route; the fields are those of the schema and its nested ones.
BODIES = {
    "/api/v1/invoices": "NewInvoice",
    "/api/v1/payment-links": "NewPaymentLink",
    "/api/v1/stores/<store>/invoices": "NewOrder",
    "/api/v1/stores/<store>/invoices/": "NewOrder",
    "/api/v1/stores/<store>/invoices/<inv>": "NewMetadata",
    "/api/v1/stores/<store>/invoices/<inv>/status": "Mark",
    "/api/v1/stores/<store>/invoices/<inv>/refund": "NewRefund",
    "/api/v1/stores/<store>/pull-payments": "NewPullPayment",
    "/api/v1/stores/<store>/webhooks": "NewWebhook",
    "/api/v1/stores/<store>/webhooks/<whk>": "NewWebhook",
}
# Bodies beside the walked field, and the fields of an object that takes any.
SENT = {
    "NewInvoice": {"amount_usd": 25},
    "NewOrder": {"amount": "25.00", "currency": "USD"},
    "NewMetadata": {"metadata": {"orderId": "7"}},
    "Mark": {"status": "Invalid"},
    "NewRefund": {
        "refundVariant": "Custom",
        "customAmount": "1",
        "customCurrency": "USD",
    },
    "NewPullPayment": {"amount": "1", "currency": "USD"},
    "NewWebhook": {"url": "https://shop.example/hook"},
}
OF_METADATA = ("orderId", "itemDesc", "buyerEmail")
VALUES = {
    "many digits": b"9" * 60_000,
    "a number with an exponent of nine digits": b"1e999999999",
    "a small one": b"1e-999999999",
    "one with an exponent of thirty digits": b"1e" + b"9" * 30,
    "a long fraction": b"0." + b"0" * 60_000 + b"1",
    "brackets as deep as they may be": b"[" * 90 + b"]" * 90,
    "brackets that are too deep": b"[" * 60_000,
    "many objects": b"[" + b"{}," * 20_000 + b"1]",
    "many numbers": b"[" + b"1e999999999," * 5_000 + b"1]",
    "many names": b"{"
    + b",".join(b'"%d":1' % number for number in range(7_000))
    + b"}",
    "many places of an order's number": b'"https://shop.example/'
    + b"{OrderId}" * 6_000
    + b'"',
}


def schemas(root: type = Body) -> Iterator[type]:
    for known in root.__subclasses__():
        yield known
        yield from schemas(known)


def fields_of(schema: Any) -> Iterator[tuple[str, ...]]:
    """The path of each field, within nested objects too."""
    for name, kind in schema().fields.items():
        yield (name,)
        if name == "metadata":
            yield from ((name, inner) for inner in OF_METADATA)
        elif nested := getattr(kind, "nested", None):
            yield from ((name, *inner) for inner in fields_of(nested))


def body_with(sent: dict[str, Any], path: tuple[str, ...], raw: bytes) -> bytes:
    """The body's JSON with this raw value there."""
    body = json.loads(json.dumps(sent))
    place = body
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = "HERE"
    return json.dumps(body).encode().replace(b'"HERE"', raw)


def shop_keys(shop: Shop) -> Iterator[tuple[str, str]]:
    """A key and its store, as a plug-in asks for it; as often as its limit allows, then another."""
    browser = MerchantBrowser(shop).log_in()
    path = f"/api-keys/authorize?{OF_A_SHOP}"
    while True:
        shop.clock.move(seconds=61)
        forms = Forms(path, browser.client.get(path).text).found
        (fields,) = [fields for _, _, fields in forms if "press" in fields]
        given = browser.client.post(path, data=fields, headers=FROM_THIS_SITE).text
        key = re.search(r'name="apiKey" value="(\w+)"', given)[1]
        yield from [(key, re.search(r":(store_\w+)", given)[1])] * PER_SECRET


def test_no_field_of_a_body_in_json_holds_the_others_up(walk):
    served = {method: walk.rules(method) for method in ("POST", "PUT")}
    routes = {
        rule
        for rules in served.values()
        for rule in rules
        if rule.startswith("/api/v1/")
    }
    assert routes <= set(BODIES), "a new operation: its body is to be walked"
    known = {schema.__name__: schema for schema in schemas()}
    known |= {"NewMetadata": Body.from_dict({"metadata": kinds.Dict()})}
    known |= {"Mark": Body.from_dict({"status": kinds.String()})}
    of_shops = shop_keys(walk.shop)
    order = ""
    for rule in sorted(
        routes, reverse=True
    ):  # that of one webhook before that of new ones
        method = "POST" if rule in served["POST"] else "PUT"
        sent = SENT.get(BODIES[rule], {})
        for path in fields_of(known[BODIES[rule]]):
            texts = [(name, b'"%s"' % quoted(text_of(name, 60_000))) for name in TEXTS]
            for name, raw in [*texts, *VALUES.items()]:
                key, store = (
                    next(of_shops) if "<store>" in rule else (next(walk.write_keys), "")
                )
                if "<inv>" in rule and not order.startswith(store):
                    order = f"{store} {new_order(walk, key, store)}"
                if "<whk>" in rule and not order.startswith(f"{store} whk"):
                    order = f"{store} {new_webhook(walk, key, store)}"
                target = rule.replace("<store>", store)
                target = re.sub("<(inv|whk)>", order.partition(" ")[2], target)
                body = body_with(sent, path, raw)
                by = b"Bearer %s" % key.encode()
                walk.stranger.send(
                    name,
                    f"in {path} of {rule}",
                    method,
                    target.encode(),
                    body,
                    Authorization=by,
                    **IN_JSON,
                )


def quoted(raw: bytes) -> bytes:
    """The bytes within a text of JSON, of at most 60,000 when escaped."""
    escapes = {
        b"\\": b"\\\\",
        b'"': b'\\"',
        b"\r": b"\\r",
        b"\n": b"\\n",
        b"\t": b"\\t",
    }
    for sign, escaped_sign in escapes.items():
        raw = raw.replace(sign, escaped_sign)
    return raw if len(raw) <= 60_000 else raw[:29_998].rstrip(b"\\")


def new_order(walk: Walk, key: str, store: str) -> str:
    return asked(walk, key, f"/stores/{store}/invoices", amount="25.00", currency="USD")


def new_webhook(walk: Walk, key: str, store: str) -> str:
    """In place of the others: a merchant has twenty, and the walks have made some."""
    walk.shop.sql("DELETE FROM delivery")
    walk.shop.sql("DELETE FROM receiver WHERE url IS NOT NULL")
    return asked(
        walk, key, f"/stores/{store}/webhooks", url="https://shop.example/hook"
    )


def asked(walk: Walk, key: str, path: str, **body: str) -> str:
    """The id of what a plug-in makes."""
    answer = walk.live.ask("POST", path, key, json=body)
    assert answer.ok, answer.text
    return answer.json()["id"]


# What views read: `query.get("x")`, `args.getlist("x")`, `day("x")`; parameters of lists. What a
# shop's program asks with is named `given`, `wanted` or `filters`.
READ = re.compile(
    r'(?:query|args|given|wanted|filters)\.get(?:list)?\("(\w+)"|\.day\("(\w+)"\)'
)
HEADER = re.compile(r'request\.headers(?:\.get\(|\[)"([\w-]+)"')
# Those that Flask and werkzeug read for us.
OTHER_HEADERS = (
    "Accept-Language",
    "Accept-Encoding",
    "Content-Type",
    "Cookie",
    "X-Forwarded-For",
)
OF_LISTS = ("limit", "invoice_id", "orderId", "take", "skip")


def in_source(pattern: re.Pattern[str]) -> set[str]:
    sources = (path.read_text() for path in (PROJECT / "btcpay").rglob("*.py"))
    matches = (match for source in sources for match in pattern.finditer(source))
    return {next(filter(None, match.groups())) for match in matches}


def test_no_parameter_and_no_part_of_a_path_holds_the_others_up(walk):
    names = in_source(READ) | {*OF_LISTS}
    texts = cycle(TEXTS)
    assert {"amount", "older", "redirect", "currencyPair", "from"} <= names
    of_shops = shop_keys(walk.shop)
    for rule in walk.rules("GET"):
        reads_none = walk.view(rule) is redirect_to_page
        for name in sorted(names)[: 1 if reads_none else None]:
            text = next(texts)
            path = next(filled(rule, walk.ids))
            target = b"%s?%s=" % (path.encode(), name.encode())
            target += escaped_text(text, MAX_LINE)[: MAX_LINE - len(target)]
            send_get(walk, of_shops, text, f"as {name} of {rule}", rule, target)
        begin, variable, _ = rule.partition("<")
        for text in TEXTS if variable else ():
            target = (
                begin.encode() + escaped_text(text, MAX_LINE)[: MAX_LINE - len(begin)]
            )
            send_get(walk, of_shops, text, f"in the path {rule}", rule, target)


def send_get(
    walk: Walk,
    of_shops: Iterator[Any],
    text: str,
    where: str,
    rule: str,
    target: bytes,
) -> None:
    """With a session, or a key that may see it."""
    key, store = next(of_shops) if "<store>" in rule else (next(walk.read_keys), "")
    secret, _ = next(walk.sessions)
    target = re.sub(rb"/stores/[^/?]+", b"/stores/%s" % store.encode(), target)
    by = {
        "Authorization": b"Bearer %s" % key.encode(),
        "Cookie": b"merchant=%s" % secret.encode(),
    }
    walk.stranger.send(text, where, "GET", target, **by)


def test_no_header_holds_the_others_up(walk):
    names = {name for name in in_source(HEADER) if name != "Transfer-Encoding"}
    assert {"Origin", "Sec-Fetch-Site", "Idempotency-Key", "Accept"} <= names
    link = id_of(walk, "lnk")
    invoice = id_of(walk, "inv")
    asked = [
        ("GET", f"/link/{link}", {}),
        ("POST", f"/link/{link}", FORM),
        ("GET", f"/pay/{invoice}", {}),
        ("POST", "/merchant/login", FORM),
        ("POST", "/api/v1/invoices", IN_JSON),
    ]
    for (method, path, usual), name, text in product(
        asked, [*names, *OTHER_HEADERS], TEXTS
    ):
        headers = usual | {
            "Authorization": b"Bearer %s" % next(walk.write_keys).encode()
        }
        if name == "Origin":
            headers.pop("Sec_Fetch_Site", None)
        hostile = re.sub(rb"[\r\n\0\t]", b"", text_of(text, MAX_HEADER))
        headers[name.replace("-", "_")] = hostile
        body = b'{"amount_usd": 25}' if usual is IN_JSON else b""
        walk.stranger.send_to_server(
            f"{text} as {name} of {path}", method, path.encode(), body, **headers
        )

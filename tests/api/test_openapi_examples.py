"""The examples of the OpenAPI document fit their schemas, and are what the service says."""

import itertools
import re

import jsonschema_rs
import pytest

import app
from btcpay.api import openapi
from btcpay.settings import settings
from tests.support.builders import Clock, open_shop, pay

ROOT = "/api/v1"
DOCUMENT = openapi.document(settings.read({}).base_url, app.OPERATIONS)
OPERATIONS = {
    described["operationId"]: (method.upper(), path, described)
    for path, methods in DOCUMENT["paths"].items()
    for method, described in methods.items()
}
OF_KEYS = [name for name in OPERATIONS if name != "get-checkout-status"]
WRITES = [name for name in OF_KEYS if OPERATIONS[name][0] == "POST"]
UNKNOWN = {"inv": "inv_" + "0" * 24, "lnk": "lnk_" + "0" * 24}
# Values that another run cannot repeat: ids, addresses, transactions, times and hosts.
OWN = re.compile(r"(id|_id|_url|_at|_address|_hash|^now)$")


@pytest.fixture(scope="module")
def shop(tmp_path_factory, ticker):
    ticker.reset()
    with open_shop(tmp_path_factory.mktemp("shop"), ticker.url, Clock()) as opened:
        yield opened


@pytest.fixture(scope="module")
def paid(shop):
    """An invoice made of the example and paid, by the id that the examples call it."""
    body = example(OPERATIONS["create-invoice"][2]["requestBody"])
    invoice = shop.invoice(**body)
    pay(shop, invoice)
    link = shop.link(**example(OPERATIONS["create-payment-link"][2]["requestBody"]))
    return {"inv": invoice["id"], "lnk": link["id"]}


def example(node):
    return node["content"]["application/json"]["example"]


def failure(name, status):
    return example(OPERATIONS[name][2]["responses"][status])


def parameters(name, ids):
    """The examples of an operation's parameters by where they go, with these ids."""
    found = {"path": {}, "query": {}, "header": {}}
    for parameter in OPERATIONS[name][2]["parameters"]:
        value = parameter["example"]
        if re.fullmatch(r"(inv|lnk)_\w+", str(value)):
            value = ids[value[:3]]
        found[parameter["in"]][parameter["name"]] = value
    return found


def send(shop, name, ids, key=None, **changes):
    """The answer to the example of an operation, with one thing changed."""
    method, path, described = OPERATIONS[name]
    given = parameters(name, ids)
    words = {"query_string": given["query"], "headers": given["header"]}
    if "requestBody" in described:
        words["json"] = example(described["requestBody"])
    words |= changes
    path = path.removeprefix(ROOT).format(**given["path"])
    if path.startswith("/pay/"):
        return shop.client.get(path)
    ask = shop.post if method == "POST" else shop.get
    return ask(path, key=key or shop.issue("write"), **words)


def validator(schema):
    """A validator of a schema in the document; `$ref` is looked up in `components`."""
    whole = schema | {"components": DOCUMENT["components"]}
    return jsonschema_rs.validator_for(whole, validate_formats=True)


def media_types(node, place=""):
    if isinstance(node, dict):
        for name, part in node.items():
            if name == "content":
                yield from ((f"{place}/{kind}", media) for kind, media in part.items())
            else:
                yield from media_types(part, f"{place}/{name}")


def test_every_body_has_an_example_that_fits_its_schema():
    media = list(media_types(DOCUMENT["paths"]))
    assert len(media) > 50
    assert [place for place, node in media if "example" not in node] == []
    unfit = [
        (place, error.message)
        for place, node in media
        for error in validator(node["schema"]).iter_errors(node["example"])
    ]
    assert unfit == []
    assert not validator({"$ref": "#/components/schemas/Invoice"}).is_valid({})


def test_every_parameter_and_header_has_an_example_that_fits():
    headers = DOCUMENT["components"]["headers"].items()
    found = [
        (f"{name}: {parameter['name']}", parameter)
        for name, (_, _, described) in OPERATIONS.items()
        for parameter in described["parameters"]
    ]
    unfit = [
        place
        for place, node in [*found, *headers]
        if not validator(node["schema"]).is_valid(node["example"])
    ]
    assert len(found) > 9 and unfit == []


def like(value):
    """The value without what another run cannot repeat."""
    if isinstance(value, dict):
        return {
            name: value is None if OWN.search(name) else like(value)
            for name, value in value.items()
        }
    if isinstance(value, list):
        return [like(item) for item in value]
    return value


@pytest.mark.parametrize("name", OF_KEYS)
def test_the_service_answers_an_example_as_the_document_says(shop, paid, name):
    """Of a list one item; and in the balance nothing is on its way."""
    answer = send(shop, name, paid)
    status, described = next(iter(OPERATIONS[name][2]["responses"].items()))
    assert str(answer.status_code) == status, answer.text
    shown, expected = like(answer.json), like(example(described))
    if name == "get-balance":
        shown["total_sats"] += 62_500 - 41_667
    if "data" in shown:
        shown["data"] = shown["data"][:1]
    assert shown == expected


def test_the_page_s_status_has_the_fields_of_its_example(shop, paid):
    answer = send(shop, "get-checkout-status", paid)
    shown = example(OPERATIONS["get-checkout-status"][2]["responses"]["200"])
    assert (answer.status_code, set(answer.json)) == (200, set(shown))
    unknown = send(shop, "get-checkout-status", UNKNOWN)
    assert unknown.json == failure("get-checkout-status", "404")


def bad_request(name):
    """One change that makes the service say what the example of 400 says."""
    if name == "create-invoice":
        return {"json": {"amount_usd": "25"}}
    if name == "create-payment-link":
        return {"json": {"amount_mode": "fixed"}}
    if name == "list-invoices":
        return {"query_string": {"status": "unknown"}}
    return {"query_string": {"limit": 0}}


def with_status(status):
    return [name for name in OF_KEYS if status in OPERATIONS[name][2]["responses"]]


@pytest.mark.parametrize("name", with_status("400"))
def test_a_bad_request_is_refused_in_the_words_of_its_example(shop, paid, name):
    assert send(shop, name, paid, **bad_request(name)).json == failure(name, "400")


@pytest.mark.parametrize("name", with_status("404"))
def test_an_unknown_id_is_refused_in_the_words_of_its_example(shop, name):
    assert send(shop, name, UNKNOWN).json == failure(name, "404")


@pytest.mark.parametrize("name", OF_KEYS)
def test_an_unknown_key_is_refused_in_the_words_of_its_example(shop, paid, name):
    answer = send(shop, name, paid, key="sk_test_" + "0" * 43)
    assert answer.json == failure(name, "401")


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_refused_in_the_words_of_its_examples(shop, paid, name):
    key = shop.issue("write")
    headers = {"Idempotency-Key": f"of {name}"}
    other = {"amount_usd": 5, "title": "x"}
    assert send(shop, name, paid, key, headers=headers).status_code == 201
    conflict = send(shop, name, paid, key, headers=headers, json=other)
    assert conflict.json == failure(name, "409")
    large = {"data": b" " * 65_537, "content_type": "application/json", "json": None}
    assert send(shop, name, paid, **large).json == failure(name, "413")
    read_only = send(shop, name, paid, shop.issue("read"))
    assert read_only.json == failure(name, "403")


def without_numbers(answer):
    message = answer["error"]["message"]
    masked = re.sub(r"\d+ s$|(?<=request id )\w+$", "...", message)
    return answer["error"]["code"], masked


@pytest.mark.parametrize("name", ["get-balance", "create-payment-link"])
def test_too_many_requests_are_refused_in_the_words_of_the_example(shop, paid, name):
    key = shop.issue("write")
    answers = (send(shop, name, paid, key) for _ in itertools.count())
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert without_numbers(refused.json) == without_numbers(failure(name, "429"))


def test_faults_are_answered_in_the_words_of_the_examples(tmp_path, ticker):
    deaf = {"BLOCKTILL_PRICE_SOURCES": "http://127.0.0.1:9/#/usd"}
    with open_shop(tmp_path, ticker.url, Clock(), **deaf) as broken:
        broken.sql("ALTER TABLE payment_link RENAME TO gone")
        answer = send(broken, "list-payment-links", UNKNOWN)
        unpriced = send(broken, "create-invoice", UNKNOWN)
    expected = failure("list-payment-links", "500")
    assert without_numbers(answer.json) == without_numbers(expected)
    assert unpriced.json == failure("create-invoice", "503")

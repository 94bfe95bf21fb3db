"""The OpenAPI document says what the specification says."""

import itertools

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
from test_spec_resources import BALANCE, INVOICE, PAYMENT, PAYMENT_LINK

from tests.support.builders import Clock, open_shop

# Section 4: operation id, method and path, status of success, those of section 7, what is shown.
COMMON = {"401", "403", "429", "500"}
WRITES = COMMON | {"400", "409", "413"}
OPERATIONS = {
    "get-balance": ("get", "/balance", {"200"} | COMMON, "balance"),
    "create-invoice": ("post", "/invoices", {"201", "503"} | WRITES, "invoice"),
    "list-invoices": ("get", "/invoices", {"200", "400"} | COMMON, "invoice"),
    "get-invoice": ("get", "/invoices/{id}", {"200", "404"} | COMMON, "invoice"),
    "create-payment-link": ("post", "/payment-links", {"201"} | WRITES, "payment_link"),
    "list-payment-links": (
        "get",
        "/payment-links",
        {"200", "400"} | COMMON,
        "payment_link",
    ),
    "get-payment-link": (
        "get",
        "/payment-links/{id}",
        {"200", "404"} | COMMON,
        "payment_link",
    ),
    "list-payments": ("get", "/payments", {"200", "400"} | COMMON, "payment"),
}
CODES = {
    "400": "invalid_request", "401": "unauthorized", "403": "forbidden", "404": "not_found",
    "409": "conflict", "413": "payload_too_large", "429": "rate_limited", "500": "server_error",
    "503": "price_unavailable",
}  # fmt: skip
ROOT = "/api/v1"
PUBLIC = "/pay/{id}/status"
WINDOW = {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

TEXT = {"string"}
NUMBER = {"number"}
NULL = {"null"}
JSON_TYPES = {str: "string", int: "integer", float: "number", type(None): "null"}
RESOURCES = {
    "balance": BALANCE,
    "invoice": INVOICE,
    "payment_link": PAYMENT_LINK,
    "payment": PAYMENT,
}
ABOVE_0 = {"exclusiveMinimum": 0}
MILLION = ABOVE_0 | {"maximum": 1_000_000}
# Sections 4.2 and 4.5: the fields of the bodies, their types and bounds; null means absent.
BODIES = {
    "create-invoice": {"amount_usd": (NUMBER, MILLION), "description": (TEXT | NULL, {"maxLength":
        500}), "customer_email": (TEXT | NULL, {"maxLength": 320}), "expires_in_hours":
        (NUMBER | NULL, ABOVE_0 | {"maximum": 8_760})},
    "create-payment-link": {"amount_mode": (TEXT | NULL, {}), "amount_usd": (NUMBER | NULL,
        MILLION), "min_amount_usd": (NUMBER | NULL, MILLION), "max_amount_usd": (NUMBER | NULL,
        MILLION), "title": (TEXT | NULL, {"maxLength": 200}), "description": (TEXT | NULL,
        {"maxLength": 500})},
}  # fmt: skip
# Sections 4.3 to 4.8: the query parameters.
LIMIT = {"type": "integer", "minimum": 1, "maximum": 100, "default": 50}
STATUSES = {"type": "string", "enum": ["open", "paid", "expired", "canceled"]}
QUERIES = {
    "list-invoices": {"limit": LIMIT, "status": STATUSES},
    "list-payment-links": {"limit": LIMIT},
    "list-payments": {"limit": LIMIT, "invoice_id": {"type": "string"}},
}


PRICED = ("amount_mode", "amount_usd", "min_amount_usd", "max_amount_usd")


@pytest.fixture(scope="module")
def shop(tmp_path_factory, ticker):
    ticker.reset()
    folder = tmp_path_factory.mktemp("shop")
    with open_shop(folder, ticker.url, Clock()) as opened:
        yield opened


@pytest.fixture(scope="module")
def keys(shop):
    return itertools.cycle([shop.issue("write") for _ in range(200)])


@pytest.fixture(scope="module")
def document(shop):
    """The document as it is served, without a key."""
    response = shop.get("/openapi.json", "")
    assert (response.status_code, response.mimetype) == (200, "application/json")
    return response.json


def resolved(document, node):
    while isinstance(node, dict) and "$ref" in node:
        path = node["$ref"].removeprefix("#/").split("/")
        node = document
        for name in path:
            node = node[name]
    return node


def operation(document, name):
    method, path, *_ = OPERATIONS[name]
    return document["paths"][ROOT + path][method]


def types(schema):
    kind = schema["type"]
    return {kind} if isinstance(kind, str) else set(kind)


def as_json(kinds):
    """The types of JSON Schema; an integer that may be a fraction is a number."""
    return {JSON_TYPES[kind] for kind in kinds if kind is not int or float not in kinds}


def content(document, node):
    assert set(node["content"]) == {"application/json"}
    return resolved(document, node["content"]["application/json"]["schema"])


def test_the_document_is_valid_openapi_3_1(document):
    assert document["openapi"].startswith("3.1.")
    assert [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(document)] == []
    broken = document | {"paths": {"/balance": {"get": {"responses": "none"}}}}
    assert not OPENAPI_31_VALIDATOR.is_valid(broken)


def test_the_document_has_the_specified_root_version_and_operations_and_no_others(
    shop, document
):
    """Beside them the one public path that a shop may poll."""
    assert document["info"]["version"] == "1.0.0"
    assert document["servers"] == [{"url": shop.service.settings.base_url}]
    described = {
        described["operationId"]: (method, path)
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    }
    public = {"get-checkout-status": ("get", PUBLIC)}
    specified = {
        name: (method, ROOT + path) for name, (method, path, *_) in OPERATIONS.items()
    }
    assert described == specified | public


def nodes(node, path=""):
    """Every object of the document, the outermost first."""
    if isinstance(node, dict):
        yield path, node
    parts = node.items() if isinstance(node, dict) else enumerate(node)
    for name, part in parts if isinstance(node, dict | list) else ():
        if isinstance(part, dict | list):
            yield from nodes(part, f"{path}/{name}")


def operations_of(document):
    places = [*document["paths"].values(), *document["webhooks"].values()]
    return [described for methods in places for described in methods.values()]


# Things that generators of clients need; tests/nightly/api/test_generated_clients.py runs three.


def test_there_is_one_root_for_all_paths(document):
    """Generators ignore the servers of a path."""
    assert [path for path, node in nodes(document) if "servers" in node] == [""]


def test_no_schema_has_alternatives_beside_its_fields(document):
    """Generators would take such a schema's alternatives, and leave out its fields."""
    mixed = {"oneOf", "anyOf", "allOf"}
    found = [
        p for p, node in nodes(document) if isinstance(node.get("properties"), dict)
    ]
    assert len(found) > 15
    assert [
        path
        for path, node in nodes(document)
        if "properties" in node and mixed & set(node)
    ] == []


def test_every_object_that_is_sent_has_a_name(document):
    """Without one a generator names it after the place, as ListInvoicesResponse200."""
    components = document["components"]["schemas"]
    bodies = [
        node["schema"]
        for _, node in nodes(document)
        if set(node) - {"example"} == {"schema"}
    ]
    assert len(bodies) > 50
    assert [body for body in bodies if "$ref" not in body] == []
    within = [
        (p, n) for schema in components.values() for p, n in nodes(schema["properties"])
    ]
    assert [path for path, node in within if node.get("type") == "object"] == []
    assert {"InvoiceList", "PaymentLinkList", "PaymentList", "InvoicePaidEvent"} <= set(
        components
    )


def test_every_operation_has_one_tag_and_every_tag_its_meaning(document):
    tags = [tag for described in operations_of(document) for tag in described["tags"]]
    assert len(tags) == len(operations_of(document))
    assert set(tags) == {tag["name"] for tag in document["tags"] if tag["description"]}


def schemas_in(document):
    """Each field of each object, but for those of conditions."""
    for path, node in nodes(document):
        if not {"if", "then"} & set(path.split("/")):
            fields = node.get("properties", {}).items()
            yield from ((f"{path}/{field}", schema) for field, schema in fields)


def test_every_property_and_parameter_says_what_it_means(document):
    parameters = [
        (f"{path}: {parameter['name']}", parameter)
        for path, methods in document["paths"].items()
        for described in methods.values()
        for parameter in described["parameters"]
    ]
    described_places = [*schemas_in(document), *parameters]
    assert len(described_places) > 60
    assert [
        place
        for place, node in described_places
        if not node.get("description", "").endswith(".")
    ] == []


def test_every_property_has_an_example_that_fits_or_names_all_its_values(document):
    found = [
        (place, node) for place, node in schemas_in(document) if "$ref" not in node
    ]
    values = [
        (place, node) for place, node in found if types(node) - {"object", "array"}
    ]
    bare = [
        place for place, node in values if not {"examples", "enum", "const"} & set(node)
    ]
    assert bare == []
    unfit = [
        (place, example)
        for place, node in values
        for example in node.get("examples", ())
        if not jsonschema_rs.validator_for(node, validate_formats=True).is_valid(
            example
        )
    ]
    assert unfit == []


@pytest.mark.parametrize("name", ["NewInvoice", "NewPaymentLink"])
def test_the_examples_of_a_body_are_one_that_the_service_takes(
    shop, document, keys, name
):
    """A fixed price and bounds go apart, so the example of one is left out."""
    properties = document["components"]["schemas"][name]["properties"]
    body = {field: schema["examples"][0] for field, schema in properties.items()}
    if name == "NewPaymentLink":
        del body["amount_usd"]
    path = {"NewInvoice": "/invoices", "NewPaymentLink": "/payment-links"}[name]
    answer = shop.post(path, body, next(keys))
    known = {field: value for field, value in body.items() if field in answer.json}
    assert answer.status_code == 201 and answer.json.items() >= known.items()


@pytest.mark.parametrize(
    "name", ["Invoice", "PaymentLink", "Payment", "Balance", "CheckoutStatus"]
)
def test_the_examples_of_a_resource_are_one_of_its_kind(document, name):
    schema = document["components"]["schemas"][name]
    shown = {
        field: node["examples"][0] if "examples" in node else node["enum"][0]
        for field, node in schema["properties"].items()
    }
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    assert [error.message for error in validator.iter_errors(shown)] == []
    assert not validator.is_valid(
        shown | {"status": "unknown", "total_sats": "1", "id": 1}
    )


def test_what_a_page_polls_is_described_without_a_key(shop, document):
    described = document["paths"][PUBLIC]["get"]
    assert described["security"] == []
    assert set(described["responses"]) == {"200", "404", "429", "500"}
    schema = content(document, described["responses"]["200"])
    invoice = shop.invoice(expires_in_hours=1)
    answer = shop.client.get(PUBLIC.format(id=invoice["id"]))
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    assert [error.message for error in validator.iter_errors(answer.json)] == []
    assert set(answer.json) == set(schema["properties"]) == set(schema["required"])


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_names_its_scope_and_has_every_status_that_applies(document, name):
    described = operation(document, name)
    method, _, statuses, _ = OPERATIONS[name]
    assert f"`{'write' if method == 'post' else 'read'}`" in described["description"]
    (needed,) = described.get("security", document["security"])
    scheme = document["components"]["securitySchemes"][next(iter(needed))]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    responses = described["responses"]
    assert set(responses) == statuses
    for status, code in CODES.items():
        if status in responses:
            response = resolved(document, responses[status])
            assert code in response["description"]
            envelope = content(document, response)
            assert envelope["required"] == ["error"]
            error = resolved(document, envelope["properties"]["error"])
            assert (
                set(error["required"])
                == set(error["properties"])
                == {"code", "message"}
            )
            assert set(error["properties"]["code"]["enum"]) == set(CODES.values())


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_response_has_the_rate_limit_headers_and_429_retry_after(document, name):
    for status, node in operation(document, name)["responses"].items():
        headers = resolved(document, node)["headers"]
        ignored = {"X-Ignored-Fields"} if status not in ("401", "403", "429") else set()
        assert set(headers) == WINDOW | ignored | (
            {"Retry-After"} if status == "429" else set()
        )
        for header in headers:
            described = resolved(document, headers[header])
            kind = (False, "string") if header in ignored else (True, "integer")
            assert (described["required"], described["schema"]["type"]) == kind


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_success_shows_exactly_the_documented_fields(document, name):
    _, _, statuses, kind = OPERATIONS[name]
    table = RESOURCES[kind]
    schema = content(document, operation(document, name)["responses"][min(statuses)])
    if name.startswith("list-"):
        assert (
            set(schema["properties"]) == set(schema["required"]) == {"object", "data"}
        )
        assert schema["properties"]["object"]["const"] == "list"
        schema = resolved(document, schema["properties"]["data"]["items"])
    shown = {
        field: types(described) for field, described in schema["properties"].items()
    }
    assert shown == {field: as_json(kinds) for field, kinds in table.items()}
    assert set(schema["required"]) == set(table)
    assert schema["properties"]["object"]["enum"] == [kind]
    assert schema["properties"].get("asset", {"enum": ["BTC"]})["enum"] == ["BTC"]
    for field, described in schema["properties"].items():
        assert (described.get("format") == "date-time") == field.endswith("_at")


@pytest.mark.parametrize("name", BODIES)
def test_a_body_has_exactly_the_documented_fields_and_bounds_and_an_optional_key(
    document, name
):
    body, (key,) = (
        operation(document, name)[part] for part in ("requestBody", "parameters")
    )
    schema = content(document, body)
    assert body["required"] == (name == "create-invoice")
    assert schema.get("required", []) == (
        ["amount_usd"] if name == "create-invoice" else []
    )
    assert set(schema["properties"]) == set(BODIES[name])
    for field, (kinds, bounds) in BODIES[name].items():
        described = schema["properties"][field]
        assert bounds.items() <= described.items(), field
        assert types(described) == kinds, field
    assert (key["name"], key["in"], key.get("required", False)) == (
        "Idempotency-Key",
        "header",
        False,
    )
    assert {"type": "string", "minLength": 1, "maxLength": 255}.items() <= key[
        "schema"
    ].items()


NOTHING = object()
LINKS = [
    {
        name: value
        for name, value in zip(PRICED, values, strict=True)
        if value is not NOTHING
    }
    for values in itertools.product(
        (NOTHING, None, "fixed", "flexible", "open"),
        (NOTHING, None, 5),
        (NOTHING, None, 1),
        (NOTHING, None, 9),
    )
]


def test_what_goes_together_in_a_payment_link_is_the_same_for_schema_and_service(
    shop, document, keys
):
    schema = content(
        document, operation(document, "create-payment-link")["requestBody"]
    )
    validator = jsonschema_rs.validator_for(schema)
    apart = [
        (body, answer.json)
        for body in LINKS
        if (answer := shop.post("/payment-links", body, next(keys)))
        if validator.is_valid(body) != (answer.status_code == 201)
    ]
    assert apart == []
    assert not validator.is_valid(
        {"amount_mode": "fixed", "amount_usd": 5, "min_amount_usd": 1}
    )
    assert validator.is_valid({"amount_usd": 5}) and validator.is_valid({})


@pytest.mark.parametrize("name", QUERIES)
def test_a_list_has_exactly_the_documented_parameters(document, name):
    parameters = operation(document, name)["parameters"]
    assert {
        parameter["name"]: parameter["schema"] for parameter in parameters
    } == QUERIES[name]
    assert all(p["in"] == "query" and not p.get("required") for p in parameters)
